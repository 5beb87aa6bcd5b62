# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which container runs by a path, where its root is no folder of its own. If these fail, ordinary verbs refuse a
container on an overlay, a device or a pool; or what was made in place of one that runs counts as that.
"""

from __future__ import annotations

import errno
import os
import time
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.child import in_child
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import identity
from ansible_collections.hetero.compute.tests.unit.devices.gpus import own_file_system


@pytest.mark.parametrize(
    ("began", "configured", "another_without_id", "another"),
    [
        ("/", "/elsewhere", False, False),
        ("/etc", "/etc", True, True),
        ("/etc:/var", "/etc:/var", False, False),
        ("/etc:/none", "/etc:/none", True, False),
        ("/etc:/var", "/etc", True, False),
        ("/dev/null", "/dev/null", False, False),
        ("/none", "/none", True, False),
        ("pool/box", "pool/box", False, False),
        ("pool/box", "/etc", True, False),
        ("", "", False, False),
    ],
)
def test_by_the_root_of_its_start(monkeypatch, began, configured, another_without_id, another):
    box = SimpleNamespace(thing="box", running_item=lambda key: began, get=lambda key: configured)
    monkeypatch.setattr(identity, "includes", lambda box: True)
    monkeypatch.setattr(identity, "key_of", lambda box: None)
    assert identity.runs_another(box, os.getpid()) is another_without_id
    monkeypatch.setattr(identity, "key_of", lambda box: "/lxc/box#1")
    assert identity.runs_another(box, os.getpid()) is another


def test_one_that_ended_meanwhile_is_no_other():
    box = SimpleNamespace(thing="box", running_item=lambda key: "/etc", get=lambda key: "/etc")
    assert not identity.runs_another(box, 1 << 30)


def test_one_of_which_a_look_learns_nothing_is_told_by_its_id(monkeypatch):
    """Lost: the GPU of one that runs, to what was made in its place, where a look's own process was killed."""
    box = SimpleNamespace(thing="box", running_item=lambda key: "/etc", get=lambda key: "/etc")
    monkeypatch.setattr(identity, "includes", lambda box: True)
    monkeypatch.setattr(identity, "in_child", raising(HeteroError("ended without an answer", "box")))
    for key, another in ((None, True), ("/lxc/box#1", False)):
        monkeypatch.setattr(identity, "key_of", lambda box, key=key: key)
        assert identity.runs_another(box, os.getpid()) is another


def test_no_process_left_for_the_look_is_an_error(monkeypatch):
    """Lost: the same, on a host that has no process left for a moment."""
    box = SimpleNamespace(thing="box", running_item=lambda key: "/etc", get=lambda key: "/etc")
    monkeypatch.setattr(identity, "in_child", raising(BlockingIOError(errno.EAGAIN, "no process")))
    with pytest.raises(BlockingIOError):
        identity.runs_another(box, os.getpid())


def raising(error):
    def work(*_words, **_more):
        raise error

    return work


def test_one_that_leaves_for_another_program_for_ever_is_the_one_with_its_id(monkeypatch, tmp_path):
    """Lost: every verb of a container, also its end, to an init whose root the kernel does not tell any more."""
    monkeypatch.setattr(identity, "LOOK_TIME", 1.0)
    monkeypatch.setattr(identity, "includes", lambda box: True)
    box = SimpleNamespace(thing="box", running_item=lambda key: "/etc", get=lambda key: "/etc")
    with own_file_system.holding(tmp_path, (1, 5), "leaving") as process:
        if process is None:
            pytest.skip("this kernel has no FUSE")
        time.sleep(0.3)  # for which it is on its way
        for key, another in ((None, True), ("/lxc/box#1", False)):
            monkeypatch.setattr(identity, "key_of", lambda box, key=key: key)
            found = in_child(lambda: identity.runs_another(box, process.pid), Deadline(30), "look", "")
            # a kernel that tells it all the same sees another root than /etc
            assert found in (another, True)
