# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Work that the kernel may keep for ever. If these fail, a verb hangs with it, Ansible waits for its output, or another
process that got its pid counts as it.
"""

from __future__ import annotations

import os
import time

from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.pci.detached_work import (
    detached,
    sleeps_in_kernel,
    started,
)


def answer(work, keep=()):
    pid, answers = detached(work, keep)
    try:
        return os.read(answers, 4096)
    finally:
        os.close(answers)
        os.waitpid(pid, 0)


def test_it_is_a_process_and_a_session_of_its_own():
    """Lost: the work, when the terminal or the play that began it ends."""
    pid, session = answer(lambda tell: tell(f"{os.getpid()} {os.getsid(0)}".encode())).split()
    assert pid == session
    assert int(pid) != os.getpid()


def test_it_holds_nothing_of_who_began_it(tmp_path):
    """Lost: Ansible's result, which comes when all that hold its output have ended."""
    kept, other = os.open(tmp_path, os.O_RDONLY), os.open(tmp_path, os.O_RDONLY)
    try:

        def work(tell):
            held = {number: os.readlink(f"/proc/self/fd/{number}") for number in (0, 1, 2)}
            there = [os.path.exists(f"/proc/self/fd/{number}") for number in (kept, other)]
            tell(repr((set(held.values()), there)).encode())

        assert answer(work, [kept]) == repr(({"/dev/null"}, [True, False])).encode()
    finally:
        os.close(kept)
        os.close(other)


def test_an_error_ends_it_and_nothing_of_the_caller_goes_on():
    """Lost: whatever the caller's code does twice."""

    def work(_tell):
        raise RuntimeError("in the child")

    assert answer(work) == b""


def test_a_pid_that_is_used_again_began_later(tmp_path):
    """Lost: the truth, whether the work that was left behind still waits."""
    pid, answers = detached(lambda _tell: time.sleep(60))
    try:
        began = started(pid)
        assert began is not None
        assert began >= started(os.getpid())
        assert not sleeps_in_kernel(pid)
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(answers)
    assert started(pid) is None


def stat(folder, state):
    (folder / "7").mkdir(exist_ok=True)
    (folder / "7" / "stat").write_text(f"7 (a ) b) {state} " + " ".join(str(n) for n in range(4, 40)) + "\n")
    return str(folder)


def test_the_kernels_line_is_read_whatever_the_program_is_called(tmp_path):
    """Lost: the same, where a program's name has a bracket and a blank."""
    assert started(7, stat(tmp_path, "S")) == 22
    assert not sleeps_in_kernel(7, stat(tmp_path, "S"))
    assert sleeps_in_kernel(7, stat(tmp_path, "D"))
    assert started(7, stat(tmp_path, "Z")) is None, "who ended and was not waited for"
