# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is told of work that says nothing for a while. If these fail, people end a play that only takes its time.

Tests plugin_utils/progress.py.
"""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.plugin_utils import progress, short_calls, telling


def test_what_lasts_is_told_early_and_then_seldom(monkeypatch):
    told, first = [], threading.Event()
    monkeypatch.setattr(telling, "tell", lambda text: (told.append(text), first.set()))
    monkeypatch.setattr(telling, "QUIET", 3600.0)
    with telling.told_while_it_lasts("p1: board_reconcile", first=0.01):
        assert first.wait(300)
    assert told == ["p1: board_reconcile has taken 0 s so far"]


@pytest.mark.parametrize(
    ("module", "given", "what", "first"),
    [
        ("board_info", {"remove": ["x"]}, "p1: board_info", telling.QUIET),
        ("instance", {"instance": "jackie", "state": "rebuilt"}, "p1: rebuild of jackie", telling.QUIET),
        ("image_store", {"name": "debian-12", "source": "/srv/x.tar"}, "p1: import of debian-12", telling.QUIET),
        ("image_store", {"state": "collected"}, "p1: image_store", telling.QUIET),
        ("gpu_reconcile", {}, "p1: gpu_reconcile, which looks who can open which GPU and", telling.FIRST),
        ("board_reconcile", {"adopt": [], "remove": None}, "p1: board_reconcile, which looks at", telling.FIRST),
        (
            "board_reconcile",
            {"adopt": ["eve"], "remove": ["board7", "board8"]},
            "p1: board_reconcile, which adopts eve and removes what lies there of board7, board8,",
            telling.FIRST,
        ),
        (
            "board_reconcile",
            {"forget": list("abcdefg")},
            "p1: board_reconcile, which ends the claims of a, b, c, d, e and more,",
            telling.FIRST,
        ),
    ],
)
def test_what_is_waited_for(module, given, what, first):
    text, seconds = short_calls.lasts("p1", module, given)
    assert (text.startswith(what), seconds) == (True, first)


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
