# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start, stop and reboot: the hardware is played, all else (files, store, locks, threads) is real."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import boot_loop, starts, used_root
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.boot_progress import Boot
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import last_outlet, pdu_loop, presence
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, Lost, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.locks import held_by, lock
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot import blame
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.fake import Fake
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.registry import BootDrivers
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.fake import Fake as FakePdu
from ansible_collections.hetero.compute.tests.in_time import in_time


def phases(events):
    return [event.phase for event in events]


def board(result, number=0):
    return next(one for one in result["boards"] if one["board"] == number)


def test_start(site):
    """The thinnest path: a claimed board gets its boot entry, power, and runs."""
    site.claim(0)
    result = site.run("start", 0)
    one = board(result)
    assert (result["changed"], result["failed"], one["state"], one["blame"]) == (True, False, "running", None)
    assert one["known_hosts"].startswith("10.0.2.1 ssh-ed25519 ")
    assert list(one["phases"]) == ["power", "tftp", "nfs", "running"]
    assert 0 <= one["phases"]["tftp"] <= one["phases"]["nfs"] <= one["phases"]["running"] < 20
    assert site.power(0) == "on"
    assert "vmlinux_0" in site.entry(0).read_text()
    record = site.record(0)
    assert (record.state, record.power) == ("running", "on")
    assert [(event.phase, event.text) for event in site.events(0)] == [
        ("power", "pdu-a outlet 5: off → on, read back"),
        ("tftp", "boot entry, kernel, initrd fetched"),
        ("nfs", "root mounted"),
        ("running", "ssh answers"),
    ]
    first = dict(result["lines"][0], seconds=None)
    text = "pdu-a outlet 5: off → on, read back"
    assert first == {"instance": "vm0", "node": "board0", "phase": "power", "text": text, "seconds": None}


def test_a_request_is_not_given_back_for_a_new_one_of_it(site):
    """Lost: instances that ran for weeks, when one more of the same request does not come up."""
    site.claim(0, 2)
    site.run("start", 0)
    site.play(2, stall="running")
    result = site.run("start", 0, 2, timeout=1, retries=0)
    assert (result["failed"], result["blame"]) == (True, "instance")
    assert "nothing is given back, for vm0 of the same request ran before: ask again, or terminate vm2" in result["msg"]


def test_what_was_recorded_as_running_ran(site):
    """Lost: the root of an instance whose play was killed before it came up, months later."""
    site.claim(0)
    with site.proxy() as proxy:
        claim = proxy.store.claim_of("vm0")
        assert not proxy.store.has_run(claim)
        for state in ("booting", "running"):
            assert not proxy.store.has_run(claim)
            proxy.store.move(0, state)
        assert proxy.store.has_run(claim)


def test_second_start_changes_nothing(site):
    """A rerun of a finished play would cut the power of a board in use."""
    site.claim(0)
    site.run("start", 0)
    events = site.events(0)
    result = site.run("start", 0)
    assert (result["changed"], result["failed"], board(result)["state"]) == (False, False, "running")
    assert site.events(0) == events


@pytest.mark.parametrize("state", ["running", "booting"])
def test_a_board_that_is_there_and_late_is_not_cut(site, state, monkeypatch):
    """A rerun beside other work cut the power of 16 boards in use that answered after six seconds."""
    monkeypatch.setattr(presence, "PROOF", 0.1)
    monkeypatch.setattr(presence, "QUIET", 0.2)
    monkeypatch.setattr(presence, "LONGEST", 1.0)
    site.claim(0)
    site.run("start", 0)
    if state == "booting":
        with site.proxy() as proxy:
            proxy.store.move(0, "booting")
    site.play(0, unproven=True)
    events = site.events(0)
    result = site.run("start", 0)
    assert (result["failed"], site.power(0), site.record(0).state) == (True, "on", state)
    assert "has not proven its key" in result["msg"]
    assert "reboot_instance -e instance=vm0 -e how=hard" in result["msg"]
    assert {event.phase for event in site.events(0)[len(events) :]} - {"wait"} == {"error"}


@pytest.mark.parametrize(("played", "seen"), [("stall", "does not answer ssh"), ("unproven", "has not proven its key")])
def test_a_dry_run_waits_for_no_board_that_proves_nothing(site, monkeypatch, played, seen):
    """Lost: a minute and a half, and a failure that is none, for who only wants to see what would be done."""
    monkeypatch.setattr(starts, "DRY_PATIENCE", 0.3)
    monkeypatch.setattr(presence, "PROOF", 0.1)
    site.claim(0)
    site.run("start", 0)
    site.play(0, **{"stall": dict(stall="nfs"), "unproven": dict(unproven=True)}[played])
    before = site.record(0), len(site.events(0))
    result = site.run("start", 0, check=True)
    assert (result["failed"], result["changed"], site.power(0)) == (False, False, "on")
    assert (site.record(0), len(site.events(0))) == before
    (text,) = [line["text"] for line in result["lines"]]
    assert seen in text
    assert "(asked for 0.3 s): it would be asked for up to " in text
    assert "reboot_instance -e instance=vm0 -e how=hard" in text


def test_a_board_that_ran_and_is_silent_keeps_its_power_until_somebody_says_so(site, monkeypatch):
    """Lost: a tenant's work, by asking again while port 22 is filtered, or a cable is out for some minutes."""
    monkeypatch.setattr(presence, "PROOF", 0.1)
    monkeypatch.setattr(presence, "QUIET", 0.6)
    monkeypatch.setattr(starts, "TELL", 0.1)
    site.claim(0)
    site.run("start", 0)
    site.play(0, stall="nfs", stalls=1)
    before = site.events(0)
    result = site.run("start", 0, timeout=60)
    assert (result["failed"], result["changed"], site.power(0)) == (True, False, "on")
    assert "its outlet is on, and it does not answer ssh: its network may be cut, or its sshd" in result["msg"]
    assert "reboot_instance -e instance=vm0 -e how=hard" in result["msg"]
    later = site.events(0)[len(before) :]
    assert "power" not in phases(later)
    assert "does not answer ssh yet: it is asked for up to " in later[0].text
    assert site.record(0).state == "running"
    result = site.run("reboot", 0, how="hard", timeout=60)
    assert (result["failed"], board(result)["state"], result["changed"]) == (False, "running", True)


@pytest.mark.parametrize("state", ["booting", "power off"])
def test_a_record_that_lags_is_corrected_without_power(site, state):
    """A killed play leaves a record behind the truth; the board that runs must not pay for it."""
    site.claim(0)
    site.run("start", 0)
    with site.proxy() as proxy:
        way = ["booting"] if state == "booting" else ["shutting down", "power off"]
        for step in way:
            proxy.store.move(0, step)
    result = site.run("start", 0)
    assert (result["changed"], site.record(0).state) == (False, "running")
    assert phases(site.events(0)).count("power") == 1


def test_an_outlet_turned_off_by_hand_is_restored(site):
    """The board would stay dark while the record says that it runs."""
    site.claim(0)
    site.run("start", 0)
    site.cut(0)
    result = site.run("start", 0)
    assert (result["changed"], site.power(0), site.record(0).state) == (True, "on", "running")
    assert phases(site.events(0)).count("power") == 2


@pytest.mark.parametrize("damage", ["missing", "other"])
def test_a_boot_entry_is_restored_without_a_reboot(site, damage):
    """Without it the board does not come back from its next power cut; with a reboot its user loses work."""
    site.claim(0)
    site.run("start", 0)
    wanted = site.entry(0).read_text()
    site.entry(0).unlink() if damage == "missing" else site.entry(0).write_text("#!ipxe\nshell\n")
    result = site.run("start", 0)
    assert (result["changed"], site.entry(0).read_text()) == (True, wanted)
    assert phases(site.events(0)).count("power") == 1
    assert [entry["after_header"] for entry in result["diff"]] == [str(site.entry(0))]


def test_a_board_that_is_on_for_nobody_is_not_cut_for_who_comes_next(site, monkeypatch):
    """Lost: the power of whoever is at work there, of whom a database that was put back knows nothing."""
    monkeypatch.setattr(starts, "SHORT_PATIENCE", 0.3)
    site.claim(0)
    site.cut(0, "on")
    result = site.run("start", 0)
    assert (result["blame"], site.record(0).state, site.power(0)) == ("board", "error", "on")
    assert "its outlet is on, and vm0 was never started here: not switched" in site.record(0).note


def test_a_board_of_ones_own_that_is_on_and_silent_is_cut_first(site, monkeypatch):
    """Somebody has switched it on by hand, and it did not boot: only an off outlet ends that."""
    monkeypatch.setattr(starts, "SHORT_PATIENCE", 0.3)
    site.claim(0)
    site.run("start", 0)
    site.run("stop", 0)
    site.cut(0, "on")
    assert board(site.run("start", 0))["state"] == "running"
    assert "pdu-a outlet 5: on → off → on, read back" in [event.text for event in site.events(0)]


def test_reboot_keeps_the_claim(site):
    """A reboot that loses claim or root loses the user's data."""
    site.claim(0)
    site.run("start", 0)
    before = site.record(0)
    result = site.run("reboot", 0)
    after = site.record(0)
    assert (result["changed"], after.state, after.claim) == (True, "running", before.claim)
    assert [event.text for event in site.events(0)].count("pdu-a outlet 5: on → off → on, read back") == 1
    with site.proxy() as proxy:
        states = [event.text for event in proxy.store.events(boards=[0]) if event.phase == "state"]
    assert states[-2:] == ["running → booting", "booting → running"]


def test_stop(site):
    """A board that is off by the record and on in truth heats the room and answers as somebody's."""
    site.claim(0)
    site.run("start", 0)
    result = site.run("stop", 0)
    record = site.record(0)
    assert (result["changed"], site.power(0), record.state, record.power) == (True, "off", "shutting down", "off")
    assert record.claim.instance == "vm0"
    assert not site.entry(0).exists()
    assert site.run("stop", 0)["changed"] is False
    assert board(site.run("start", 0))["state"] == "running"


def test_a_stall_is_tried_once_more(site, patient):
    """A board that hangs once in a while would be taken out of use at the first time."""
    patient(lambda boot: boot.tries < 2)
    site.claim(0)
    site.play(0, stall="tftp", stalls=1)
    result = site.run("start", 0, timeout=1)
    assert (result["failed"], board(result)["state"]) == (False, "running")
    texts = [event.text for event in site.events(0)]
    assert any(text.startswith("no boot request within 1 s") and text.endswith("trying again") for text in texts)
    assert "pdu-a outlet 5: on → off → on, read back" in texts


def test_a_board_that_stalls_twice_is_kept_out_of_use(site, monkeypatch):
    """It would be given to the next user, who would wait for it again."""
    site.claim(0)
    site.play(0, stall="kernel")
    console = site.folder / "board0.log"
    console.write_text("an old boot\n")
    begin, begun = boot_loop.console.begin, []

    def begins(proxy, played):
        begin(proxy, played)
        begun.append(played.id)
        with console.open("a") as log:
            log.write("a first try\n" if len(begun) == 1 else "Booting\r\n\x1b[1mPXE-E32: TFTP open timeout\x1b[0m\n")

    monkeypatch.setattr(boot_loop.console, "begin", begins)
    result = site.run("start", 0, timeout=1)
    one = board(result)
    note = "stalled at tftp after 1 s, twice (boot entry fetched, kernel not asked for); console: board0.log"
    note += "; its console says: PXE-E32: TFTP open timeout"
    record = site.record(0)
    assert (result["failed"], result["blame"], one["blame"], record.state, record.note) == (
        True,
        "board",
        "board",
        "error",
        note,
    )
    assert (site.power(0), one["evidence"]["console_tail"]) == ("off", ["Booting", "PXE-E32: TFTP open timeout"])
    last = site.events(0)[-1]
    assert (last.phase, last.text) == ("error", f"kept out of use: {note}\nBooting\nPXE-E32: TFTP open timeout")
    assert record.claim.instance == "vm0", "whoever asked moves the claim on"
    again = site.run("start", 0)
    assert (again["blame"], site.power(0)) == ("board", "off")
    assert note in again["msg"]
    stopped = site.run("stop", 0)
    assert (stopped["failed"], site.record(0).state) == (False, "shutting down")


@pytest.mark.parametrize("stall", ["nfs", "running"])
def test_an_image_that_does_not_boot_is_blamed_itself(site, stall):
    """A good board would go out of use for each bad image that somebody tries on it."""
    site.claim(0)
    site.play(0, stall=stall)
    result = site.run("start", 0, timeout=1)
    record = site.record(0)
    assert (result["blame"], record.state, site.power(0), site.entry(0).exists()) == (
        "image",
        "shutting down",
        "off",
        False,
    )
    assert f"stalled at {stall} after 1 s" in board(result)["error"]
    assert record.claim.instance == "vm0"
    assert phases(site.events(0)).count("power") == 1, "no second try: the board did its part"


@pytest.mark.parametrize(("stall", "state"), [("nfs", "shutting down"), ("tftp", "error")])
def test_what_ran_before_is_neither_its_image_nor_its_board_to_give_up(site, stall, state):
    """A root with its user's work would be removed by a second request, for a cable that was pulled in between."""
    site.claim(0)
    site.run("start", 0)
    site.run("stop", 0)
    site.play(0, stall=stall)
    for _turn in range(2):
        result = site.run("start", 0, timeout=1, retries=0)
        assert (result["blame"], board(result)["blame"]) == ("instance", "instance")
        assert "vm0 ran here before, so its root and this board stay its own" in result["msg"]
        assert "start_instance -e instance=vm0" in result["msg"]
        assert (site.record(0).state, site.power(0)) == (state, "off")
    with site.proxy() as proxy:
        proxy.store.move(0, "error")
        with pytest.raises(Refused, match="ran on board0, where its root is"):
            proxy.store.move_claim("vm0", [0, 1, 2])
    site.play(0)
    site.run("stop", 0)
    assert board(site.run("start", 0))["state"] == "running"


def test_a_board_out_of_use_stays_whose_instance_ran_there(site):
    """Lost: a root with its user's work, to a second request that takes the board's fault for a reason to move on."""
    site.claim(0)
    with site.proxy() as proxy:
        proxy.store.event(0, "running", "ssh answers")
        proxy.store.move(0, "error", "its outlet is stuck")
    result = site.run("start", 0)
    assert (result["blame"], board(result)["blame"]) == ("instance", "instance")
    assert "is out of use: its outlet is stuck" in result["msg"]
    assert "vm0 ran here before, so its root and this board stay its own" in result["msg"]


def test_a_broken_proxy_is_blamed_itself(site):
    """Dead TFTP would take one board after the other out of use."""
    site.claim(0)
    site.play(0, stall="tftp", proxy="TFTP 127.0.0.1:boot.ipxe: no answer within 2 s")
    result = site.run("start", 0, timeout=1)
    record = site.record(0)
    assert (result["blame"], record.state, record.claim.instance, site.power(0)) == ("proxy", "booting", "vm0", "on")
    assert "no answer within 2 s" in result["msg"]


def test_a_stranger_on_the_network_is_blamed_and_no_board(site):
    """Somebody's DHCP server would take one board after the other out of use, and keep those that it booted."""
    stranger = "another DHCP server answers boards: 10.0.2.66 (02:66:66:66:66:66)"
    site.claim(0, 1)
    for number in (0, 1):
        site.play(number, stall="tftp", strangers=[stranger])
    site.play(1, wrong_key=True, strangers=[stranger])
    result = site.run("start", 0, 1, timeout=1)
    for number in (0, 1):
        record = site.record(number)
        assert (board(result, number)["blame"], record.state, record.claim.instance) == (
            "network",
            "shutting down",
            f"vm{number}",
        )
        assert stranger in board(result, number)["error"]
        assert (site.power(number), site.entry(number).exists()) == ("off", False)
    assert phases(site.events(0)).count("power") == 2, "its own server may be the quicker one the next time"
    first, last = (event.text for event in site.events(0, ["error"]))
    assert first.endswith(f"{stranger}; trying again")
    assert last == f"the network's fault, the board is switched off: {stranger}"
    site.play(0)
    assert board(site.run("start", 0))["state"] == "running"


@pytest.mark.parametrize("fault", ["silent", "a stranger", "another key"])
def test_a_boot_that_mounted_the_root_of_what_ran_keeps_its_power(site, fault):
    """Lost: a tenant's work since the reboot, whose sshd is slow, by a second DHCP server that answered somebody."""
    stranger = "another DHCP server answers boards: 10.0.2.66 (02:66:66:66:66:66)"
    site.claim(0)
    site.run("start", 0)
    strangers = [stranger] if fault == "a stranger" else []
    site.play(0, strangers=strangers, **({"wrong_key": True} if fault == "another key" else {"stall": "running"}))
    result = site.run("reboot", 0, how="hard", timeout=1)
    record = site.record(0)
    assert (result["failed"], record.state, record.claim.instance, site.power(0)) == (True, "error", "vm0", "on")
    assert "it may be at work and its outlet stays on" in result["msg"]
    assert (stranger in result["msg"]) == bool(strangers)
    site.play(0)
    assert not site.run("stop", 0)["failed"]
    assert board(site.run("start", 0))["state"] == "running"


def test_a_boot_that_was_given_up_is_begun_again(site, monkeypatch):
    """Once the proxy is mended, its users would wait five minutes for boards that had given up long ago."""
    monkeypatch.setattr(presence, "QUIET", 0.3)
    monkeypatch.setattr(presence, "PROOF", 0.3)
    site.claim(0)
    site.play(0, stall="nfs", stalls=1, proxy="NFS is down")
    assert site.run("start", 0, timeout=1)["blame"] == "proxy"
    site.play(0, stall="nfs", stalls=1)
    result = site.run("start", 0, timeout=60)
    assert (result["failed"], board(result)["state"], result["changed"]) == (False, "running", True)


@pytest.mark.parametrize("uses", [False, True])
def test_a_boot_that_hangs_in_its_initrd_is_begun_again(site, monkeypatch, uses):
    """Lost: the second word for what mending the proxy is one for; or a tenant's work, where the root tells of any."""
    monkeypatch.setattr(presence, "QUIET", 0.3)
    monkeypatch.setattr(presence, "PROOF", 0.3)
    monkeypatch.setattr(presence, "LONGEST", 0.6)
    site.claim(0)
    site.play(0, stall="nfs", stalls=1, initrd=True, proxy="NFS is down")
    assert site.run("start", 0, timeout=1)["blame"] == "proxy"
    site.play(0, stall="nfs", stalls=1, initrd=True)
    monkeypatch.setattr(used_root, "used_since", lambda work, when: uses)
    result = site.run("start", 0, timeout=1 if uses else 60)
    assert (result["failed"], result["changed"], site.power(0)) == (uses, not uses, "on")
    assert ("has not proven its key" in result.get("msg", "")) is uses


@pytest.mark.parametrize("initrd", [True, False])
def test_a_boot_that_hangs_is_begun_again_as_often_as_that_is_asked_for(site, monkeypatch, initrd):
    """Lost: the third word for what mending the proxy is one for; or the root of an instance that may have run."""
    monkeypatch.setattr(presence, "QUIET", 0.3)
    monkeypatch.setattr(presence, "PROOF", 0.3)
    monkeypatch.setattr(presence, "LONGEST", 0.6)
    uses = []
    monkeypatch.setattr(used_root, "used_since", lambda work, when: bool(uses))
    site.claim(0)
    site.play(0, stall="nfs", initrd=initrd, proxy="NFS is down")
    for times in (1, 2, 3, 4):
        assert site.run("start", 0, timeout=1)["blame"] == "proxy"
        assert len([event for event in site.events(0, ["power"]) if "read back" in event.text]) == times
    with site.proxy() as proxy:
        assert proxy.store.has_run(proxy.store.claim_of("vm0")), "its root is not removed by what it does not show"
    uses.append("its tenant's work")
    result = site.run("start", 0, timeout=1)
    assert ("the board is left as it is" in site.events(0, ["error"])[-1].text, result["blame"]) == (True, None)
    uses.clear()
    site.run("start", 0, timeout=1)
    assert len([event for event in site.events(0, ["power"]) if "read back" in event.text]) == 4, "it was at work once"
    assert (site.power(0), site.record(0).state) == ("on", "booting")


def test_another_host_key_after_a_power_cycle_is_the_boards_fault(site):
    """A swapped outlet would give users the machine of somebody else."""
    site.claim(0)
    site.play(0, wrong_key=True)
    start = time.monotonic()
    result = site.run("start", 0, timeout=300)
    assert time.monotonic() - start < 60, "nothing to wait for"
    record = site.record(0)
    assert (result["blame"], record.state, site.power(0)) == ("board", "error", "off")
    assert phases(site.events(0)).count("power") == 1, "it was off before, so there is nothing to see by a second boot"
    assert (
        record.note
        == "outlet 5 of pdu-a does not feed this board, or its address is taken: 10.0.2.1 shows another host key"
    )


def test_an_outlet_that_does_not_obey(site):
    """Tour, section 4: the PDU's own words, and the board out of use."""
    site.claim(0, 1)
    site.pdu("pdu-a", refused=["5"])
    result = site.run("start", 0, 1)
    assert (board(result)["blame"], site.record(0).state) == ("board", "error")
    assert "outlet 5 of pdu-a: still off" in site.record(0).note
    assert (board(result, 1)["state"], board(result, 1)["failed"]) == ("running", False)


def test_a_pdu_that_is_away_is_not_the_boards_fault(site, monkeypatch):
    """All boards of a PDU would be out of use because somebody pulled its network cable."""
    site.claim(0, 2)
    site.pdu("pdu-a", hang=True)
    for seconds in (0.5, 20.0):  # a busy machine needs longer to be served by the other one
        monkeypatch.setattr(pdu_loop, "PDU", seconds)
        result = site.run("start", 0, 2)
        if board(result, 2)["state"] == "running":
            break
    assert (result["blame"], board(result)["blame"], site.record(0).state) == ("proxy", "proxy", "power off")
    assert "pdu-a" in board(result)["error"]
    assert board(result, 2)["state"] == "running"


def test_a_pdu_that_is_lost_while_it_switches_is_not_the_boards_fault(site, monkeypatch):
    """The play would wait for ever; or the boards of that PDU would be out of use."""

    def lost(pdu, _outlets, _state):
        raise Lost("hung up", pdu.name, "look at it")

    monkeypatch.setattr(pdu_loop, "PDU", 0.5)
    monkeypatch.setattr(FakePdu, "switch", lost)
    site.claim(0)
    result = site.run("start", 0)
    assert (result["blame"], board(result)["blame"]) == ("proxy", "proxy")
    assert "hung up" in board(result)["error"]
    assert site.record(0).state != "error"


def test_who_stops_a_board_is_told_that_its_pdu_is_away(site, monkeypatch):
    """A board that runs on would be taken for one that was stopped; its history would not say why it was left on."""
    site.claim(0)
    site.run("start", 0)
    monkeypatch.setattr(pdu_loop, "PDU", 0.5)
    site.pdu("pdu-a", hang=True)
    result = site.run("stop", 0)
    assert (result["blame"], site.record(0).state, site.power(0)) == ("proxy", "running", "on")
    last = site.events(0)[-1]
    assert last.phase == "error"
    assert last.text.startswith("the board is left as it is: pdu-a: ")


def test_one_of_two_fails(site, patient):
    """One bad board would stop the others of the same call."""
    patient(lambda boot: boot.board.id == 1)
    site.claim(0, 1, 2)
    site.play(1, stall="tftp")
    result = site.run("start", 0, 1, 2, timeout=1, retries=0)
    assert [one["state"] for one in result["boards"]] == ["running", "error", "running"]
    assert (result["failed"], result["blame"]) == (True, "board")
    assert board(result, 1)["error"] == result["msg"]


def test_a_boot_under_way_is_waited_for(site):
    """kill -9 of the play and its rerun would cut a boot that is nearly done."""
    site.claim(0)
    site.play(0, tftp=0.2, nfs=0.4, running=0.8)
    assert board(site.run("start", 0, wait=False))["state"] == "booting"
    result = site.run("start", 0)
    assert (result["changed"], board(result)["state"]) == (False, "running")
    # one power on and one end; what came between while nobody looked is not told
    assert [phase for phase in phases(site.events(0)) if phase not in ("tftp", "nfs")] == ["power", "running"]
    assert 0.7 <= board(result)["phases"]["running"] < 60


def left_booting(site, timeout):
    """A boot whose play was killed after it had said that the kernel was fetched."""
    site.run("start", 0, wait=False, timeout=timeout)
    with site.proxy() as proxy:
        proxy.store.event(0, "tftp", "boot entry, kernel, initrd fetched")
    site.later(0, 5)


def test_what_a_killed_play_did_not_say_any_more_is_said_by_the_next(site):
    """Lost: why a boot takes so long; a root that was mounted meanwhile would be called missing."""
    site.claim(0)
    site.play(0, running=5)
    left_booting(site, 20)
    assert board(site.run("start", 0))["state"] == "running"
    assert phases(site.events(0)) == ["power", "tftp", "nfs", "running"]


def test_what_a_killed_play_saw_counts_when_the_boot_stalls(site):
    """Lost: a good board, taken out of use for an image whose kernel it had fetched before the play was killed."""
    site.claim(0)
    site.play(0, stall="nfs")
    left_booting(site, 3)
    result = site.run("start", 0, timeout=3, retries=0)
    assert (result["blame"], site.record(0).state) == ("image", "shutting down")


def test_what_a_killed_play_saw_of_a_boot_from_flash(site):
    """Lost: where it hangs; a board whose kernel runs would be said to have asked for nothing."""
    site.config["boards"]["0"].update(driver="tilera", kernel_source="flash")
    site.write()
    with site.proxy() as proxy:
        driver = BootDrivers(proxy).of(proxy.board(0))
        boot = Boot(SimpleNamespace(proxy=proxy, board=proxy.board(0), driver=driver))
        boot.take_up({"power", "flash"}, time.monotonic())
        text = blame.stalled(boot.asked, boot.kinds, 41, 1, flash=boot.flash)
        assert text.startswith("stalled at nfs after 41 s")


def test_nothing_is_done_before_the_pdu_has_said_what_is_on(site, monkeypatch):
    """Lost: a board that hangs, and stays so: its outlet would be switched on that is on."""
    monkeypatch.setattr(starts, "SHORT_PATIENCE", 0.1)
    site.claim(0)
    site.run("start", 0)
    site.run("stop", 0)
    site.cut(0, "on")
    site.pdu("pdu-a", busy=4)
    assert board(site.run("start", 0))["state"] == "running"
    assert "pdu-a outlet 5: on → off → on, read back" in [event.text for event in site.events(0)]


def test_a_boot_that_hung_under_a_killed_play_is_begun_again(site, monkeypatch, patient):
    """The rerun would take the kernel of the first boot for a bad image, or wait for ever."""
    patient(lambda boot: boot.tries == 0)
    monkeypatch.setattr(presence, "QUIET", 0.3)
    monkeypatch.setattr(presence, "PROOF", 0.3)
    site.claim(0)
    site.play(0, stall="tftp", stalls=1)
    site.run("start", 0, wait=False)
    time.sleep(1.1)
    result = site.run("start", 0, timeout=1)
    assert (result["failed"], board(result)["state"], result["changed"]) == (False, "running", True)


@pytest.mark.parametrize("timeout", [1, 3], ids=["long after", "in its time"])
def test_a_first_boot_that_mounted_its_root_under_a_killed_play_is_its_tenants(site, monkeypatch, timeout):
    """Lost: what a tenant wrote on a board whose play was killed, by asking again while its link is down."""
    monkeypatch.setattr(presence, "QUIET", 0.3)
    monkeypatch.setattr(presence, "PROOF", 0.3)
    site.claim(0)
    site.play(0, stall="running")
    site.run("start", 0, wait=False)
    site.later(0, 5)  # on since then, its root mounted
    time.sleep(1.1)
    result = site.run("start", 0, timeout=timeout)
    assert (result["failed"], site.power(0)) == (True, "on")
    assert phases(site.events(0)).count("power") == 1, "nobody's power was cut"
    with site.proxy() as proxy:
        assert proxy.store.has_run(proxy.store.record(0).claim), "its root would be taken back"


def test_a_boot_whose_time_ends_while_its_outlet_is_asked_is_looked_at_like_any_other(site, monkeypatch):
    """Lost: a verb that never ended, and held the board's lock: on a busy proxy nobody asked the board any more."""
    monkeypatch.setattr(presence, "QUIET", 0.3)
    monkeypatch.setattr(presence, "PROOF", 0.3)
    site.claim(0)
    site.play(0, stall="running")
    site.run("start", 0, wait=False)
    real, asked = starts.Starting._resumes, []

    def at_first(self, boot):
        asked.append(boot)
        return real(self, boot) if len(asked) == 1 else None

    monkeypatch.setattr(starts.Starting, "_resumes", at_first)
    with in_time(60):
        result = site.run("start", 0, timeout=30)
    assert (result["failed"], site.power(0)) == (True, "on")
    assert len(asked) > 1


@pytest.mark.parametrize("timeout", [1, 3], ids=["long after", "in its time"])
@pytest.mark.parametrize("answer", ["none", "another key"])
def test_a_first_boot_whose_root_was_written_under_a_killed_play_is_its_tenants(site, monkeypatch, timeout, answer):
    """Lost: the same, where the connection of its NFS client is gone by then, as after a restart of the proxy."""
    monkeypatch.setattr(presence, "QUIET", 0.3)
    monkeypatch.setattr(presence, "PROOF", 0.3)
    monkeypatch.setattr(Fake, "has_root", lambda self, board: False)
    asked = []
    monkeypatch.setattr(used_root, "used_since", lambda work, when: asked.append(when) or True)
    site.claim(0)
    site.play(0, stall="tftp")
    site.run("start", 0, wait=False)
    (switched,) = [event.time for event in site.events(0, ["switch"])]
    if answer == "another key":
        site.play(0, wrong_key=True)
        site.later(0, 5)
    time.sleep(1.1)
    for _again in range(2):
        result = site.run("start", 0, timeout=timeout)
        assert (result["failed"], site.power(0)) == (True, "on")
    assert phases(site.events(0)).count("power") == 1, "nobody's power was cut"
    assert asked[0] == switched
    with site.proxy() as proxy:
        assert proxy.store.has_run(proxy.store.record(0).claim), "its root would be taken back"


HOLD = """
import sys
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.locks import lock
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
with lock(sys.argv[1], "board0", "wipe", "jo", Deadline(5)):
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_a_held_lock_is_waited_for_and_named(site):
    """Two verbs on one board at once; or a wait that nobody can explain."""
    site.claim(0)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, site.config["run_folder"]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout.readline() == "held\n"
    with ThreadPoolExecutor(1) as aside:
        start = aside.submit(site.run, "start", 0)
        while not site.events(0) and not start.done():
            time.sleep(0.01)
        holder.communicate("\n", timeout=600)
        result = start.result(60)
    assert board(result)["state"] == "running"
    first = site.events(0)[0]
    assert first.phase == "wait"
    assert "wipe" in first.text
    assert str(holder.pid) in first.text


def is_held(site, number):
    return held_by(site.config["run_folder"], f"board{number}") is not None


@pytest.fixture
def beside(site, monkeypatch):
    """A verb on boards 0 and 2 that runs on in a thread; board 2 neither comes up nor is off before `go` is set."""
    go, answers, status = threading.Event(), Fake.answers, FakePdu.status

    def late(driver, board, system, deadline, cancelled, report):
        while board.id == 2 and not go.is_set() and not cancelled.wait(0.01):
            pass
        return answers(driver, board, system, deadline, cancelled, report)

    def slow(pdu):
        assert pdu.name != "pdu-b" or go.wait(60)
        return status(pdu)

    def begin(verb, **options):
        monkeypatch.setattr(*((FakePdu, "status", slow) if verb == "stop" else (Fake, "answers", late)))
        call, deadline = thread.submit(site.run, verb, 0, 2, **options), Deadline(30)
        while not is_held(site, 2) and not deadline.passed:
            deadline.nap(0.01)
        return call

    with ThreadPoolExecutor(max_workers=1) as thread:
        try:
            yield SimpleNamespace(begin=begin, go=go)
        finally:
            go.set()


def taken(site):
    """The lock of board 0, as soon as nobody else has it, while board 2 is worked on."""
    return lock(site.config["run_folder"], "board0", "console", "jo", Deadline(20))


def test_a_board_that_runs_is_free_for_verbs_while_another_boots(site, beside):
    """Lost: minutes in which nobody stops, ends or looks at a board that runs, for the last one of its request."""
    site.claim(0, 2)
    call = beside.begin("start", timeout=60)
    with taken(site):
        assert site.record(0).state == "running"
        assert is_held(site, 2)
        beside.go.set()
        result = call.result(60)
    assert [board(result, number)["state"] for number in (0, 2)] == ["running", "running"]
    assert not is_held(site, 2)


def test_a_board_that_is_refused_is_free_for_verbs_while_another_boots(site, beside):
    """Lost: the repair of a board that was not even touched, for as long as others boot."""
    site.claim(0, 2)
    with site.proxy() as proxy:
        proxy.store.move(0, "error", "broken")
    call = beside.begin("start", timeout=60)
    with taken(site):
        assert is_held(site, 2)
        beside.go.set()
        assert "is out of use: broken" in board(call.result(60))["error"]


def test_a_board_that_is_off_is_free_for_verbs_while_another_is_stopped(site, beside):
    """Lost: the start of an instance whose board is off, until the PDU of another one of its request answers."""
    site.claim(0, 2)
    site.run("start", 0, 2)
    call = beside.begin("stop", keep=True)
    with taken(site):
        assert (site.record(0).state, site.record(0).note) == ("power off", "stopped")
        assert is_held(site, 2)
        beside.go.set()
        result = call.result(60)
    assert [board(result, number)["state"] for number in (0, 2)] == ["power off", "power off"]


def test_a_board_that_may_not_be_stopped_is_free_for_verbs_while_another_is_stopped(site, beside):
    """Lost: a board that was not even touched, for as long as the PDU of another one does not answer."""
    site.claim(0, 2)
    site.run("start", 0, 2)
    call = beside.begin("stop", keep=True, instance="vm2")
    with taken(site):
        assert is_held(site, 2)
        assert site.record(0).state == "running"
        assert not call.done()
        beside.go.set()
        result = call.result(60)
    assert "is not vm2's any more" in board(result)["error"]
    assert board(result, 2)["state"] == "power off"


@pytest.mark.parametrize("why", ["never_ran", "doubt"])
def test_a_board_whose_stop_is_refused_is_free_for_verbs_while_another_is_stopped(site, beside, monkeypatch, why):
    """Lost: the same, where the refusal comes of what the board's records say."""
    site.claim(0, 2)
    site.run("start", 0)
    if why == "doubt":
        refuse = last_outlet.refuse_doubted
        monkeypatch.setattr(last_outlet, "refuse_doubted", lambda works: doubt_first(works) or refuse(works))
    call = beside.begin("stop", never_ran=why == "never_ran")
    with taken(site):
        assert is_held(site, 2)
        assert site.power(0) == "on"
        assert not call.done()
        beside.go.set()
        result = call.result(60)
    assert board(result)["failed"]
    assert not board(result, 2)["failed"]


def doubt_first(works):
    """Doubt which outlet feeds board 0."""
    for work in works:
        if work.board.id == 0:
            work.doubt = Refused("is fed by another outlet", "board0", "correct the wiring")


@pytest.mark.parametrize("verb", ["start", "reboot", "stop"])
def test_check_mode_touches_nothing(site, verb):
    """A dry run that switches power is worse than none."""
    site.claim(0, 1)
    site.run("start", 0)
    if verb == "start":
        site.cut(0)
        site.entry(0).unlink()
    before = (site.record(0), site.power(0), site.entry(0).exists(), site.events(0))
    result = site.run(verb, 0, check=True)
    assert (site.record(0), site.power(0), site.entry(0).exists(), site.events(0)) == before
    assert result["changed"] is True
    expected = {
        "start": "pdu-a outlet 5 is off: off → on",
        "reboot": "pdu-a outlet 5 is on: on → off → on",
        "stop": "pdu-a outlet 5 is on: on → off",
    }
    assert expected[verb] == result["lines"][-1]["text"]
    if verb == "start":
        lines = next(entry for entry in result["diff"] if entry["after_header"] == str(site.entry(0)))
        assert "#!ipxe" in lines["after"]


@pytest.mark.parametrize(
    ("options", "state"), [({"keep": True}, "power off"), ({"ends": True}, "power off"), ({}, "shutting down")]
)
@pytest.mark.parametrize("check", [True, False])
def test_a_stop_tells_the_state_in_which_the_board_is_afterwards(site, options, state, check):
    """`--diff` of stop_instance said "shutting down" of a board that was off, as status had it a moment later."""
    site.claim(0)
    site.run("start", 0)
    result = site.run("stop", 0, check=check, **options)
    (told,) = [entry["after"] for entry in result["diff"] if entry["after_header"] == "board0"]
    assert told == {"power": "off", "state": state}
    if options != {"ends": True} and not check:
        assert site.record(0).state == state


def test_check_mode_of_a_board_that_is_not_claimed_yet(site):
    """The dry run of a whole provision ends here before it could show anything."""
    names = site.folder / "state" / "images" / "names"
    names.mkdir()
    (names / "demo").write_text("ab" * 32 + "\n")
    result = site.run("start", 0, check=True, image="demo")
    assert (result["failed"], result["changed"]) == (False, True)
    assert result["lines"][0]["text"] == "pdu-a outlet 5 is off: off → on"
    after = {entry["after_header"]: entry["after"] for entry in result["diff"]}
    assert "vmlinux_0" in after[str(site.entry(0))]


def test_check_mode_where_only_the_real_run_imports_the_image(site):
    """The dry run would end at an image that is there once it is not dry."""
    result = site.run("start", 0, check=True, image="demo")
    assert (result["failed"], result["changed"]) == (False, True)
    after = {entry["after_header"]: entry["after"] for entry in result["diff"]}
    assert after[str(site.entry(0))] == "(its lines depend on the image, which is not in the store yet)\n"


@pytest.mark.parametrize("ready", [True, False])
def test_a_board_that_is_not_made_ready_is_refused(site, ready):
    """Power for a board without claim or root would boot nothing, or the last tenant's system."""
    if not ready:
        site.claim(0, ready=False)
    result = site.run("start", 0)
    assert (result["failed"], site.power(0), site.entry(0).exists()) == (True, "off", False)
    assert ("board_image" if not ready else "board_claim") in result["msg"]


def test_a_board_in_maintenance_is_left_alone(site):
    """Somebody has their hands in it."""
    with site.proxy() as proxy:
        proxy.store.move(0, "maintenance", "fan replaced")
    for verb in ("start", "reboot", "stop"):
        result = site.run(verb, 0)
        assert "maintenance" in result["msg"]
    assert site.power(0) == "off"


def test_wiring_that_names_no_such_outlet(site):
    """A typing error in the inventory is no broken board."""
    site.claim(0)
    site.config["boards"]["0"]["outlet"] = "15"
    site.write()
    result = site.run("start", 0)
    assert (result["blame"], site.record(0).state) == ("proxy", "power off")
    assert "pdu-a has no outlet 15 (it has 1, 2, 3, 4, 5, 6, 7, 8)" in result["msg"]
    site.pdu("pdu-a", {})
    assert "pdu-a has no outlet 15 (it has none)" in site.run("start", 0)["msg"]


def test_arguments_are_checked_before_anything(site):
    """Half of a call would be done before the mistake in it is seen."""
    site.claim(0)
    for ids, options in (((0, 0), {}), ((0, 77), {}), ((0,), {"timeout": 0})):
        with pytest.raises(BadInput):
            site.run("start", *ids, **options)
    assert site.power(0) == "off"
