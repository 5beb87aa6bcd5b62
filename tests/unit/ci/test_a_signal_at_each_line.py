# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A job that is cancelled or killed at any line of `board` (each_line/sitecustomize.py). If these fail, a board is kept
that nobody has, or the job's next try loses the one that it has just got.
"""

from __future__ import annotations

import contextlib
import fcntl
import signal

import pytest

from ansible_collections.hetero.compute.tests.unit.ci.conftest import EACH_LINE, LIMIT

#: More lines than any verb comes to.
MOST = 1500
#: Every so many lines, in the tests that are not long, and in those that are.
SAMPLE, LONG_SAMPLE = 53, 7
WORDS = {"run": ("--flavor", "x", "--name", "mine", "--", "true"), "take": ("--flavor", "x", "--name", "mine")}
CUT = [(verb, number) for verb in WORDS for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)]


class Cut:
    """A verb that gets a signal at one of its lines.

    :ivar line: which line that was; "" where the verb has fewer.
    """

    def __init__(self, machine, verb, number, meant, function=""):
        self.machine = machine
        log = machine.folder / "line"
        log.unlink(missing_ok=True)
        own = dict(AT_LINE=f"{int(number)} {meant} {function}", AT_LINE_LOG=str(log), AT_PROGRAM="command")
        own.update(PYTHONPATH=str(EACH_LINE), PYTHONDONTWRITEBYTECODE="1")
        self.process = machine.start(verb, *WORDS[verb], **own)
        self.out, self.said = self.process.communicate(timeout=LIMIT)
        self.code, self.line = self.process.returncode, log.read_text() if log.exists() else ""

    def has(self):
        """Return whether the site has an instance for the job, and what is left in its folder for keys."""
        ended = [options["instance"] for verb, options in self.machine.calls if verb == "terminate_instance"]
        taken = [options["instance"] for verb, options in self.machine.calls if verb == "provision_instance"]
        return bool(taken) and not ended, sorted(path.name for path in self.machine.state.glob("*"))


def cut_at(machine, verb, number, step):
    """Cut a verb at each line of so many; give back what it has left; check both."""
    for meant in range(1, MOST, step):
        (machine.folder / "calls").unlink(missing_ok=True)
        cut = Cut(machine, verb, number, meant)
        if not cut.line and cut.code == 0:
            assert meant > 200, "a verb has some lines"
            assert machine.run("give-back", "--name", "mine")[0] == 0
            return
        if number == signal.SIGKILL:  # its keeper gives back what there is, and whoever asks next waits for that
            assert machine.run("give-back", "--name", "mine")[0] == 0
        has, left = cut.has()
        assert "Traceback" not in cut.said, (cut.line, cut.said)
        assert left == ["mine"] * has, (cut.line, cut.code, machine.calls)
        is_told = cut.out.splitlines()[-1:] == [f"export HETERO_SSH='ssh -F {machine.state}/mine/ssh_config mine'"]
        if has:
            assert is_told, (cut.line, cut.code, cut.out)
            assert machine.run("give-back", "--name", "mine")[0] == 0
        elif number != signal.SIGKILL:  # one that is killed right then has told of it
            assert not is_told, (cut.line, cut.code, cut.out)
    raise AssertionError(f"board {verb} has more lines than {MOST}")


def test_a_second_take_that_is_killed_leaves_what_the_first_one_told(machine):
    """Lost: the way to the board that a job works on, as a file of it was half written."""
    assert machine.run("take", *WORDS["take"])[0] == 0
    folder = machine.state / "mine"
    told = {name: (folder / name).read_bytes() for name in ("board.json", "asked.json", "ssh_config", "key")}
    for meant in range(1, MOST):
        cut = Cut(machine, "take", signal.SIGKILL, meant, "_write")
        assert {name: (folder / name).read_bytes() for name in told} == told, cut.line
        if not cut.line:
            assert (cut.code, meant > 5) == (0, True), cut.said
            return


@pytest.mark.parametrize("verb", list(WORDS))
def test_no_lock_is_left_of_a_job_that_is_killed_as_it_ends(machine, verb):
    """Lost: a file of each such job, for ever."""
    cut = Cut(machine, verb, signal.SIGKILL, 1, "__exit__")
    assert (cut.code, "keeper.py" in cut.line) == (-signal.SIGKILL, True)
    lock = machine.state / "mine.lock"
    with contextlib.suppress(FileNotFoundError), open(lock, encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # its keeper has it until it has ended
    assert not lock.exists()


@pytest.mark.parametrize(("verb", "number"), CUT)
def test_nothing_is_left_of_it_where_it_is_cut_off(machine, verb, number):
    """Lost: a board until its lease ends, for a job that is over; or a lock, a key and a folder of each such job."""
    cut_at(machine, verb, number, SAMPLE)


@pytest.mark.long
@pytest.mark.parametrize(("verb", "number"), CUT)
def test_nothing_is_left_of_it_wherever_it_is_cut_off(machine, verb, number):
    """Lost: the same, at the lines between."""
    cut_at(machine, verb, number, LONG_SAMPLE)
