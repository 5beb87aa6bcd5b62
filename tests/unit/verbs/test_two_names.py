# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards whose outlet may be another tenant's: by a second name of its PDU, or on for nobody. If these fail, what ends,
stops or tests one board cuts or gives the power of another.
"""

from __future__ import annotations

import json
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import starts
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import presence
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.fake import Fake
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import pdu_places
from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import FLAVOR, KEY

HOST = "10.0.100.1"
REQUEST = dict(owner="bob", flavor=FLAVOR, image="debian", ssh_public_key=KEY)


def two_names(site):
    """Board 1 by a second name of the PDU, at the outlet of board 0."""
    path = site.folder / "proxy.json"
    config = json.loads(path.read_text())
    config["pdus"]["pdu-c"] = dict(config["pdus"]["pdu-a"], port=23, transport="telnet")
    path.write_text(json.dumps(config))
    site.wire(1, pdu="pdu-c", outlet="1")


def with_host(site):
    """The PDU has an address, as each that is none for tests."""
    path = site.folder / "proxy.json"
    config = json.loads(path.read_text())
    config["pdus"]["pdu-a"]["host"] = HOST
    path.write_text(json.dumps(config))


@pytest.fixture
def named(site):
    """Jackie runs on board 0."""
    with_host(site)
    assert not any(result.get("failed") for result in site.provision("jackie"))
    return site


def verb(site, state, name="bob", **given):
    return site.module("instance", kind="board", state=state, instance=name, timeout=5, **given)


def on_for_nobody(site, monkeypatch):
    """Bob has board 1, which somebody has switched on by hand before it was started."""
    monkeypatch.setattr(starts, "SHORT_PATIENCE", 0.3)
    assert not site.module("board_claim", instance="bob", board=1, **REQUEST).get("failed")
    site.pdu(board1="on")
    said = verb(site, "running", board=1, **REQUEST)
    assert "its outlet is on, and bob was never started here: not switched" in said["msg"]


def test_a_second_name_of_an_outlet_is_no_free_one(named):
    """Lost: Jackie's power, by the end of an instance whose board has her outlet by another name of its PDU."""
    two_names(named)
    said = verb(named, "running", board=1, **REQUEST)
    assert "its wiring names pdu-c outlet 1, by which jackie on board0 had power last" in said["msg"]
    assert named.record(1).claim is None
    result = named.module("tilera_boot", boards=[1], state="stopped", timeout=5)
    assert "by which jackie on board0 had power last" in result["msg"]
    assert named.outlets()["1"] == "on"


def test_a_claim_from_before_goes_and_the_others_outlet_stays(named):
    """Lost: Jackie's power, where the wiring got its second name after the claim; or a claim that nobody can end."""
    assert not named.module("board_claim", instance="bob", board=1, **REQUEST).get("failed")
    two_names(named)
    result = verb(named, "absent", owner="bob")
    assert not result.get("failed"), result
    assert "off and clean" not in str(result["lines"])
    assert (named.record(1).claim, named.record(1).state) == (None, "error")
    assert named.outlets()["1"] == "on"
    assert named.record(0).claim.instance == "jackie"


def test_the_cabling_check_gives_no_power_to_a_stopped_instance(named):
    """Lost: Jackie's peace: what she stopped comes up, by a check of the board beside it."""
    assert not verb(named, "stopped", "jackie").get("failed")
    two_names(named)
    result = named.module("board_cabling", boards=[1], seconds=1)
    (board,) = result["boards"]
    assert (board["verdict"], named.outlets()["1"]) == ("skipped", "off")
    assert "by which jackie on board0 had power last" in board["text"]
    assert named.events(1, "switch") == []


@pytest.mark.parametrize("check", [True, False])
def test_the_end_of_what_was_never_started_leaves_the_outlet_on(named, monkeypatch, check):
    """Lost: the power of whoever is at work there, of whom its own error has spoken."""
    on_for_nobody(named, monkeypatch)
    result = verb(named, "absent", owner="bob", check=check)
    assert not result.get("failed"), result
    assert named.outlets()["2"] == "on"
    assert (named.record(1).claim is None) is not check
    said = " ".join(line["text"] for line in result["lines"])
    assert "pdu-a outlet 2: its outlet is on, and bob was never started here: not switched" in said
    assert "off and clean" not in said
    if not check:
        assert named.record(1).state == "error"
        assert "never started here" in named.record(1).note
        assert "its claim is ended; board1 is kept out of use" in said
        # repair is somebody's word that nobody is there
        assert not named.module("tilera_boot", boards=[1], state="stopped", instance="", timeout=5).get("failed")
        assert named.outlets()["2"] == "off"


@pytest.mark.parametrize("way", [dict(state="stopped"), dict(state="rebooted", how="hard")])
def test_what_was_never_started_is_neither_stopped_nor_rebooted(named, way):
    """Lost: the same, by a stop or a reboot."""
    assert not named.module("board_claim", instance="bob", board=1, **REQUEST).get("failed")
    assert not named.module("board_image", boards=[1], image="debian", ssh_public_key=KEY, instance="bob").get("failed")
    named.pdu(board1="on")
    result = verb(named, **way)
    assert "its outlet is on, and bob was never started here: not switched" in result["msg"]
    assert named.outlets()["2"] == "on"
    assert named.record(1).claim.instance == "bob"


def test_the_end_of_a_lease_leaves_the_outlet_on(named, monkeypatch):
    """Lost: the same, with nobody who looks on."""
    on_for_nobody(named, monkeypatch)
    with named.proxy() as proxy:
        proxy.store.put("bob", expires=time.time() - 120)
    (said,) = named.turn()["said"]
    assert "its claim is ended, and the board is kept out of use: its outlet is on" in said
    assert "off, cleaned, free" not in said
    assert (named.outlets()["2"], named.record(1).claim, named.record(1).state) == ("on", None, "error")


def stopped(site):
    return verb(site, "stopped")


def begun(site):
    return verb(site, "running", board=1, **REQUEST)


def ended(site):
    return verb(site, "absent", owner="bob")


@pytest.mark.parametrize("how", ["hard", "auto", "soft", None])
@pytest.mark.parametrize("after", [None, stopped, begun, ended], ids=["alone", "stop", "start", "end"])
def test_no_reboot_cuts_what_is_on_for_nobody(named, monkeypatch, how, after):
    """Lost: the work of whoever is there, to a reboot, or to the verb that comes after a reboot that failed."""
    on_for_nobody(named, monkeypatch)
    given = {"how": how} if how else {}
    assert verb(named, "rebooted", **given).get("failed") or how != "soft"
    if after:
        after(named)
    assert named.outlets()["2"] == "on"
    assert not [event.text for event in named.events(1, "switch") if "switched" in event.text]


@pytest.mark.parametrize("host", ["pdu-a.lab", f"::ffff:{HOST}", "pdu-of-many.lab", "pdu-unknown.lab"])
def test_a_name_of_the_pdu_is_the_pdu(named, monkeypatch, host):
    """Lost: Jackie's power, to a reconcile that found a free board on, by the host name of her PDU: one of several
    addresses, or one that no name server says just now.
    """
    addresses = {"pdu-a.lab": [HOST], "pdu-of-many.lab": ["10.0.0.1", HOST]}.get(host, [])
    answer = [(2, 1, 6, "", (address, 0)) for address in addresses]
    monkeypatch.setattr(pdu_places.socket, "getaddrinfo", lambda name, port, type: answer)
    pdu_places._looked_up.cache_clear()
    path = named.folder / "proxy.json"
    config = json.loads(path.read_text())
    config["pdus"]["pdu-c"] = dict(config["pdus"]["pdu-a"], host=host, port=23, transport="telnet")
    path.write_text(json.dumps(config))
    named.wire(1, pdu="pdu-c", outlet="1")
    named.module("board_reconcile", timeout=5)
    named.module("tilera_boot", boards=[1], state="stopped", instance="", timeout=5)
    assert named.outlets()["1"] == "on"
    pdu_places._looked_up.cache_clear()


@pytest.mark.parametrize("timeout", [1, 5], ids=["long after", "in its time"])
def test_what_somebody_wrote_under_a_killed_play_is_his(site, monkeypatch, timeout):
    """Lost: a tenant's work and root, by asking again while its network is down and the proxy was restarted."""
    monkeypatch.setattr(starts, "SHORT_PATIENCE", 0.3)
    monkeypatch.setattr(presence, "QUIET", 0.3)
    assert not site.module("board_claim", instance="bob", board=1, **REQUEST).get("failed")
    made = site.module("board_image", boards=[1], image="debian", ssh_public_key=KEY, instance="bob")
    assert not made.get("failed")
    assert not site.module("tilera_boot", boards=[1], instance="bob", timeout=5, wait=False).get("failed")
    data = site.state / "board-roots" / "fs_1" / "root" / "data"
    data.write_text("kept")
    monkeypatch.setattr(Fake, "has_root", lambda self, board: False)
    site.wire(1, fake={"stall": "tftp"})
    time.sleep(1.1)
    site.module("board_reconcile", timeout=3)
    for _again in range(2):
        site.module("instance", kind="board", state="running", instance="bob", timeout=timeout, **REQUEST)
    assert (data.read_text(), site.outlets()["2"]) == ("kept", "on")
    assert site.record(1).claim.instance == "bob"
    assert [event.text for event in site.events(1, "switch")] == ["pdu-a outlet 2 is to be switched on"]


def cut_hard(site):
    verb(site, "rebooted", how="hard")


def cut_auto(site):
    verb(site, "rebooted")


@pytest.mark.parametrize("first", [cut_hard, cut_auto, stopped])
@pytest.mark.parametrize("stuck", [False, True])
def test_no_word_for_its_power_is_one_for_its_root(site, monkeypatch, first, stuck):
    """Lost: the same root, where the reboot that reconcile names, or a stop, came between the two plays."""
    monkeypatch.setattr(starts, "SHORT_PATIENCE", 0.3)
    monkeypatch.setattr(presence, "QUIET", 0.3)
    assert not site.module("board_claim", instance="bob", board=1, **REQUEST).get("failed")
    assert not site.module("board_image", boards=[1], image="debian", ssh_public_key=KEY, instance="bob").get("failed")
    assert not site.module("tilera_boot", boards=[1], instance="bob", timeout=5, wait=False).get("failed")
    data = site.state / "board-roots" / "fs_1" / "root" / "data"
    data.write_text("kept")
    monkeypatch.setattr(Fake, "has_root", lambda self, board: False)
    site.wire(1, fake={"stall": "tftp"})
    path = site.folder / "pdu-a.json"
    if stuck:
        path.write_text(json.dumps(dict(json.loads(path.read_text()), stuck=["2"])))
    first(site)
    path.write_text(json.dumps(dict(json.loads(path.read_text()), stuck=[])))
    site.module("instance", kind="board", state="running", instance="bob", timeout=1, **REQUEST)
    assert data.read_text() == "kept"
    assert site.record(1).claim.instance == "bob"


def test_a_root_from_before_is_not_removed_under_a_board_that_is_on(site, monkeypatch):
    """Lost: a tenant's root, where the database is a copy from just before his board got power, and he is at work."""
    monkeypatch.setattr(starts, "SHORT_PATIENCE", 0.3)
    assert not site.module("board_claim", instance="bob", board=1, **REQUEST).get("failed")
    assert not site.module("board_image", boards=[1], image="debian", ssh_public_key=KEY, instance="bob").get("failed")
    data = site.state / "board-roots" / "fs_1" / "root" / "data"
    data.write_text("kept")
    site.pdu(board1="on")
    for _again in range(2):
        said = verb(site, "running", **REQUEST)
        assert "bob was never started here: not switched" in said["msg"]
        assert (data.read_text(), site.record(1).claim.instance) == ("kept", "bob")
