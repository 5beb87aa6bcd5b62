# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the end of instances tells. If these fail, who ends an instance is not told that it has moved and may run on
elsewhere, or is told so of another's.
"""

from __future__ import annotations

from types import SimpleNamespace

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import CLAIM_PHASE
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.told_of_ends import (
    EVENTS,
    freed,
    moved_away,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.verb_options import Options
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.moves import GONE, PHASE

LOOKED_UP = 100.0
TO_GPU2 = GONE.format(host="gpu2")


def event(instance="lab-1", time=LOOKED_UP + 1, phase=PHASE, text=TO_GPU2):
    return SimpleNamespace(instance=instance, time=time, phase=phase, text=text)


def moved(*events, claims=(), **options):
    """What is told of the end of request lab, whose instances were claimed at that time."""

    def newest(address, most):
        assert (address, most) == (None, EVENTS)
        return events

    store = SimpleNamespace(newest_events=newest, claim_of=dict.fromkeys(claims, "its claim").get)
    return moved_away(SimpleNamespace(store=store), "lab", Options(**dict(dict(created=(LOOKED_UP,)), **options)))


def test_what_moved_since_it_was_looked_up_is_told_with_its_host():
    """Lost: an instance that runs on, and is paid for, where its tenant was told that it has ended."""
    assert moved(event(), event("lab-2", text=GONE.format(host="gpu3"))) == {"lab-1": "gpu2", "lab-2": "gpu3"}
    assert moved(event("lab")) == {"lab": "gpu2"}
    assert moved(event(), event("lab-2"), numbers=[2]) == {"lab-2": "gpu2"}
    assert moved(event(time=LOOKED_UP - 3600)) == {"lab-1": "gpu2"}, "the clock of the host that claimed it was ahead"


def test_what_did_not_move_away_since_is_not_told():
    """Lost: trust, to a move of before that claim, of another request, or of an instance that is back here."""
    others = event("lab2-1"), event("lab-x"), event(None), event(phase="error")
    assert moved(*others, event(text="it is on its way to gpu2")) == {}
    assert moved(event(), event(phase=CLAIM_PHASE, text="claimed by jo")) == {}
    assert moved(event(), claims=["lab-1"]) == {}
    assert moved(event(), created=()) == {}, "nobody looked it up"


def test_devices_are_free_again_or_gone():
    """Lost: that a card was taken out of the host, to whoever waits for it."""
    there, gone = SimpleNamespace(address="0000:01:00.0"), SimpleNamespace(address="0000:02:00.0")
    work = SimpleNamespace(is_on_host=lambda row: row is there)
    assert freed(work, [there, gone]) == "; free again: 0000:01:00.0; no more on this host: 0000:02:00.0"
    assert (freed(work, [there]), freed(work, [])) == ("; free again: 0000:01:00.0", "")
