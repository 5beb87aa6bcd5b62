# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a lab board's QEMU ended to reset itself. If these fail, a board that was told to reboot stays dead."""

from __future__ import annotations

import asyncio
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).parents[4] / "roles" / "lab" / "files" / "switched_pdu" / "resets.py"
#: A machine that tells of so many events, then of its end.
MACHINE = """\
#!{python}
import os, re, socket, sys
monitor = socket.socket(fileno=int(re.search(r"fd=(\\d+)", " ".join(sys.argv))[1]))
assert b"qmp_capabilities" in monitor.recv(4096)
for number in range({events}):
    monitor.sendall(b'{{"event": "RTC_CHANGE", "data": {{"offset": 1}}}}\\r\\n')
monitor.sendall(b'{{"event": "SHUTDOWN", "data": {{"guest": true, "reason": "{reason}"}}}}\\r\\n')
"""


@pytest.fixture
def ended(tmp_path):
    """A function that runs such a machine to its end; whether it was to reset itself."""
    spec = importlib.util.spec_from_file_location("resets", FILE)
    resets = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(resets)
    program = tmp_path / "qemu-system-played"

    async def run():
        one = resets.Resets([str(program)])
        with subprocess.Popen(one.argv, pass_fds=one.descriptors, close_fds=True) as machine:
            one.listen(asyncio.get_running_loop())
            try:
                await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(None, machine.wait), 60)
            finally:
                machine.kill()
        try:
            return one.seen()
        finally:
            one.close()

    def make(text):
        program.write_text(text)
        program.chmod(0o755)
        return asyncio.run(run())

    return make


def machine(reason, events=0):
    return MACHINE.format(python=sys.executable, reason=reason, events=events)


def test_a_reset_is_told_from_a_power_off(ended):
    assert ended(machine("guest-reset"))
    assert not ended(machine("guest-shutdown"))


def test_the_end_of_a_machine_that_has_told_of_much_is_heard(ended):
    """Lost: the board's reboot, for nobody read what its monitor said before, and there was no room for more."""
    assert ended(machine("guest-reset", events=20_000))


def test_one_that_ends_at_once_is_no_error(ended):
    """Lost: the PDU of all boards, to a broken pipe."""
    for _turn in range(20):
        assert not ended("#!/bin/false\n")
