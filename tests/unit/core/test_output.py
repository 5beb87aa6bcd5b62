# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What programs print is kept up to a bound, and they end when it or the time is over.

Tests core/command.py.
"""

from __future__ import annotations

import os
import resource
import sys
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.command import Limits, command, ended
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.output import TooMuch


def gone(pid):
    """Whether a process that was killed is gone; it is another's child, so it takes a moment."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


def test_output_errors_and_input():
    """Lost: the words of every program that the collection runs."""
    done = ended(["sh", "-c", "cat; echo bad >&2; exit 3"], stdin="é\r\nb\n" * 50000)
    assert (done.returncode, done.stdout, done.stderr) == (3, "é\nb\n" * 50000, "bad\n")


def test_input_that_nobody_reads():
    """Lost: a program that ends early takes the module with it."""
    assert ended(["true"], stdin="x" * 10**6).returncode == 0


def test_a_flood_ends_at_the_bound(tmp_path):
    """Lost: the memory of the proxy node, to whoever answers at a PDU's or a board's address."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(TooMuch, match="printed more than 1024 KiB") as error:
        ended(["sh", "-c", f"echo $$ > {tmp_path}/pid; yes & exec yes"], "pdu-a", "look at it", Limits(most=1 << 20))
    assert error.value.thing == "pdu-a"
    assert len(error.value.facts["said"]) <= 2000
    assert gone(int((tmp_path / "pid").read_text()))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 << 10


def test_a_program_that_hangs_is_ended_with_what_it_said():
    """Lost: why it hangs; and its children stay."""
    for seconds in (0.3, 10.0):  # a busy machine needs longer to say it
        start = time.monotonic()
        with pytest.raises(TimedOut, match=rf"sh did not end within {seconds:g} s") as error:
            ended(["sh", "-c", "echo here; echo there >&2; sleep 300"], limits=Limits(seconds))
        assert time.monotonic() - start < seconds + 60
        if error.value.facts["said"] == "there\nhere\n":
            break
    assert error.value.facts["said"] == "there\nhere\n"


def test_a_program_is_looked_at():
    """Lost: how far a copy is, for whoever waits for it."""
    seen = []
    ended(["sleep", "0.7"], look=seen.append)
    assert seen
    assert seen[0] > 0


def test_what_is_no_program():
    """Lost: the name of what is to be installed."""
    with pytest.raises(HeteroError, match="program no-such is not installed"):
        command(["no-such"])
    with pytest.raises(HeteroError, match=r"ended with 1 and said: it broke"):
        command([sys.executable, "-c", "raise SystemExit('it broke')"])
