# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of images around a removal that is under way, fails, or is killed.

If these fail, an image is there and has no name until somebody writes to the store, or one is claimed as it goes.
"""

from __future__ import annotations

import fcntl
import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.stored_names import StoredNames

HASH = "a" * 64


@pytest.fixture
def names(tmp_path):
    names = StoredNames(str(tmp_path))
    names.write("debian-13", HASH)
    return names


def killed_while_leaving(names):
    child = os.fork()
    if child == 0:
        with names.leaving("debian-13", Deadline(60)):
            os._exit(0)
    os.waitpid(child, 0)  # not another test's child


def test_a_name_is_gone_while_its_image_is_removed_and_after_it(names, tmp_path):
    """Lost: an image, to who claims it while it is removed."""
    with names.leaving("debian-13", Deadline(60)):
        assert (names.read("debian-13"), names.all()) == (None, {})
    assert (names.all(), os.listdir(tmp_path)) == ({}, [])


def test_a_name_is_put_back_where_the_removal_fails(names, tmp_path):
    with pytest.raises(ZeroDivisionError), names.leaving("debian-13", Deadline(60)):
        raise ZeroDivisionError
    assert (names.all(), os.listdir(tmp_path)) == ({"debian-13": HASH}, ["debian-13"])


def test_a_name_whose_removal_was_killed_stands(names, tmp_path):
    """Lost: the name, for all that only read: requests say that there is no such image, dry runs that it may go."""
    killed_while_leaving(names)
    assert os.listdir(tmp_path) == [".debian-13.leaving"]
    assert (names.read("debian-13"), names.all()) == (HASH, {"debian-13": HASH})
    names.put_back()
    assert (names.all(), os.listdir(tmp_path)) == ({"debian-13": HASH}, ["debian-13"])


def test_a_name_that_another_process_has_locked_stays_and_is_not_waited_for_without_end(names, tmp_path):
    """Lost: every import and removal on the node, to a program that has the file of one name locked."""
    with open(tmp_path / "debian-13", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        with pytest.raises(TimedOut, match="debian-13: is locked by "), names.leaving("debian-13", Deadline(0.3)):
            pass
    assert names.all() == {"debian-13": HASH}


@pytest.mark.parametrize("foreign", [".leaving", "..leaving", ".debian-13.leaving.x", ".x y.leaving"])
def test_a_file_that_is_no_name_is_left_alone(names, tmp_path, foreign):
    """Lost: every import and removal, to a file that somebody put there."""
    (tmp_path / foreign).write_text(HASH)
    names.put_back()
    assert (names.all(), (tmp_path / foreign).exists()) == ({"debian-13": HASH}, True)


def test_a_name_that_was_put_there_since_a_killed_removal_stays(names, tmp_path):
    """Lost: the newer image of a name, whose file came back from a backup, or from an operator."""
    killed_while_leaving(names)
    (tmp_path / "debian-13").write_text("b" * 64)
    names.put_back()
    assert (names.all(), os.listdir(tmp_path)) == ({"debian-13": "b" * 64}, ["debian-13"])
