# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is told of work that says nothing for a while. If these fail, people end a play that only takes its time."""

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
        assert first.wait(30)
    assert told == ["p1: board_reconcile has taken 0 s so far"]


@pytest.mark.parametrize(
    ("module", "given", "what", "first"),
    [
        ("board_info", {"remove": ["x"]}, "p1: board_info", telling.QUIET),
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
        ({"node": "gpu1"}, ["gpu1: instance goes on, 3 s so far, since: jackie gpu1 root made 0.5 s"]),
        ({}, []),
        ({"seconds": 6}, ["gpu1: instance goes on, 6 s so far, since: jackie gpu1 root made 0.5 s"]),
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

    def look(self, job):
        clock[0] += seconds
        return looks.pop(0)

    class Follows(progress.Follows):
        module = "hetero.compute.instance"
        _look = look

    one = Follows.__new__(Follows)
    one._task = SimpleNamespace(delegate_to=None, args={})
    one._play_context = SimpleNamespace(remote_addr="gpu1", timeout=10)
    assert one._follow(dict(job, limit=100), dict(events=[event], done=False)) == {"lines": []}
    assert told[1:] == said
