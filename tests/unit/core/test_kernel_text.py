# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of /proc of which a tenant writes a part. If these fail, a tenant says what the kernel should have said."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import kernel_text, machine

HOUSE = Path(kernel_text.__file__).parents[1]
#: What Python's text files or str.splitlines take for the end of a line, and str.split for a blank; the kernel writes
#: them as they are.
ENDS = ["\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029", "\xa0"]
NAMED = """
import ctypes, sys
ctypes.CDLL(None).prctl(15, sys.argv[1].encode(), 0, 0, 0)  # PR_SET_NAME
print(flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("end", ENDS)
def test_only_a_line_feed_ends_a_line(tmp_path, end):
    """Lost: whose line it is, where a tenant named something so."""
    (tmp_path / "cgroup").write_text(f"5:devices:/a{end}0::/b\n0::/c\n", newline="")
    assert kernel_text.lines_of(str(tmp_path / "cgroup")) == [f"5:devices:/a{end}0::/b", "0::/c"]
    (tmp_path / "cgroup").write_text("")
    assert kernel_text.lines_of(str(tmp_path / "cgroup")) == []


@pytest.mark.parametrize("end", ["\r", "\x85", "\u2028"])
def test_a_thread_does_not_write_its_own_status(end):
    """Lost: what a container may do and who started it, for its init can call itself what it likes."""
    argv = [sys.executable, "-c", NAMED, f"a{end}PPid:\t1"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"\n"
        assert kernel_text.status_of(process.pid, "PPid") == str(os.getpid())
        assert kernel_text.status_of(process.pid, "Name") == f"a{end}PPid:\t1"
        process.stdin.close()


@pytest.mark.parametrize("end", ENDS)
def test_a_mount_point_of_any_name_is_one_line(tmp_path, end):
    """Lost: all looks at what is mounted, once a user of this machine mounted something at an odd name; or that name's
    end, and with it what is mounted in a folder that is removed.
    """
    lines = f"36 31 0:33 /x{end}y /a\\040b{end}c rw shared:4 - overlay  rw,lowerdir=/d\\054e{end}f\n40 36 0:4 / / rw"
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "mountinfo").write_text(f"{lines} - proc proc rw\n", newline="")
    first, second = kernel_text.mount_table(str(tmp_path))
    assert first == ("36", "0:33", f"/x{end}y", f"/a b{end}c", "overlay", "", ("rw", f"lowerdir=/d,e{end}f"))
    assert (second.point, second.kind, second.options) == ("/", "proc", ("rw",))


def test_the_file_system_of_a_path_is_the_innermost_mount():
    """Lost: which disk a check of free room is about."""
    assert machine.mount_of("/proc/self") == ("/proc", "proc")


def test_nobody_else_reads_what_a_tenant_may_have_written():
    """Lost: one of the above, in the next reader of such a file."""
    own = re.compile(r"""open\(.*(mountinfo|["'/](maps|status|cgroup)["'])""")
    found = [
        f"{path.relative_to(HOUSE)}:{number}"
        for path in sorted(HOUSE.rglob("*.py"))
        for number, line in enumerate(path.read_text().split("\n"), 1)
        if own.search(line)
    ]
    assert not found
