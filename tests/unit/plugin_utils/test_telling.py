# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is told of work that says nothing for a while. If these fail, people end a play that only takes its time.

Tests plugin_utils/progress.py.
"""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from ansible_collections.hetero.compute.plugins.callback import quiet
from ansible_collections.hetero.compute.plugins.plugin_utils import progress, telling

ROOT = Path(__file__).resolve().parents[3]
#: Modules that touch no node: what they do is computed where the play runs.
COMPUTED = {"hand_over", "request", "show", "ssh_config"}
MODULES = {path.stem for path in (ROOT / "plugins" / "modules").glob("*.py")} - COMPUTED


def test_what_lasts_is_told_early_and_then_seldom(monkeypatch):
    told, first = [], threading.Event()
    monkeypatch.setattr(telling, "tell", lambda text: (told.append(text), first.set()))
    monkeypatch.setattr(telling, "QUIET", 3600.0)
    monkeypatch.setattr(telling, "FIRST", 0.01)
    with telling.told_while_it_lasts("p1: board_reconcile"):
        assert first.wait(300)
    assert told == ["p1: board_reconcile has taken 0 s so far"]


def test_whether_somebody_reads_it_is_known(monkeypatch):
    """Lost: a node that is asked for ten minutes more, for `watch | head`."""
    read, write = os.pipe()
    with subprocess.Popen(["sleep", "600"], stdout=write) as play:
        monkeypatch.setattr(telling.os, "getppid", lambda: play.pid)
        try:
            os.close(write)
            assert telling.is_read()
            os.close(read)
            assert not telling.is_read()
        finally:
            play.kill()


#: A play whose callback finds the pipe broken, and prints nowhere from then on.
GOES_ON = "read line; exec >/dev/null; echo nowhere >&2; exec sleep 600"


def test_a_reader_that_goes_is_known_whatever_the_callback_prints_to_then(monkeypatch):
    """Lost: the same, with callback quiet: `watch | head` went on for a day."""
    read, write = os.pipe()
    pipes = dict(stdin=subprocess.PIPE, stdout=write, stderr=subprocess.PIPE)
    with subprocess.Popen(["sh", "-c", GOES_ON], **pipes) as play:
        monkeypatch.setattr(telling.os, "getppid", lambda: play.pid)
        try:
            os.close(write)
            assert telling.is_read()
            os.close(read)
            play.stdin.write(b"\n")
            play.stdin.flush()
            assert play.stderr.readline() == b"nowhere\n"
            assert not telling.is_read()
        finally:
            play.kill()


def test_a_task_that_begins_when_the_reader_has_gone_knows_that(monkeypatch, tmp_path):
    """Lost: the same, where the reader went before the watch began."""
    monkeypatch.setattr(telling, "_nowhere", threading.Event())
    assert telling.is_read()
    with open(tmp_path / "out", "w", encoding="ascii") as out:
        monkeypatch.setattr(quiet.sys, "stdout", out)
        quiet._print_nowhere()
        assert os.readlink(f"/proc/self/fd/{out.fileno()}") == os.devnull
    assert not telling.is_read()


def test_no_wait_is_longer_than_people_have_patience():
    """Lost: a play that is ended by hand at a PDU that only takes its time. Ten seconds are the most of which a person
    takes silence for work (Nielsen, Usability Engineering, 1993, 5.5).
    """
    assert telling.FIRST <= 2
    assert max(telling.QUIET, progress.AGAIN) <= 10


@pytest.mark.parametrize("module", sorted(MODULES))
def test_what_may_take_long_is_told_while_it_does(module):
    """Lost: whether a PDU, a driver, a node's disk or an import is waited for: for a minute and more nothing was
    said.
    """
    routed = yaml.safe_load((ROOT / "meta" / "runtime.yml").read_text())["plugin_routing"]["modules"]
    own = (ROOT / "plugins" / "action" / f"{module}.py").exists()
    assert own or "action_plugin" in routed.get(module, {}), module


@pytest.mark.parametrize(("error", "log_only"), [(PermissionError, False), (BrokenPipeError, True)])
def test_a_pipe_that_another_user_made_has_the_lines_as_well(monkeypatch, error, log_only):
    """Lost: each line of a play's progress, for who runs it as another user and into a pipe (sudo -u … | tee)."""
    shown = []

    def refused(path, data):
        raise error

    monkeypatch.setattr(telling, "_is_pipe", lambda path: True)
    monkeypatch.setattr(telling, "_write", refused)
    monkeypatch.setattr(telling.display, "display", lambda text, log_only=False: shown.append((text, log_only)))
    telling.tell("jackie  board0  running")
    assert shown == [("jackie  board0  running", log_only)]


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ({"node": "gpu1"}, ["gpu1: start of jackie goes on, 3 s so far, since: jackie gpu1 root made 0.5 s"]),
        ({}, []),
        ({"seconds": 6}, ["gpu1: start of jackie goes on, 6 s so far, since: jackie gpu1 root made 0.5 s"]),
    ],
)
def test_work_that_is_followed_and_silent_says_that_it_goes_on(monkeypatch, job, said):
    """Lost: whether anything is still done, between two steps of a container."""
    clock, told = [0.0], []
    seconds = job.pop("seconds", 3)
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(progress, "tell", told.append)
    event = (1, "gpu1", "jackie", "", "root made", 0.5)
    looks = [dict(events=[], done=False), dict(events=[], done=True, result='{"lines": []}')]

    def look(self, job, _lines):
        clock[0] += seconds
        return looks.pop(0)

    class Follows(progress.Follows):
        module = "hetero.compute.instance"
        _look = look

    one = Follows.__new__(Follows)
    one._task, one._name = SimpleNamespace(delegate_to=None, args=dict(instance="jackie")), "gpu1"
    one._play_context = SimpleNamespace(remote_addr="10.0.2.254", timeout=10)
    assert one._follow(dict(job, limit=100), dict(events=[event], done=False)) == {"lines": []}
    assert told[1:] == said


@pytest.mark.parametrize("job", [{"node": "gpu1"}, {}])
def test_work_of_which_nothing_is_told_yet_says_so_soon(monkeypatch, job):
    """Lost: what is waited for, while a PDU that hangs keeps the first word of a boot back."""
    clock, told = [0.0], []
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(progress, "tell", told.append)
    looks = [dict(events=[], done=False), dict(events=[], done=True, result="{}")]

    class Follows(progress.Follows):
        module, _name = "hetero.compute.instance", "p1"

        def _look(self, job, _lines):
            clock[0] += job["wait"]
            return looks.pop(0)

    one = Follows.__new__(Follows)
    one._task = SimpleNamespace(delegate_to=None, args=dict(instance="jackie", state="rebooted"))
    one._play_context = SimpleNamespace(remote_addr="10.0.2.254", timeout=10)
    one._follow(dict(job, limit=100), dict(events=[], done=False))
    assert told == ["p1: reboot of jackie goes on, 2 s so far"]


def test_what_was_said_of_silent_work_is_not_said_again(monkeypatch):
    """Lost: the one line of a log that says something new, among twenty that repeat the last one."""
    clock, told = [0.0], []
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(progress, "tell", told.append)
    event = (1, "board0", "jackie", "power", "off → on", 0.5)

    def looks():
        for second in range(1, 26):
            clock[0] = float(second)
            yield dict(events=[], done=False)
        yield dict(events=[(2, "board0", "jackie", "tftp", "fetched", 25.0)], done=False)
        clock[0] = 30.0
        yield dict(events=[], done=False)
        yield dict(events=[], done=True, result="{}")

    class Follows(progress.Follows):
        module, _name, news = "hetero.compute.instance", "p1", looks()

        def _look(self, job, _lines):
            return next(self.news)

    one = Follows.__new__(Follows)
    one._task = SimpleNamespace(delegate_to=None, args=dict(instance="jackie", state="rebooted"))
    one._play_context = SimpleNamespace(remote_addr="10.0.2.254", timeout=10)
    one._follow(dict(limit=100), dict(events=[event], done=False))
    silent = [line for line in told if "goes on" in line]
    assert silent == [
        "p1: reboot of jackie goes on, 5 s so far, since: jackie board0 power off → on 0.5 s",
        "p1: reboot of jackie goes on, 15 s so far",
        "p1: reboot of jackie goes on, 25 s so far",
        "p1: reboot of jackie goes on, 30 s so far, since: jackie board0 tftp fetched 25.0 s",
    ]
