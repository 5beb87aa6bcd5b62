# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder with a guest's files. If these fail, a guest's disk counts as nobody's, or an unused one as somebody's."""

from __future__ import annotations

import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci.made_guests import DESCRIPTION
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.libvirt.guest_folder import (
    DISK,
    is_whole,
    made_for,
    must_be_readable,
    must_have,
    was_used_since,
)


@pytest.fixture
def folder(tmp_path):
    """A guest made at 1000, whose disk is a second older than its description."""
    for name, text, when in ((DISK, "root", 999), (DESCRIPTION, "<domain><uuid>u-1</uuid></domain>", 1000)):
        (tmp_path / name).write_text(text)
        os.utime(tmp_path / name, (when, when))
    return tmp_path


def test_a_guest_is_whole_by_its_description(folder):
    """Lost: whether an instance that was cut off while it was made is to be made again."""
    assert is_whole(str(folder))
    assert made_for(str(folder)) == "u-1"
    (folder / DESCRIPTION).unlink()
    assert not is_whole(str(folder))
    assert made_for(str(folder)) is None


def test_a_guest_that_wrote_to_its_disk_was_used(folder):
    """Lost: a tenant's data, on a disk that counts as never used."""
    path = str(folder)
    assert not was_used_since(path, 500, lambda: False)
    assert was_used_since(path, 500, lambda: True), "by its events"
    os.utime(folder / DISK, (1001, 1001))
    assert was_used_since(path, 500, lambda: False), "by its disk"
    assert not was_used_since(path, 1000, lambda: True), "it was made before that time"
    (folder / DISK).unlink()
    assert not was_used_since(path, 500, lambda: True), "there is no disk"


def test_what_cannot_be_read_in_its_place_stops_all(folder):
    """Lost: a guest whose description somebody moved away, and whose files would be taken for nobody's."""
    must_be_readable(str(folder))
    (folder / DESCRIPTION).unlink()
    must_be_readable(str(folder))
    (folder / DESCRIPTION).mkdir()
    with pytest.raises(Refused, match="says which guest lies there: nothing is touched"):
        must_be_readable(str(folder))


def test_a_missing_file_is_named_by_what_it_is(folder):
    """Lost: why a guest does not start, and that its root cannot come back by itself."""
    must_have("root", str(folder / DISK))
    with pytest.raises(
        Refused, match=r"kernel: is missing, and with it the guest's kernel: put the file back, or rebuild"
    ):
        must_have("kernel", str(folder / "kernel"))
