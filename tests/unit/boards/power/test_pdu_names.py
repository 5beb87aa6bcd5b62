# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which names of PDUs are of one device. If these fail, a verb on one board cuts the power of another tenant's, whose
outlet has a second name.

Tests drivers/power/pdu_places.py.
"""

from __future__ import annotations

import socket
import threading
import time
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import pdu_names
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power.last_outlet import Feeds
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import Fed
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import pdu_places
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import ProxyConfig

HOST, OTHER = "10.0.100.1", "10.0.100.2"
FENCE, COMMAND = dict(driver="fence", agent="fence_x"), dict(driver="command", script="/opt/a")


@pytest.fixture(autouse=True)
def named(monkeypatch):
    """A name server that knows one PDU by each of its addresses, another by one of those of it, and a third one."""
    addresses = {"pdu-named.lab": ("fd00::5", "10.0.100.0", HOST), "pdu-also.lab": ("fd00::5",), "other.lab": (OTHER,)}

    def ask(name, port, type):
        if name not in addresses:
            raise socket.gaierror("Name or service not known")
        return [(None, type, 6, "", (address, 0)) for address in addresses[name]]

    monkeypatch.setattr(pdu_places.socket, "getaddrinfo", ask)
    monkeypatch.setattr(pdu_places, "_waited", [0.0])
    pdu_places._looked_up.cache_clear()
    yield
    pdu_places._looked_up.cache_clear()


def test_a_name_server_that_is_down_is_waited_for_once(monkeypatch):
    """Lost: a minute at each verb of a site whose PDUs have names."""
    down = threading.Event()
    monkeypatch.setattr(pdu_places, "LOOKUPS", 0.2)
    monkeypatch.setattr(pdu_places.socket, "getaddrinfo", lambda *words, **more: down.wait(60) and [])
    began = time.monotonic()
    for number in range(50):
        assert not pdu_names.is_same(HOST, {"host": f"pdu-{number}.lab"})
    down.set()
    assert time.monotonic() - began < 30


@pytest.mark.parametrize(
    ("settings", "address"),
    [
        ({}, None),
        ({"path": "/run/pdu.json"}, "/run/pdu.json"),
        ({"host": HOST}, HOST),
        ({"host": HOST, "port": 2323, "path": "/run/pdu.json"}, f"{HOST}:2323"),
        ({"port": 2323}, None),
        (dict(FENCE, host=HOST, agent_options={"switch": 2}), f"{HOST} ;unit=switch 2"),
        (dict(FENCE, host=HOST, port=443, agent_options={"managed": "m 1"}), f"{HOST}:443 ;unit=managed m 1"),
        (dict(FENCE, agent_options={"ip": HOST}), HOST),
        (dict(FENCE, host=OTHER, agent_options={"ipaddr": HOST, "ipport": "443"}), f"{HOST}:443"),
        (dict(FENCE, host=HOST, agent_options={"port_as_ip": "1"}), "/port_as_ip"),
        (dict(FENCE, agent_options={"port_as_ip": 1}, port=6230), "/port_as_ip:6230"),
        (
            dict(FENCE, agent_options={"region": "eu", "password": "x"}, outlets=["1"]),
            "/fence agent=fence_x region=eu",
        ),
        (dict(COMMAND, host="rack 1", port=9), "rack 1 ;unit=/opt/a"),
        (COMMAND, "/opt/a ;unit=/opt/a"),
    ],
)
def test_what_a_pdu_is_known_by(settings, address):
    """Lost: what a PDU of another name feeds; or two behind one terminal server are one."""
    assert pdu_names.address(settings) == address


@pytest.mark.parametrize(
    ("noted", "settings", "same", "may_be"),
    [
        (HOST, {"host": HOST}, True, True),
        (HOST, {"host": HOST, "port": 23, "transport": "telnet"}, True, True),
        (f"{HOST}:23", {"host": HOST, "transport": "ssh"}, True, True),
        (f"{HOST}:22", {"host": HOST, "port": 161, "driver": "snmp"}, True, True),
        (HOST, {"host": HOST, "port": 2301}, False, True),
        (f"{HOST}:2301", {"host": HOST}, False, True),
        (f"{HOST}:2301", {"host": HOST, "port": 2301}, True, True),
        (f"{HOST}:2301", {"host": HOST, "port": 2302}, False, False),
        (HOST, {"host": "10.0.100.2"}, False, False),
        ("PDU-A.lab", {"host": "pdu-a.lab.", "port": 23}, True, True),
        ("fd00::1", {"host": "fd00:0::1", "port": 23}, True, True),
        ("fd00::1:161", {"host": "fd00::1"}, True, True),
        ("fd00::1", {"host": "fd00::2"}, False, False),
        ("/run/a:1", {"path": "/run/a:1"}, True, True),
        ("/run/a.json", {"path": "/run/b.json"}, False, False),
        (HOST, {}, False, False),
        (HOST, {"host": f"::ffff:{HOST}"}, True, True),
        (HOST, {"host": "pdu-named.lab", "port": 23}, True, True),
        ("pdu-named.lab:2301", {"host": f"{HOST}", "port": 2301}, True, True),
        ("10.0.100.0", {"host": "pdu-named.lab"}, True, True),
        ("fd00::5", {"host": "pdu-named.lab"}, True, True),
        ("pdu-also.lab", {"host": "pdu-named.lab"}, True, True),
        ("pdu-also.lab", {"host": HOST}, False, False),
        ("other.lab", {"host": "pdu-named.lab"}, False, False),
        (HOST, {"host": "pdu-unknown.lab"}, False, True),
        ("pdu-unknown.lab", {"host": HOST, "port": 22}, False, True),
        ("pdu-unknown.lab:2301", {"host": HOST, "port": 2302}, False, False),
        ("pdu-unknown.lab", {"host": "PDU-unknown.lab."}, True, True),
        ("/run/a.json", {"host": "pdu-unknown.lab"}, False, True),
        # with a unit
        (f"{HOST} ;unit=switch 2", dict(FENCE, host=HOST, agent_options={"switch": "2"}), True, True),
        (f"{HOST}:23 ;unit=switch 2", dict(FENCE, host=HOST, agent_options={"switch": "2"}), True, True),
        (f"{HOST} ;unit=switch 2", dict(FENCE, host=HOST, agent_options={"switch": 1}), False, False),
        (f"{HOST} ;unit=switch 2", dict(FENCE, host=HOST), False, True),
        (f"{HOST} ;unit=switch 2", dict(FENCE, host=OTHER, agent_options={"switch": "2"}), False, False),
        (HOST, dict(FENCE, host=HOST, agent_options={"switch": 1}), True, True),
        ("fd00::1:161 ;unit=switch 2", dict(FENCE, host="fd00::1", agent_options={"switch": 2}), True, True),
        # without a host
        (HOST, dict(FENCE, agent_options={"ip": HOST}), True, True),
        (HOST, dict(FENCE, host=OTHER, agent_options={"ip": HOST}), True, True),
        (HOST, dict(FENCE, host=HOST, agent_options={"ip": OTHER}), True, True),
        (HOST, dict(FENCE, agent_options={"hostname": "pdu-named.lab"}), True, True),
        ("/port_as_ip", dict(FENCE, host=HOST, agent_options={"port_as_ip": "yes"}), True, True),
        ("/port_as_ip", dict(FENCE, agent_options={"port_as_ip": 1}, port=6230), False, True),
        ("/port_as_ip:6230", dict(FENCE, agent_options={"port_as_ip": 1}, port=6230), True, True),
        ("/port_as_ip", dict(FENCE, host=HOST, agent_options={"port_as_ip": 0}), False, False),
        # by an earlier release
        (HOST, dict(FENCE, host=HOST, agent_options={"port_as_ip": 1}), True, True),
        ("/fence agent=fence_x region=eu", dict(FENCE, agent_options={"region": "eu"}), True, True),
        ("/fence agent=fence_x region=eu", dict(FENCE, agent_options={"region": "us"}), False, False),
        # a script's host is text
        ("rack1 ;unit=/opt/a", dict(COMMAND, host="rack1"), True, True),
        ("rack1 ;unit=/opt/a", dict(COMMAND, host="Rack1", script="/opt//a"), True, True),
        ("rack1 ;unit=/opt/a", dict(COMMAND, host="rack2"), False, False),
        ("rack1 ;unit=/opt/a", dict(COMMAND, host="rack1", script="/opt/b"), False, False),
        ("rack:1 ;unit=/opt/a", dict(COMMAND, host="rack:2"), False, False),
        ("rack1", dict(COMMAND, host="rack1"), True, True),
        ("rack1", dict(COMMAND, host="rack2"), False, False),
        ("rack1:2301", dict(COMMAND, host="rack1", port=2301), True, True),
        (f"{HOST} ;unit=/opt/a", {"host": "pdu-unknown.lab"}, False, True),
        ("rack1 ;unit=/opt/a", {"host": "pdu-unknown.lab"}, False, False),
        ("pdu-named.lab ;unit=/opt/a", {"host": "pdu-named.lab"}, False, True),
    ],
)
def test_one_address_is_one_pdu(noted, settings, same, may_be):
    """Lost: a tenant's power, for one of two names of its PDU names the port that the other leaves out."""
    assert pdu_names.is_same(noted, settings) is same
    assert pdu_names.may_be_same(noted, settings) is may_be


def test_of_two_names_one_is_the_device():
    """Lost: the set-up's word that two boards of one outlet are wired, where its PDU has several names or addresses."""
    pdus = {
        "pdu-a": {"host": HOST},
        "pdu-c": {"host": "10.0.100.0"},
        "pdu-b": {"host": "pdu-named.lab", "port": 23},
        "pdu-d": {"host": "other.lab"},
        "pdu-e": {"host": HOST, "agent_options": {"switch": 2}},
        "pdu-f": {"host": HOST, "port": 2301},
        "pdu-g": {"host": "pdu-unknown.lab"},
        "pdu-h": {"host": "10.0.100.0"},
        "pdu-i": {},
        "pdu-j": dict(FENCE, agent_options={"port_as_ip": 1}),
        "pdu-k": dict(FENCE, host=HOST, agent_options={"port_as_ip": "1"}),
        "pdu-l": dict(FENCE, agent_options={"ip": OTHER}),
        "pdu-m": dict(COMMAND, host="rack1"),
        "pdu-n": dict(COMMAND, host="rack1", port=2301),
        "pdu-o": dict(COMMAND, host="rack2"),
    }
    assert pdu_names.devices(pdus) == {
        "pdu-a": "pdu-a",
        "pdu-b": "pdu-a",
        "pdu-c": "pdu-a",
        "pdu-d": "pdu-d",
        "pdu-e": "pdu-e",
        "pdu-f": "pdu-f",
        "pdu-g": "pdu-g",
        "pdu-h": "pdu-a",
        "pdu-j": "pdu-j",
        "pdu-k": "pdu-j",
        "pdu-l": "pdu-d",
        "pdu-m": "pdu-m",
        "pdu-n": "pdu-m",
        "pdu-o": "pdu-o",
    }


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ({}, {}, False),
        ({"agent_options": {"switch": 2}}, {}, False),
        ({"agent_options": {"switch": 2}}, {"agent_options": {"switch": 1}}, True),
        ({"agent_options": {"switch": 2, "ssl": 1}}, {"agent_options": {"switch": 2}}, False),
        ({"agent_options": {"ssl": 1}}, {"agent_options": {"ssl": 0}}, False),
        ({"script": "/opt/a"}, {"script": "/opt/b"}, True),
        ({"script": "/opt/a"}, {"script": "/opt/a"}, False),
    ],
)
def test_units_behind_one_address_are_told_apart(one, other, apart):
    """Lost: the boards of a chain of PDUs with one address, none of which may be switched."""
    assert pdu_names.are_apart(one, other) is apart


@pytest.mark.parametrize(
    ("outlet", "plug"),
    [(5, "5"), ("05", "5"), (" 5", "5"), ("2:5", "2:5"), ("AA1", "AA1"), ("0", "0"), ("fd00:0::1", "fd00::1")],
)
def test_an_outlet_is_counted_as_its_pdu_does(outlet, plug):
    """Lost: a tenant's power, by an outlet that was written with a zero before it."""
    assert pdu_names.plug(outlet) == plug


@pytest.mark.parametrize(
    ("pdus", "names"),
    [
        ({"pdu-a": {"host": HOST}}, ["pdu-a"]),
        ({"pdu-b": {"host": HOST, "port": 23}, "pdu-a": {"host": HOST}}, ["pdu-a", "pdu-b"]),
        ({"pdu-b": {"host": HOST}}, ["pdu-b"]),
        ({"pdu-a": {"host": "10.0.100.9"}}, ["pdu-a"]),
        ({"pdu-a": {"host": "10.0.100.9"}, "pdu-b": {"host": HOST}}, ["pdu-b"]),
        ({"pdu-b": {"host": "10.0.100.9"}}, []),
    ],
)
def test_each_name_of_a_pdu_is_known(pdus, names):
    """Lost: who has an outlet, where its PDU has a second name beside the one that was noted."""
    store = SimpleNamespace(lost=list, kept_boards=list, begun=dict)
    feeds = Feeds(SimpleNamespace(store=store, config=ProxyConfig(pdus=pdus)))
    fed = Fed("pdu-a", "5", HOST)
    assert feeds.names(fed) == names
    assert {name for name in pdus if feeds.is_at(fed, name, "5")} == set(names)
    assert not any(feeds.is_at(fed, name, "6") for name in pdus)


def test_an_outlet_of_which_nobody_knows_is_held_and_not_proven():
    """Lost: a tenant's power, by a name with a port that leads to the same PDU; or by the proof of another's outlet."""
    store = SimpleNamespace(lost=list, kept_boards=list, begun=dict)
    pdus = {"pdu-a": {"host": HOST}, "pdu-b": {"host": HOST, "port": 2301}}
    feeds = Feeds(SimpleNamespace(store=store, config=ProxyConfig(pdus=pdus)))
    fed = Fed("pdu-a", "5", HOST)
    assert feeds.may_be_at(fed, "pdu-b", "5")
    assert not feeds.is_at(fed, "pdu-b", "5")
    assert not feeds.may_be_at(fed, "pdu-b", "6")


def feeds_of(pdus):
    store = SimpleNamespace(lost=list, kept_boards=list, begun=dict)
    return Feeds(SimpleNamespace(store=store, config=ProxyConfig(pdus=pdus)))


def test_a_host_that_a_script_gets_is_not_looked_up(monkeypatch):
    """Lost: a wait for the name server at each verb, for words that only a script understands."""
    asked = []
    monkeypatch.setattr(pdu_places.socket, "getaddrinfo", lambda name, *more, **words: asked.append(name) or [])
    pdus = {"pdu-a": dict(COMMAND, host="rack1"), "pdu-b": dict(COMMAND, host="rack2")}
    feeds = feeds_of(pdus)
    for fed in (Fed("pdu-a", "1", "rack1"), Fed("pdu-a", "1", pdu_names.address(pdus["pdu-a"]))):
        assert feeds.is_at(fed, "pdu-a", "1")
        assert not feeds.may_be_at(fed, "pdu-b", "1")
    assert asked == []


UNIT_1, UNIT_2 = [dict(FENCE, host=HOST, agent_options={"switch": number}) for number in (1, 2)]


@pytest.mark.parametrize(
    ("noted", "pdus", "names"),
    [
        (f"{HOST} ;unit=switch 1", {"pdu-a": UNIT_2, "pdu-b": UNIT_1}, ["pdu-b"]),
        (f"{HOST} ;unit=switch 1", {"pdu-a": UNIT_1, "pdu-b": UNIT_1, "pdu-c": UNIT_2}, ["pdu-a", "pdu-b"]),
        # nothing but its name says what the unit is
        (HOST, {"pdu-a": UNIT_2, "pdu-b": UNIT_1}, ["pdu-a"]),
        # what was noted is nowhere: all names of the PDU that has its name
        (f"{HOST} ;unit=/opt/a", {"pdu-a": dict(COMMAND, host=HOST), "pdu-b": dict(COMMAND, host=HOST)}, None),
        ("rack9 ;unit=/opt/a", {"pdu-a": dict(COMMAND, host=HOST), "pdu-b": dict(COMMAND, host=HOST)}, None),
        (None, {"pdu-a": UNIT_1, "pdu-b": UNIT_1}, None),
        (None, {"pdu-a": dict(FENCE, agent_options={"a": 1}), "pdu-b": dict(FENCE, agent_options={"a": "1"})}, None),
    ],
)
def test_what_was_noted_tells_units_apart(noted, pdus, names):
    """Lost: a tenant's power, where two units behind one address had their names swapped, or one has two names."""
    feeds, fed, names = feeds_of(pdus), Fed("pdu-a", "5", noted), names or ["pdu-a", "pdu-b"]
    assert feeds.names(fed) == names
    assert [name for name in pdus if feeds.is_at(fed, name, "5")] == names
    assert [name for name in pdus if feeds.may_be_at(fed, name, "5")] == names


MACHINES = dict(FENCE, agent_options={"port_as_ip": 1})


@pytest.mark.parametrize(
    ("fed", "pdu", "outlet", "sure", "may_be"),
    [
        (Fed("bmcs-a", HOST, "/port_as_ip"), "bmcs-b", HOST, True, True),
        (Fed("bmcs-a", HOST), "bmcs-b", f"::ffff:{HOST}", True, True),
        (Fed("bmcs-a", HOST, "10.0.100.8"), "bmcs-b", HOST, True, True),
        (Fed("bmcs-a", HOST, "/port_as_ip"), "bmcs-b", "pdu-named.lab", True, True),
        (Fed("bmcs-a", HOST, "/port_as_ip"), "bmcs-b", OTHER, False, False),
        (Fed("bmcs-a", HOST, "/port_as_ip"), "bmcs-b", "pdu-unknown.lab", False, True),
        # one machine by its own name, and as one of several
        (Fed("bmc-c", "1", HOST), "bmcs-a", HOST, False, True),
        (Fed("bmc-c", "1", HOST), "bmcs-a", OTHER, False, False),
        (Fed("bmcs-a", HOST, "/port_as_ip"), "bmc-c", "1", False, True),
        (Fed("bmcs-a", OTHER, "/port_as_ip"), "bmc-c", "1", False, False),
        (Fed("bmcs-a", HOST, "/port_as_ip"), "gone", HOST, False, False),
    ],
)
def test_an_outlet_that_is_an_address_is_one_by_each_name(fed, pdu, outlet, sure, may_be):
    """Lost: a tenant's power, where two groups of BMCs name one of them."""
    feeds = feeds_of(
        {
            "bmcs-a": dict(MACHINES, host="10.0.100.8"),
            "bmcs-b": dict(MACHINES, host=OTHER),
            "bmc-c": dict(FENCE, host=HOST),
        }
    )
    assert feeds.is_at(fed, pdu, outlet) is sure
    assert feeds.may_be_at(fed, pdu, outlet) is may_be
