# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Another machine that answers at a board's address, whatever the board's outlet. If these fail, it is believed: a
tenant's board is cut, freed or given a new root by what a stranger's sshd says.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import starts
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import power_proof, presence
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY as PUBLIC
from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import FLAVOR

QUICK = {"tftp": 0.0, "nfs": 0.0, "running": 0.0}
OWN = dict(boards=[0], instance="jackie", timeout=2)
#: Who answers is said by its address, and what to look at.
KEY = "another host key than its own answers at its address 10.0.2.1: see which machine that is"
LIVES = "something answers at 10.0.2.1: outlet 1 does not feed this board, or its address is taken: look at its plug"
ROOT = "it has mounted its root, and 10.0.2.1 shows another host key than the one that is known"
#: Verb → its module, what is said of the board, and whether its outlet stays as it is.
VERBS = {
    "start": ("tilera_boot", OWN, KEY, True),
    "stop": ("tilera_boot", dict(OWN, state="stopped", keep=True), KEY, True),
    "soft reboot": ("tilera_boot", dict(OWN, state="rebooted", soft_timeout=1), KEY, True),
    "hard reboot": ("tilera_boot", dict(OWN, state="rebooted", how="hard"), ROOT, True),
    "rebuild": ("board_rebuild", dict(instance="jackie", image="debian-13"), KEY, True),
    "terminate": ("tilera_boot", dict(OWN, state="stopped"), LIVES, False),
}


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    """A played machine answers at once or never."""
    for module, name, value in (
        (presence, "QUIET", 0.05),
        (presence, "LONGEST", 0.1),
        (presence, "PROOF", 0.05),
        (starts, "SHORT_PATIENCE", 0.05),
        (power_proof, "LINGER", 0.1),
        (power_proof, "LOOK", 0.02),
    ):
        monkeypatch.setattr(module, name, value)


def answers(site, taken):
    """A stranger comes to board 0's address, or leaves it."""
    site.wire(0, fake=dict(QUICK, taken=taken))


def there(site):
    """What is there but for power, states and boot entries."""
    return {name: found for name, found in site.what_is_there().items() if name not in ("power", "states", "tftp")}


@pytest.mark.parametrize("verb", VERBS)
def test_a_stranger_costs_nobody_root_or_claim(jackie, verb):
    """What cuts power on an operator's word says afterwards that the board lives on, and goes no further."""
    module, given, said, stays = VERBS[verb]
    data = jackie.state / "board-roots" / "fs_0" / "root" / "root" / "data"
    data.write_text("the tenant's own")
    before = there(jackie)
    answers(jackie, True)
    result = jackie.module(module, **given)
    assert result["failed"]
    assert said in result["msg"]
    assert there(jackie) == before
    assert (jackie.outlets()["1"] == "on") == stays
    if verb in ("start", "stop"):
        assert jackie.events(0, "error")[-1].text == f"the board is left as it is: {KEY.partition(': ')[0]}"
    answers(jackie, False)
    if verb in ("hard reboot", "terminate"):
        assert not jackie.module("tilera_boot", **dict(OWN, state="stopped", keep=True))["failed"]
    assert not any(result.get("failed") for result in jackie.provision())
    assert jackie.what_is_there() == jackie.running("jackie")
    assert data.read_text() == "the tenant's own"


@pytest.mark.parametrize("outlet", ["on", "off"])
def test_reconcile_believes_no_stranger(jackie, outlet):
    """Lost: the record that a board runs, or the board itself, to a machine that is none of the proxy's."""
    answers(jackie, True)
    jackie.pdu(board0=outlet)
    before = jackie.what_is_there()
    result = jackie.module("board_reconcile", timeout=5)
    (found,) = result["boards"][0]["found"]
    assert "answers at 10.0.2.1: not" in found["found"]
    assert found["done"] is None
    assert jackie.what_is_there() == before


def test_a_lease_that_is_over_waits_for_the_stranger_to_go(jackie):
    """Its board's power goes, its root only when the board is known to be off."""
    answers(jackie, True)
    jackie.expire()
    before = there(jackie)
    (result,) = jackie.reap()
    assert LIVES in result["said"][0]
    assert there(jackie) == before
    answers(jackie, False)
    assert jackie.reap()[0]["failed"] is False
    assert jackie.what_is_there() == jackie.clean()


def test_who_asks_for_a_board_whose_address_is_taken_gets_another(site):
    """Lost: a tenant's login, to a stranger's machine that takes the key which was meant for the board."""
    answers(site, True)
    first = site.provision()[-1]
    assert LIVES in first["msg"]
    assert first["blame"] == "board"
    assert site.record(0).state == "error"
    request = dict(instance="bob", owner="bob", flavor=FLAVOR, image="debian", ssh_public_key=PUBLIC)
    assert [claim["board"] for claim in site.module("board_claim", **request)["boards"]] == [1]
