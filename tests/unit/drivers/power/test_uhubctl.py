# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Driver uhubctl on hubs that are played by a program of that name (played_uhubctl.py)."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
import time
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError, TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.findings import Findings
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import outlets as power
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import pdu_places
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.uhubctl import OUTLET, Uhubctl
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import words_check
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.entries_check import Entry

PLAYED = Path(__file__).with_name("played_uhubctl.py")
DEVICE = "0525:a4a2 Linux RNDIS/Ethernet Gadget, power off"


def hub(at, usb=2, on=(), **more):
    ports = {str(number): {"power": str(number) in on, "device": DEVICE} for number in range(1, 5)}
    return {"at": at, "usb": usb, "ports": ports, **more}


@pytest.fixture
def hubs(tmp_path, monkeypatch):
    """A function that plugs hubs in; the path of their file is what it returns."""
    file, programs = tmp_path / "hubs.json", tmp_path / "bin"
    programs.mkdir()
    program = programs / "uhubctl"
    program.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, str(PLAYED), str(file)])} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")

    def plug(*plugged, **faults):
        file.write_text(json.dumps({"hubs": plugged, "faults": faults}))
        return file

    return plug


@contextlib.contextmanager
def opened(folder, *outlets, seconds=120.0, **settings):
    deadline = Deadline(seconds)
    given = dict(settings, driver="uhubctl", outlets=list(outlets))
    with power.session("usb", given, {}, deadline, str(folder)) as session:
        yield session, deadline


def switched(folder, wanted, *outlets, **options):
    with opened(folder, *(outlets or wanted)) as (session, deadline):
        results = power.set_outlets(session, wanted, deadline, **options)
    return {outlet: (seen["before"], seen["after"]) for outlet, seen in results.items()}


def powers(file, at):
    (one,) = [one for one in json.loads(file.read_text())["hubs"] if one["at"] == at]
    return [number for number, port in one["ports"].items() if port["power"]]


def asked(file):
    return file.with_suffix(".log").read_text().splitlines()


def test_ports_are_read_and_switched(hubs, tmp_path):
    """Lost: a board that stays dark, or runs on; or the board at another port of that number."""
    file = hubs(hub("1-1", on="13"), hub("1-1.4", on="2"))
    assert switched(tmp_path, {"1-1.4:2": "off", "1-1:1": "on"}) == {"1-1.4:2": ("on", "off"), "1-1:1": ("on", "on")}
    assert switched(tmp_path, {"1-1.4:3": "on", "1-1:3": "cycled"}) == {"1-1.4:3": ("off", "on"), "1-1:3": ("on", "on")}
    assert (powers(file, "1-1"), powers(file, "1-1.4")) == (["1", "3"], ["3"])
    assert [words for words in asked(file) if "-a" in words] == [
        "-l 1-1.4 -p 2 -a off",
        "-l 1-1 -p 3 -a off",
        "-l 1-1.4 -p 3 -a on",
        "-l 1-1 -p 3 -a on",
    ]


def test_a_hub_of_usb_3_is_two_that_are_one(hubs, tmp_path):
    """Lost: the power of a board that was called off, as one half of its port still gives it."""
    file = hubs(hub("2-1.4", 3, on="2", twin="1-1.4"), hub("1-1.4", on="2", twin="2-1.4"))
    assert switched(tmp_path, {"1-1.4:2": "off"}) == {"1-1.4:2": ("on", "off")}
    assert (powers(file, "1-1.4"), powers(file, "2-1.4")) == ([], [])
    hubs(hub("2-1.4", 3, on="2", twin="1-1.4"), hub("1-1.4", twin="2-1.4"), stuck=["2-1.4:2"])
    with opened(tmp_path, "1-1.4:2") as (session, _deadline):
        assert session.status() == {"1-1.4:2": "unknown (off and on)"}
    with pytest.raises(power.OutletsFailed, match=r"still unknown \(off and on\).*cuts the power"):
        switched(tmp_path, {"1-1.4:2": "off"}, window=0.1)


def test_two_names_of_one_port_are_refused(hubs, tmp_path):
    """Lost: one board's power, for the other's."""
    file = hubs(hub("2-1.4", 3, on="2", twin="1-1.4"), hub("1-1.4", on="2", twin="2-1.4"))
    with pytest.raises(BadInput, match=r"usb: has one port as two outlets, 1-1\.4:2 and 2-1\.4:2"):
        switched(tmp_path, {"1-1.4:2": "off"}, "1-1.4:2", "2-1.4:2")
    assert powers(file, "1-1.4") == ["2"]


def test_a_board_that_has_a_port_of_its_own_by_now_is_switched(hubs, tmp_path):
    """Lost: a board's power, for as long as the session goes on, to what its port was before it was plugged anew."""
    outlets = ("1-1.4:2", "2-1.4:2", "1-2:1")
    hubs(hub("2-1.4", 3, on="2", twin="1-1.4"), hub("1-1.4", on="2", twin="2-1.4"), hub("1-2", on="1"))
    with opened(tmp_path, *outlets) as (session, deadline):
        told = [state.startswith("unknown (has one port as two") for state in session.status().values()]
        assert told == [True, True, False]
        file = hubs(hub("2-1.4", on="2"), hub("1-1.4", on="2"), hub("1-2", on="1"))
        power.set_outlets(session, {"1-1.4:2": "off"}, deadline)
    assert [powers(file, at) for at in ("1-1.4", "2-1.4", "1-2")] == [[], ["2"], ["1"]]


def named(at, other):
    """A hub at whose port 2 a gadget names another hub; each of its texts has 64 characters at most."""
    plugged = hub(at, on="123")
    plugged["ports"]["2"]["device"] = f"0525:a4a2 x]\nCurrent status for hub {other} [y"
    return plugged


def test_two_boards_that_name_each_others_hubs_block_no_others(hubs, tmp_path):
    """Lost: the power switch of everybody's board at the node's hubs, by the word of one tenant's boards."""
    outlets = ("1-1:2", "1-2:2", "1-1:3")
    file = hubs(named("1-1", "1-2"), named("1-2", "1-1"))
    seen = switched(tmp_path, {"1-1:3": "off", "1-1:2": "off"}, *outlets)
    assert seen == {"1-1:3": ("on", "off"), "1-1:2": ("on", "off")}
    assert (powers(file, "1-1"), powers(file, "1-2")) == (["1"], ["1", "2", "3"])


@pytest.mark.parametrize("usb", [2, 3])
def test_who_has_both_boards_that_name_each_others_hubs_loses_them(hubs, tmp_path, usb):
    """Lost: two boards for ever, as no end of their tenant's switches them off: what is told of two hubs on two buses
    begins with two hubs, and what is told of the halves of one, with one of them."""
    outlets = ("1-1:2", "2-1:2", "1-1:3")
    halves = [hub("3-1", 3, on="123", twin="1-1")] if usb == 3 else []
    file = hubs(*halves, dict(named("1-1", "2-1"), twin="3-1"), named("2-1", "1-1"))
    seen = switched(tmp_path, {"1-1:3": "off", "1-1:2": "off"}, *outlets)
    assert seen == {"1-1:3": ("on", "off"), "1-1:2": ("on", "off")}
    assert (powers(file, "1-1"), powers(file, "2-1")) == (["1"], ["1", "2", "3"])


def test_two_names_of_one_port_are_one_whatever_is_plugged_in(hubs, tmp_path):
    """Lost: one board's power, for the other's, by the word of what is plugged in there."""
    half = dict(named("1-1", "4-1"), twin="2-1")
    file = hubs(half, hub("2-1", 3, on="2", twin="1-1"), hub("1-2", on="3"))
    outlets = ("1-1:2", "2-1:2", "1-2:3")
    with pytest.raises(power.OutletsFailed, match=r"has one port as two outlets, 1-1:2 and 2-1:2") as failed:
        switched(tmp_path, {"1-2:3": "off", "1-1:2": "off"}, *outlets)
    assert [*failed.value.results] == ["1-2:3"]
    assert (powers(file, "1-1"), powers(file, "1-2")) == (["1", "2", "3"], [])


def test_what_is_plugged_in_cannot_say_that_it_is_off_or_another(hubs, tmp_path):
    """Lost: the word of a tenant's board, which chooses its own name, for that of the hub."""
    forged = hub("1-1.4", on="23")
    lines = "Current status for hub {} [y]\n  Port 2: 0000 off\n"
    forged["ports"]["2"]["device"] = "x]\n" + lines.format("1-1.4") + lines.format("1-1")
    hubs(forged, hub("1-1", on="2"))
    with opened(tmp_path, "1-1.4:2", "1-1.4:3", "1-1:2") as (session, _deadline):
        assert session.status() == {"1-1.4:2": "unknown (off and on)", "1-1.4:3": "on", "1-1:2": "on"}


def test_without_outlets_all_are_told(hubs, tmp_path):
    """Lost: how to name a port, to who asks pdu_info before he wires a board."""
    hubs(hub("1-1", on="1"), hub("1-2", each=False))
    with opened(tmp_path) as (session, _deadline):
        assert session.dialect == "uhubctl"
        assert session.status() == {"1-1:1": "on", "1-1:2": "off", "1-1:3": "off", "1-1:4": "off"}
    hubs()
    said = r"finds no hub \(No compatible devices detected!\): run uhubctl on"
    with pytest.raises(HeteroError, match=said), opened(tmp_path) as (session, _deadline):
        session.status()


@pytest.mark.parametrize("hub_there", [None, hub("1-1.4", on="2", each=False)])
def test_a_hub_that_is_away_or_switches_all_ports_at_once(hubs, tmp_path, hub_there):
    """Lost: the other boards, or where to look."""
    file = hubs(hub("1-1", on="1"), *([hub_there] if hub_there else []))
    with opened(tmp_path, "1-1.4:2", "1-1:1") as (session, deadline):
        status = session.status()
        assert status["1-1:1"] == "on"
        assert status["1-1.4:2"].startswith("unknown (no hub with switched ports is there (No compatible devices")
        with pytest.raises(power.OutletsFailed, match=r"No compatible devices detected at location 1-1\.4!"):
            power.set_outlets(session, {"1-1.4:2": "off"}, deadline, window=0.1)
    assert "-f" not in " ".join(asked(file))
    with pytest.raises(HeteroError, match=r"outlet 1-1\.4:2 of usb: no hub with .*cuts no port by itself"):
        switched(tmp_path, {"1-1.4:2": "on"})


def test_a_hub_that_says_yes_and_does_nothing(hubs, tmp_path):
    """Lost: a board that is called off while its tenant still runs on it."""
    hubs(hub("1-1", on="1"), stuck=["1-1:1"])
    with pytest.raises(power.OutletsFailed, match=r"outlet 1-1:1 of usb: still on .*see whether it is a hub of which"):
        switched(tmp_path, {"1-1:1": "off"}, window=0.1)


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        (dict(denied=True), r"usb: may not use USB \(There were permission problems.*\): do it as root"),
        (dict(broken=True), r"no hub with switched ports is there \(Error initializing USB!\)"),
    ],
)
def test_usb_that_cannot_be_used(hubs, tmp_path, faults, said):
    """Lost: which of a missing right and a missing hub it is."""
    hubs(hub("1-1", on="1"), **faults)
    with pytest.raises(HeteroError, match=said):
        switched(tmp_path, {"1-1:1": "off"})


def test_a_port_that_cannot_be_read(hubs, tmp_path):
    """Lost: that nothing is known, to a guess."""
    hubs(hub("1-1", on="1"), unread=["1-1:1"])
    with opened(tmp_path, "1-1:1", "1-1:2") as (session, _deadline):
        assert session.status() == {
            "1-1:1": "unknown (cannot read port 1 status, No such device (19))",
            "1-1:2": "off",
        }


def test_a_hub_that_hangs_ends_at_the_deadline(hubs, tmp_path):
    """Lost: a play, for as long as a hub does not answer."""
    hubs(hub("1-1"), hang=True)
    said = r"usb: uhubctl did not end within .*last heard: Current status"
    for seconds in (3.0, 30.0):  # a busy machine needs longer to hear it
        begun = time.monotonic()
        with pytest.raises(TimedOut) as told, opened(tmp_path, "1-1:1", seconds=seconds) as (session, _deadline):
            session.status()
        assert time.monotonic() - begun < seconds + 60
        if "last heard" in str(told.value):
            break
    assert told.match(said)


def test_a_node_without_the_program(tmp_path, monkeypatch):
    """Lost: what to install."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HeteroError, match="usb: program uhubctl is not installed: install it, or run the set-up"):
        switched(tmp_path, {"1-1:1": "off"})


@pytest.mark.parametrize(
    ("outlet", "right"),
    [
        ("1-1.4:2", True),
        ("2:3", True),
        ("10-1.2.3.4.5.6.7:14", True),
        ("1-1:15", False),
        ("1-1:0", False),
        ("1-1", False),
        ("-1:2", False),
        ("1-1.4:2 ", False),
        ("1-1.4:all", False),
    ],
)
def test_what_is_an_outlet(tmp_path, outlet, right):
    """Lost: all ports of a hub, for a number that uhubctl reads otherwise."""
    assert bool(OUTLET.fullmatch(outlet)) == right
    if not right:
        with pytest.raises(BadInput, match="is none that a hub has: write HUB:PORT, such as"):
            switched(tmp_path, {outlet: "off"})


@pytest.mark.parametrize(("host", "wrong"), [("", False), ("localhost", False), ("proxy2", True), ("10.0.0.1", True)])
def test_another_nodes_hubs_are_not_switched(tmp_path, host, wrong):
    """Lost: the power of boards at this node's hubs, for those of another node."""
    found = [str(error) for _key, error in Uhubctl.wrong("usb", {"host": host})]
    assert [f"has host {host}, but uhubctl switches hubs of" in error for error in found] == [True] * wrong
    if wrong:
        with pytest.raises(BadInput, match="leave host out"), opened(tmp_path, "1-1:1", host=host):
            pytest.fail("opened")


def test_the_hubs_of_a_node_need_no_host():
    """Lost: a set-up as the guide has it."""
    found = Findings()
    words_check.pdu("usb", Entry(driver="uhubctl"), found)
    assert found.defects == []


def test_the_hubs_of_a_node_are_one_pdu():
    """Lost: that two boards are on one port, where the hubs are two PDUs by name."""
    one = pdu_places.place({"driver": "uhubctl"})
    assert one.is_at(pdu_places.place({"driver": "uhubctl", "host": "localhost", "outlets": ["1-1:1"]}))
    assert not one.may_be_at(pdu_places.place({"driver": "apc", "host": "10.0.100.1"}))
