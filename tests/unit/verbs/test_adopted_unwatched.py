# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A boot whose play was killed, and a database that was lost or is older: an adopted claim keeps what is known of its
board's power. If these fail, a tenant's work goes when she asks again and the image is slow; or what runs cannot be
ended, or is ended with its board on and its disks as they were.
"""

from __future__ import annotations

import json
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import presence
from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import FLAVOR, KEY
from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import (
    found,
    lose,
    reconcile,
    record,
    rewrite,
)

REQUEST = dict(instance="jackie", owner="jackie", flavor=FLAVOR, image="debian", ssh_public_key=KEY)
SLOW = dict(tftp=0.0, nfs=0.0, running=0.0, stall="running")


@pytest.fixture
def killed(site):
    """Jackie's play ended once her board was switched on; the board came up, and she wrote into her root."""
    image = dict(boards=[0], image="debian", ssh_public_key=KEY, instance="jackie")
    assert not site.module("board_claim", **REQUEST).get("failed")
    assert not site.module("board_image", **image).get("failed")
    assert not site.module("tilera_boot", boards=[0], timeout=10, instance="jackie", wait=False).get("failed")
    time.sleep(0.2)
    data(site).write_text("her work")
    return site


def data(site):
    return site.state / "board-roots" / "fs_0" / "root" / "data"


def verb(site, **given):
    return site.module("instance", kind="board", **dict(dict(instance="jackie", timeout=2), **given))


def ask_again(site):
    """She asks for the same again, and the board is too slow for the time that it is given."""
    site.wire(0, fake=SLOW)
    return verb(site, state="running", attempts=1, **REQUEST)


@pytest.mark.parametrize("database", ["there", "behind", "lost"])
def test_a_root_that_may_have_been_used_stays_where_its_board_does_not_come_up(killed, database):
    """Lost: her root, by the fault of an image: all lost power, and only the database was lost besides.

    Or it is behind her record, as by an extend_instance that was killed between the two.
    """
    killed.cut(0)
    if database == "lost":
        lose(killed)
    elif database == "behind":
        rewrite(killed, expires=time.time() + 86400)
    reconcile(killed)
    said = ask_again(killed)
    assert (killed.state / "board-roots" / "fs_0").exists(), [line["text"] for line in said["lines"]]
    assert data(killed).read_text() == "her work"


@pytest.mark.parametrize("state", ["shutting down", "error"])
def test_a_root_that_may_have_been_used_stays_where_a_stop_failed(killed, state):
    """Lost: the same, where a stop of the boot had failed (its PDU was lost, or stuck) before the database was lost."""
    rewrite(killed, state=state, note="still on")
    killed.cut(0)
    lose(killed)
    reconcile(killed)
    verb(killed, state="stopped")
    said = ask_again(killed)
    assert data(killed).exists(), [line["text"] for line in said["lines"]]


@pytest.mark.parametrize("database", ["there", "lost"])
@pytest.mark.parametrize("state", ["stopped", "absent"])
def test_what_shows_its_key_when_it_is_adopted_has_run(killed, database, state):
    """Lost: each way to stop or to end what runs; the one that is printed (terminate_instance) is refused, too."""
    if database == "lost":
        lose(killed)
    reconcile(killed)
    with killed.proxy() as proxy:
        assert proxy.store.has_run(proxy.store.claim_of("jackie"))
    result = verb(killed, state=state)
    assert (bool(result.get("failed")), killed.outlets()["1"]) == (False, "off"), result.get("msg")


def test_the_record_knows_that_she_may_have_run(killed, monkeypatch):
    """Lost: that, with the database: records are never older than it."""
    monkeypatch.setattr(presence, "QUIET", 0.2)
    killed.wire(0, fake=SLOW)
    with killed.proxy() as proxy:
        proxy.store._db.write("UPDATE events SET time = time - 3600")  # the time of the boot is over
    assert "its tenant's work goes on" in killed.module("tilera_boot", boards=[0], timeout=1, instance="jackie")["msg"]
    with killed.proxy() as proxy:
        assert proxy.store.has_run(proxy.store.claim_of("jackie"))
    assert json.loads(record(killed).read_text())["ran"]


@pytest.mark.parametrize("never", [False, True])
def test_a_board_left_on_is_adopted_as_one_that_had_power(site, never):
    """Lost: her root, below a board that goes on running from it, by the end of an instance in error that was adopted.

    One that was on for nobody, by its record's note, is left on all the same: somebody may be at work there.
    """
    asked = dict(boards=[0], instance="jackie")
    site.wire(0, fake=dict(tftp=0.0, stall="tftp"))
    assert not site.module("board_claim", **REQUEST).get("failed")
    assert not site.module("board_image", image="debian", ssh_public_key=KEY, **asked).get("failed")
    if never:
        site.pdu(board0="on")
    else:
        # one call, from power on to the order that the outlet does not obey: of a second one, that on a busy machine
        # begins when the boot's time is over, nobody knows whether the board came up meanwhile
        site.pdu(faults={"welded": ["1"]})
    site.module("tilera_boot", timeout=1, retries=0, **asked)
    kept = json.loads(record(site).read_text())
    assert (kept["state"], kept["ran"], site.outlets()["1"]) == ("error", False, "on")
    site.pdu()
    lose(site)
    assert found(reconcile(site, adopt=["jackie"]))[0][1] == "adopted"
    result = verb(site, state="absent")
    assert (bool(result.get("failed")), site.outlets()["1"]) == (False, "on" if never else "off"), result.get("msg")
