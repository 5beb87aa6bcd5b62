# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards of PDUs that are several units behind one address, or have their address elsewhere than in `host`. If these
fail, definitions of PDUs that were swapped by mistake cut another tenant's power.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import pdu_places
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import reconcile, stop

HOST = "127.0.0.1"
SCRIPT = """#!/usr/bin/env python3
import json, sys
host, outlet, mode = sys.argv[1:4]
path = {folder!r} + "/{unit}.json"
outlets = json.load(open(path))
if mode == "9":
    print(outlets[outlet])
else:
    outlets[outlet] = {{"1": "on", "2": "off"}}[mode]
    open(path, "w").write(json.dumps(outlets))
"""
#: It lists nothing, as agents that switch one machine each.
AGENT = """#!/usr/bin/env python3
import json, sys
said = dict(line.strip().split("=", 1) for line in sys.stdin if "=" in line)
path = {folder!r} + "/unit" + (said.get("switch") or said.get("ip", "").split(".")[-1] or "1") + ".json"
outlets, action = json.load(open(path)), said["action"]
if action.startswith("list"):
    sys.exit(1)
elif action == "status":
    sys.exit(0 if outlets[said["plug"]] == "on" else 2)
elif action in ("on", "off"):
    outlets[said["plug"]] = action
    open(path, "w").write(json.dumps(outlets))
"""


def unit_of_a_script(site, number):
    return dict(driver="command", host=HOST, script=str(site.folder / f"unit{number}"))


def unit_of_an_agent(site, number):
    return dict(driver="fence", host=HOST, agent="fence_x", agent_options={"switch": number})


def address_in_options(site, number):
    return dict(driver="fence", agent="fence_x", agent_options={"ip": f"10.0.100.{number}"})


def machines(site, number):
    return dict(driver="fence", agent="fence_x", agent_options={"port_as_ip": 1})


def outlets(site, number):
    return json.loads((site.folder / f"unit{number}.json").read_text())


def wire(site, pdus, wires):
    """The PDUs by name, and what feeds boards 0 and 1."""
    path = site.folder / "proxy.json"
    config = json.loads(path.read_text())
    config["pdus"] = pdus
    for board, (pdu, outlet) in enumerate(wires):
        config["boards"][str(board)].update(pdu=pdu, outlet=outlet)
    path.write_text(json.dumps(config))


@pytest.fixture
def units(site):
    """Two units behind what the PDUs' settings name."""
    for number in (1, 2):
        script = site.folder / f"unit{number}"
        script.write_text(SCRIPT.format(folder=str(site.folder), unit=script.name))
        script.chmod(0o755)
        (site.folder / f"unit{number}.json").write_text(json.dumps(dict.fromkeys(("1", "2", HOST, "10.0.0.9"), "off")))
    agent = site.folder / "bin" / "fence_x"
    agent.write_text(AGENT.format(folder=str(site.folder)))
    agent.chmod(0o755)
    return site


@pytest.mark.parametrize("settings", [unit_of_a_script, unit_of_an_agent, address_in_options])
@pytest.mark.parametrize("verb", [stop, reconcile, lambda site: site.terminate()], ids=["stop", "reconcile", "end"])
def test_swapped_units_cut_nobody(units, settings, verb):
    """Lost: carol's power, to a stop of jackie's board, where the definitions of their two PDUs were swapped."""
    one, two = settings(units, 1), settings(units, 2)
    wire(units, {"pdu-a": one, "pdu-b": two}, [("pdu-a", "1"), ("pdu-b", "1")])
    for name in ("jackie", "carol"):
        assert not any(result.get("failed") for result in units.provision(name))
    wire(units, {"pdu-a": two, "pdu-b": one}, [("pdu-a", "1"), ("pdu-b", "1")])
    said = str(verb(units))
    assert (outlets(units, 1)["1"], outlets(units, 2)["1"]) == ("on", "on")
    assert "its wiring names pdu-a outlet 1" in said
    assert "jackie had its power by pdu-b outlet 1 last" in said


@pytest.mark.parametrize("settings", [address_in_options, machines])
@pytest.mark.parametrize("verb", [reconcile, lambda site: site.provision("bob")], ids=["reconcile", "provision"])
def test_a_second_name_without_a_host_is_the_same_pdu(units, settings, verb):
    """Lost: jackie's power, to a slip in the wiring of a board that nobody has, by another name of what feeds her."""
    same = settings(units, 1)
    wire(units, {"pdu-a": same, "pdu-b": same}, [("pdu-a", HOST), ("pdu-b", "10.0.0.9")])
    assert not any(result.get("failed") for result in units.provision("jackie"))
    wire(units, {"pdu-a": same, "pdu-b": same}, [("pdu-a", HOST), ("pdu-b", HOST)])
    said = str(verb(units))
    assert outlets(units, 1)[HOST] == "on"
    assert "by which jackie on board0 had power last" in said or verb is not reconcile


@pytest.mark.parametrize("name", ["rack{}", "unit{}.invalid"])
def test_what_a_script_gets_as_its_host_is_text(units, name):
    """Lost: the end of a lease, of all boards of PDUs whose hosts only a script understands."""
    pdus = {
        f"pdu-{number}": dict(unit_of_a_script(units, 1), host=name.format(number), outlets=["1"]) for number in (1, 2)
    }
    script = units.folder / "unit1"
    script.write_text(script.read_text().replace('"/unit1.json"', '"/unit%s.json" % host[4]'))
    wire(units, pdus, [("pdu-1", "1"), ("pdu-2", "1")])
    for instance in ("jackie", "carol"):
        results = units.provision(instance)
        assert not any(result.get("failed") for result in results), results
    assert not stop(units).get("failed")
    assert (outlets(units, 1)["1"], outlets(units, 2)["1"]) == ("off", "on")


def test_while_no_name_has_an_address_no_guess_is_told_as_a_fact(units, monkeypatch):
    """Lost: why a board cannot be stopped: its operator looks for a plug in the rack while the name server is down."""
    known = {"pdu1.lab": frozenset(["10.0.0.1"]), "pdu2.lab": frozenset(["10.0.0.2"])}
    monkeypatch.setattr(pdu_places, "_looked_up", lambda name: known.get(name, frozenset()))
    settings = dict(driver="fence", agent="fence_x")
    pdus = {
        f"pdu-{number}": dict(settings, host=f"pdu{number}.lab", agent_options={"inet4_only": 1, "x": number})
        for number in (1, 2)
    }
    agent = units.folder / "bin" / "fence_x"
    agent.write_text(agent.read_text().replace('said.get("switch")', 'said.get("x")'))
    wire(units, pdus, [("pdu-1", "1"), ("pdu-2", "1")])
    for instance in ("jackie", "carol"):
        assert not any(result.get("failed") for result in units.provision(instance))
    known.clear()
    said = stop(units)["msg"]
    assert "by which carol on board1 may have had power last: pdu1.lab and pdu2.lab have no address just now" in said
    assert "have pdu1.lab and pdu2.lab resolved on the proxy node" in said
    assert "adopt=" not in said
    assert (outlets(units, 1)["1"], outlets(units, 2)["1"]) == ("on", "on")
