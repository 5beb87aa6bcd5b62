# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two verbs on one container at once: the second has looked, and waits for the lock, while the first is at work. If
these fail, a tenant is told that an instance stays which is gone, or what is left is what neither of the two asked for.

Boards have the same in sweep/test_interleaved.py.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.compute_host import reap

#: Seconds for the other verb to begin to wait, and to end.
LIMIT = 600


@pytest.fixture
def second(monkeypatch):
    """Return a function that has another verb begin, and wait for the lock, as soon as a step of the first is reached.

    The first one's step goes on once the second waits. The function returns a function for the second one's result.
    """
    waits, real = threading.Event(), lifecycle.lock

    def lock(folder, name, verb, actor, deadline, waiting):
        def tell(text):
            waiting(text)
            waits.set()

        return real(folder, name, verb, actor, deadline, tell)

    monkeypatch.setattr(lifecycle, "lock", lock)
    with ThreadPoolExecutor(max_workers=1) as thread:

        def begin(step, verb):
            begun, going = getattr(lifecycle, step), []

            def at(*given, **named):
                if not going:
                    going.append(thread.submit(verb))
                    assert waits.wait(LIMIT), going[0].result(0)
                return begun(*given, **named)

            monkeypatch.setattr(lifecycle, step, at)
            return lambda: going[0].result(LIMIT)

        yield begin


def turn(site, said):
    """Return whether a turn of the reaper could end all; it adds to `said` what the journal shows."""
    with site.host() as host:
        return reap.reap(host, said.append)


def expire(site):
    with site.host() as host:
        host.store.put("ml-8", expires=time.time() - 120)


def extend(site):
    return site.do(lifecycle.extended, lease_hours=3.0)


def test_a_lease_that_is_extended_while_the_reaper_waits_holds(claims, second):
    """Lost: an instance whose owner was told that it stays."""
    claims.claim(lease_hours=1)
    expire(claims)
    said = []
    reaper = second("as_date", lambda: turn(claims, said))
    extended = extend(claims)
    assert (extended.get("failed", False), extended["changed"]) == (False, True)
    assert reaper()
    assert said == []
    (left,) = claims.info()["instances"]
    assert left["expires"] > time.time() + 10000


def test_a_lease_whose_end_has_begun_is_extended_for_nobody(claims, second):
    """Lost: the truth: an owner who extends his lease while the reaper ends it hears that it is kept."""
    claims.claim(lease_hours=1)
    expire(claims)
    said = []
    extension = second("shown", lambda: extend(claims))
    assert turn(claims, said)
    assert said == ["ml-8 of jo: its lease is over since 2 min; ended, its devices are free"]
    assert "ml-8: was given back meanwhile" in extension()["msg"]
    assert claims.info()["instances"] == []


def test_what_is_terminated_while_it_is_provisioned_is_gone(site, second):
    """Lost: the GPUs of a container that nobody has any more, or its root, to a play that went on with it."""
    site.claim()
    end = second("bring_up", lambda: site.do(lifecycle.absent))
    assert not site.up().get("failed")
    assert not end().get("failed")
    assert site.nothing_is_left()


def test_what_is_provisioned_while_it_is_terminated_is_not_made(claims, second):
    """Lost: the same, where the end came first."""
    claims.claim()
    up = second("shown", claims.up)
    assert not claims.do(lifecycle.absent).get("failed")
    assert "ml-8: was given back meanwhile" in up()["msg"]
    assert claims.nothing_is_left()
