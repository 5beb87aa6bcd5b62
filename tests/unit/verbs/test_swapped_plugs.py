# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plugs of two boards in use that were swapped by hand. If these fail, each reboot of one tenant's instance by power
cuts the other's board, and is told as done although the board never lost its power.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import power_proof, presence
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.fake import Fake
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import boot, found, is_refused, reconcile, stop

LIVES_ON = (
    "board0: not booted anew: off by pdu-a's read-back, but something answers at 10.0.2.1: outlet 1 does not feed"
)
DOUBT = "its wiring names pdu-a outlet 1 (on), and jackie lived on while that was off"


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    """A played board is dark at once or never."""
    monkeypatch.setattr(power_proof, "LINGER", 0.1)
    monkeypatch.setattr(power_proof, "LOOK", 0.02)
    monkeypatch.setattr(presence, "PROOF", 0.5)


def plugs(site, swapped):
    """Change what the outlets feed; they and the wiring stay."""
    wires = json.loads((site.folder / "proxy.json").read_text())["boards"]
    for board, other in ((0, 1), (1, 0)):
        site.wire(board, fake=dict(wires[str(board)]["fake"], feeds=[other if swapped else board]))


def boots(site):
    return [json.loads((site.run_folder / "fake-boots" / f"board{board}").read_text())["boots"] for board in (0, 1)]


def lives(site, board):
    return json.loads((site.run_folder / "fake-boots" / f"board{board}").read_text())["on"] is not None


def breaks_as_it_is_switched_on(site, monkeypatch, fault):
    """The PDU does not switch, or is not understood any more, from the first word to switch on."""
    switch = Fake.switch

    def breaks(pdu, outlets, state):
        if state == "on":
            (site.folder / "pdu-a.json").write_text("{") if fault == "gone" else site.pdu(faults={"stuck": ["1"]})
        return switch(pdu, outlets, state)

    monkeypatch.setattr(Fake, "switch", breaks)


@pytest.fixture
def swapped(jackie):
    """Jackie on board 0, Carol on board 1, both running, each by the other's outlet."""
    assert not any(result.get("failed") for result in jackie.provision("carol"))
    plugs(jackie, True)
    return jackie


@pytest.mark.parametrize("how", ["auto", "hard"])
def test_a_reboot_that_cut_another_board_is_no_success_and_not_repeated(swapped, how):
    """Lost: Carol's power, with each reboot of Jackie's; and the word that hers was never booted anew."""
    before = boots(swapped)
    result = boot(swapped, "rebooted", how=how, soft_timeout=1)
    assert LIVES_ON in result["msg"], result["msg"]
    for word in ("look at its plug", "hetero.compute.cabling", "is on again", "reconcile -e adopt=jackie"):
        assert word in result["msg"]
    assert result["boards"][0]["power_proof"]["board"] == "something answers at 10.0.2.1"
    assert (boots(swapped), swapped.outlets()) == ([before[0], before[1] + 1], {"1": "on", "2": "on"})
    assert swapped.record(0).state == "running", "it shows its own key"
    there, before = swapped.what_is_there(), boots(swapped)
    for check in (True, False):
        is_refused(boot(swapped, "rebooted", how=how, check=check), DOUBT, "look at its plug")
        is_refused(stop(swapped, check=check), DOUBT)
        is_refused(boot(swapped, "stopped", check=check), DOUBT)
    assert not any(result.get("failed") or result["changed"] for result in swapped.provision()), "it runs"
    assert DOUBT.replace(" (on)", "") in swapped.module("board_info", boards=[0])["boards"][0]["note"]
    reconcile(swapped)
    assert (swapped.what_is_there(), boots(swapped)) == (there, before)


def test_plugs_that_are_back_are_taken_by_an_operators_word(swapped):
    """Lost: the way out, to the knowledge that was right once."""
    assert boot(swapped, "rebooted", how="hard").get("failed")
    plugs(swapped, False)
    is_refused(stop(swapped), DOUBT)
    ((text, done),) = found(reconcile(swapped))
    assert (text.startswith(DOUBT), done) == (True, None)
    ((text, done),) = found(reconcile(swapped, adopt=["jackie"]))
    assert (text, done) == ("jackie lived on while pdu-a outlet 1 was off", "noted, by an operator's word")
    before = boots(swapped)
    assert not boot(swapped, "rebooted", how="hard").get("failed")
    assert boots(swapped) == [before[0] + 1, before[1]]


def test_a_wiring_that_is_corrected_is_taken_by_an_operators_word(swapped):
    """Lost: both instances, for which the operator chose to leave the plugs as they are."""
    assert boot(swapped, "rebooted", how="hard").get("failed")
    wires = json.loads((swapped.folder / "proxy.json").read_text())["boards"]
    for board, other in ((0, 1), (1, 0)):
        swapped.wire(board, outlet=wires[str(other)]["outlet"], fake=dict(wires[str(board)]["fake"], feeds=[board]))
    is_refused(stop(swapped), "pdu-a outlet 2", "pdu-a outlet 1 last (and lived on while that was off)")
    reconcile(swapped, adopt=["jackie"])
    reconcile(swapped)
    before = boots(swapped)
    for board, name in ((0, "jackie"), (1, "carol")):
        result = boot(swapped, "rebooted", board, name, how="hard")
        assert not result.get("failed"), result
    assert boots(swapped) == [before[0] + 1, before[1] + 1]


def test_a_board_that_is_dark_proves_the_plug_that_is_back(swapped):
    """Lost: a start by the right plug, where the instance was stopped by hand meanwhile."""
    assert boot(swapped, "rebooted", how="hard").get("failed")
    plugs(swapped, False)
    swapped.cut(0)
    result = boot(swapped)
    assert not result.get("failed"), result
    assert not stop(swapped).get("failed")


def test_a_reboot_by_ssh_goes_all_the_same_and_proves_no_plug(swapped):
    """Lost: the way to a new boot that needs no outlet; or the knowledge, by a boot that no outlet began."""
    assert boot(swapped, "rebooted", how="hard").get("failed")
    wires = json.loads((swapped.folder / "proxy.json").read_text())["boards"]
    swapped.wire(0, fake=dict(wires["0"]["fake"], soft="boots"))
    before = boots(swapped)
    result = boot(swapped, "rebooted", how="soft", soft_timeout=5)
    assert not result.get("failed"), result
    assert boots(swapped) == [before[0] + 1, before[1]]
    is_refused(stop(swapped), DOUBT)


@pytest.mark.parametrize("verb", ["stop", "terminate", "rebuild"])
def test_who_cut_another_board_gives_its_power_back_and_does_not_cut_it_again(swapped, verb):
    """Lost: Carol's board, dark until somebody looks at it; or her power once more."""

    def ends():
        results = {"stop": lambda: [stop(swapped)], "terminate": swapped.terminate, "rebuild": swapped.rebuild}[verb]()
        return next(one for one in results if one.get("failed"))

    there, before = swapped.what_is_there(), boots(swapped)
    said = ends()["msg"]
    for word in ("not switched off: off by pdu-a's", "does not feed this board", "hetero.compute.cabling", "on again"):
        assert word in said, said
    assert (boots(swapped), swapped.outlets()) == ([before[0], before[1] + 1], {"1": "on", "2": "on"})
    again = ends()
    assert boot(swapped, "rebooted", how="hard").get("failed")
    assert (boots(swapped), swapped.outlets()) == ([before[0], before[1] + 1], {"1": "on", "2": "on"})
    if verb == "rebuild":
        assert swapped.record(0).state == "error", "the key that is wanted is that of a root which is not there yet"
    else:
        is_refused(again, DOUBT)
        assert swapped.record(0).state == "running", "it shows its own key"
        assert swapped.what_is_there() == there


@pytest.mark.parametrize("fault", ["stuck", "gone"])
def test_a_stop_that_could_not_switch_it_on_again_says_so(swapped, monkeypatch, fault):
    """Lost: the word that the outlet is off, which feeds another tenant's board; or a stop that never ends."""
    breaks_as_it_is_switched_on(swapped, monkeypatch, fault)
    result = stop(swapped)
    assert "its outlet was not switched on again" in result["msg"]
    assert swapped.record(0).state == "error"


def test_no_outlet_that_may_be_its_is_switched_for_a_free_board(ten):
    """Lost: Jackie's power, by reconcile, which switches off what is on and nobody has: her plug is in there."""
    assert not any(result.get("failed") for result in ten.provision())
    wires = json.loads((ten.folder / "proxy.json").read_text())["boards"]
    ten.wire(0, fake=dict(wires["0"]["fake"], feeds=[4]))
    ten.wire(4, fake=dict(wires["4"]["fake"], feeds=[0], stall="tftp"))  # it has nothing to boot
    ten.pdu(board4="on")
    assert LIVES_ON in boot(ten, "rebooted", how="hard")["msg"]
    for _turn in range(2):
        said = [text for text, _done in found(reconcile(ten), 4)]
        assert any("jackie on board0" in text for text in said), said
    assert (ten.outlets()["5"], lives(ten, 0)) == ("on", True)


def test_the_outlet_is_on_again_where_nothing_can_be_written_down(swapped, monkeypatch):
    """Lost: Carol's power for good, by a full disk; or that the next reboot may cut it once more."""

    def full(*_given):
        raise HeteroError("no space left", "claims", "make space")

    monkeypatch.setattr(Store, "feed", full)
    result = boot(swapped, "rebooted", how="hard")
    assert "that could not be written down" in result["msg"]
    assert (swapped.outlets()["1"], lives(swapped, 1)) == ("on", True)


@pytest.mark.parametrize("fault", ["stuck", "gone"])
def test_who_could_not_switch_it_on_again_says_so(swapped, monkeypatch, fault):
    """Lost: the word that the outlet is off, which feeds another tenant's board."""
    breaks_as_it_is_switched_on(swapped, monkeypatch, fault)
    result = boot(swapped, "rebooted", how="hard")
    assert "outlet 1 does not feed this board" in result["msg"]
    assert "still off" in result["msg"] if fault == "stuck" else "was not switched on again" in result["msg"]
    assert swapped.record(0).state == "error"


# ---- what proves nothing goes on as before


def test_one_that_did_not_answer_before_is_booted_anew(jackie):
    """Lost: the reboot of a board that hangs, for it answers neither before nor after."""
    hangs = {"stall": "running", "stalls": 1}  # in its first boot
    jackie.wire(0, fake={"tftp": 0.0, "nfs": 0.0, "running": 0.0, **hangs, "feeds": [0]})
    assert not boot(jackie, "rebooted", how="hard").get("failed")
    assert jackie.record(0).state == "running"


def test_one_whose_plug_is_right_is_booted_anew(jackie):
    """Lost: each reboot by power."""
    for _turn in range(2):
        result = boot(jackie, "rebooted", how="hard")
        assert not result.get("failed"), result
        assert result["boards"][0]["power_proof"]["board"].startswith("boot request ")
