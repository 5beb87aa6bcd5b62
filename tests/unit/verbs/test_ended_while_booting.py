# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An instance that is ended while its board is waited for. If these fail, who terminates what never comes up waits
until the boot is given up, some ten minutes; or ends what another call has just brought up.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager

import pytest

from ansible_collections.hetero.compute.tests.unit.verbs.test_instance_on_boards import REQUEST, fake, root

#: Seconds that a boot may take, and within which it is over where nobody waits for it any more.
BOOT, AT_ONCE = 300, 60
#: What the end of its lease says.
OVER = "board0: jackie of jackie: its lease is over since 2 min; off, cleaned, free"


def verb(site, state="running", **given):
    return site.module("instance", kind="board", instance="jackie", owner="jackie", state=state, timeout=BOOT, **given)


def until(is_so, what, limit=AT_ONCE):
    end = time.monotonic() + limit
    while not is_so():
        assert time.monotonic() < end, what
        time.sleep(0.05)


@contextmanager
def meanwhile(work):
    """Another process that does this; the block gets a function that waits for its result."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            os.write(writer, json.dumps(work(), default=str).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as answer:
        try:
            yield lambda: json.loads(answer.read() or '"died"')
        finally:
            os.waitpid(pid, 0)


@pytest.fixture
def booting(site):
    """A request that waits for boards which never come up, in a process of its own."""
    fake(site, 0, stall="nfs")
    fake(site, 1, stall="nfs")

    @contextmanager
    def begin(boards=(0,), **given):
        asked = {name: value for name, value in REQUEST.items() if name != "owner"}
        with meanwhile(lambda: verb(site, **asked, **given)) as result:
            until(lambda: all(on(site, board) for board in boards), "its board was never switched on")
            yield result

    return begin


def on(site, board):
    return [event for event in site.events(board, "power") if "read back" in event.text]


def waits(site, words):
    return [event for event in site.events(0, "wait") if words in event.text]


def ended(site, **given):
    since = time.monotonic()
    result = verb(site, state="absent", **given)
    assert not result.get("failed"), result
    assert time.monotonic() - since < AT_ONCE
    return result


def test_what_is_terminated_while_it_boots_is_gone_at_once(site, booting):
    with booting() as result:
        assert ended(site)["changed"]
        assert (site.outlets()["1"], root(site).exists(), site.board_of("jackie")) == ("off", False, None)
        start = result()
    assert (start["failed"], start["blame"]) == (True, None)
    assert "board0: jackie is being ended, so its boot is not waited for" in start["msg"]
    assert "claimed" not in start["msg"], "who asked would look for an instance that is gone"


def test_what_is_stopped_while_it_boots_is_off_at_once_and_stays_claimed(site, booting):
    """Lost: minutes until a stop of one that waits for its turn begins; or the word that the instance is still hers."""
    with booting() as result:
        since = time.monotonic()
        stopped = verb(site, state="stopped")
        assert not stopped.get("failed"), stopped
        assert time.monotonic() - since < AT_ONCE
        assert (site.outlets()["1"], root(site).exists(), site.board_of("jackie")) == ("off", True, 0)
        start = result()
    assert (start["failed"], start["blame"]) == (True, None)
    assert "board0: jackie is being stopped, so its boot is not waited for" in start["msg"]
    assert "jackie on board0 stays claimed" in start["msg"]


def test_what_moves_while_it_boots_does_not_wait_for_that_boot(site, booting):
    """Lost: ten minutes of who moves an instance away from a board that does not come up."""
    with booting() as result:
        fake(site, 1)
        since = time.monotonic()
        moved = verb(site, state="migrated")
        assert not moved.get("failed"), moved
        assert time.monotonic() - since < AT_ONCE
        assert (site.outlets()["1"], site.board_of("jackie")) == ("off", 1)
        assert "so its boot is not waited for" in result()["msg"]


def test_all_instances_of_a_request_are_gone_at_once(site, booting):
    """Lost: the time of each of them but the first."""
    with booting(count=2, boards=(0, 1)):
        ended(site)
        assert (site.outlets()["1"], site.outlets()["2"]) == ("off", "off")


def test_a_dry_run_ends_no_boot(site, booting):
    """Lost: an instance, by a look at what its end would do."""
    with booting():
        verb(site, state="absent", check=True)
        assert (site.outlets()["1"], site.board_of("jackie")) == ("on", 0)
        assert not waits(site, "is being ended")
        ended(site)


def test_what_takes_back_claims_that_never_ran_leaves_a_boot_alone(site, booting):
    """Lost: an instance that comes up, where another call of the same request gives up."""
    with booting(), meanwhile(lambda: verb(site, state="absent", never_ran=True)):
        until(lambda: waits(site, "held by"), "it never waited")
        with pytest.raises(AssertionError, match="it still boots"):
            until(lambda: waits(site, "is being ended"), "it still boots", 2.0)
        assert (site.outlets()["1"], site.board_of("jackie")) == ("on", 0)
        ended(site)


def test_a_lease_that_is_over_ends_although_a_boot_is_waited_for(site, booting):
    """Lost: a board, to whoever has it boot for as long as a boot may take."""
    with booting() as result:
        site.expire()
        assert site.turn() == dict(said=[OVER], failed=False)
        assert (site.outlets()["1"], site.board_of("jackie")) == ("off", None)
        assert "board0: jackie is being ended, so its boot is not waited for" in result()["msg"]


def test_a_lease_that_is_over_ends_although_others_wait_to_boot_it_anew(site, booting):
    """Lost: all ends of leases, to who has several plays reboot an instance in turns: one of them has always begun."""
    with booting() as result, meanwhile(lambda: verb(site, state="rebooted")) as again:
        until(lambda: waits(site, "held by"), "it never waited")
        site.expire()
        assert site.turn() == dict(said=[OVER], failed=False)
        assert (site.outlets()["1"], site.board_of("jackie")) == ("off", None)
        result()
        assert again()["failed"]
