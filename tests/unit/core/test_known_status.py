# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel knows of files, beside what os.stat says of the same ones."""

from __future__ import annotations

import errno
import os
import stat

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import known_status
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.child import in_child
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.tests.unit.devices.gpus import own_file_system


@pytest.mark.parametrize("has_statx", [True, False])
def test_it_says_what_os_stat_says(tmp_path, monkeypatch, has_statx):
    """Lost: a device that somebody holds, taken for another file; or one container's root for another's."""
    if not has_statx:
        monkeypatch.setattr(known_status, "_statx", None)
    disk, link = tmp_path / "disk", tmp_path / "link"
    os.mknod(disk, stat.S_IFBLK | 0o600, os.makedev(4095, 1048575))
    link.symlink_to(disk)
    for path in ("/dev/null", "/proc/self", "/proc/self/fd/0", str(tmp_path), str(disk), str(link)):
        for follow in (True, False):
            seen, known = os.stat(path, follow_symlinks=follow), known_status.status(path, follow)
            assert [getattr(seen, name) for name in known._fields[1:]] == list(known[1:])
            assert (stat.S_IFMT(seen.st_mode), path) == (stat.S_IFMT(known.st_mode), path)
    assert known_status.device("/dev/null") == ("c", os.makedev(1, 3))
    assert known_status.device(str(link)) == ("b", os.makedev(4095, 1048575))
    assert known_status.device(str(tmp_path)) is None
    with pytest.raises(FileNotFoundError):
        known_status.device(str(tmp_path / "nothing"))


@pytest.mark.parametrize("how", ["open", "broken", "silent"])
def test_what_an_accounts_own_file_system_has_is_no_device(tmp_path, how):
    """Lost: each look at GPUs, to who opens a file that is refused to root, is broken, or never says what it is."""
    with own_file_system.holding(tmp_path, (1, 5), how) as process:
        if process is None:
            pytest.skip("this kernel has no FUSE")

        def seen():
            folder = f"/proc/{process.pid}/fd"
            return [known_status.device(os.path.join(folder, name)) for name in os.listdir(folder)]

        found = in_child(seen, Deadline(30), "look", "")
        assert ["c", os.makedev(1, 5)] in found


@pytest.mark.parametrize("error", [errno.EACCES, errno.EPERM, errno.ENOENT, errno.ESRCH, errno.ENOMEM])
def test_what_is_not_known_is_not_taken_for_no_device(monkeypatch, error):
    """Lost: who holds a GPU, where this look at it went wrong."""

    def failed(*_arguments):
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(known_status, "status", failed)
    with pytest.raises(OSError, match=os.strerror(error)):
        known_status.device("/dev/null")
