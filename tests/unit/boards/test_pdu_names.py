# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which names of PDUs are of one device. If these fail, a verb on one board cuts the power of another tenant's, whose
outlet has a second name.
"""

from __future__ import annotations

import socket
import threading
import time
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils.boards import pdu_names
from ansible_collections.hetero.compute.plugins.module_utils.boards.claim_records import Fed
from ansible_collections.hetero.compute.plugins.module_utils.boards.feeding import Feeds

HOST, OTHER = "10.0.100.1", "10.0.100.2"


@pytest.fixture(autouse=True)
def named(monkeypatch):
    """A name server that knows one PDU by each of its addresses, another by one of those of it, and a third one."""
    addresses = {"pdu-named.lab": ("fd00::5", "10.0.100.0", HOST), "pdu-also.lab": ("fd00::5",), "other.lab": (OTHER,)}

    def ask(name, port, type):
        if name not in addresses:
            raise socket.gaierror("Name or service not known")
        return [(None, type, 6, "", (address, 0)) for address in addresses[name]]

    monkeypatch.setattr(pdu_names.socket, "getaddrinfo", ask)
    monkeypatch.setattr(pdu_names, "_waited", [0.0])
    pdu_names._looked_up.cache_clear()
    yield
    pdu_names._looked_up.cache_clear()


def test_a_name_server_that_is_down_is_waited_for_once(monkeypatch):
    """Lost: a minute at each verb of a site whose PDUs have names."""
    down = threading.Event()
    monkeypatch.setattr(pdu_names, "LOOKUPS", 0.2)
    monkeypatch.setattr(pdu_names.socket, "getaddrinfo", lambda *words, **more: down.wait(60) and [])
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
    ("outlet", "plug"), [(5, "5"), ("05", "5"), (" 5", "5"), ("2:5", "2:5"), ("AA1", "AA1"), ("0", "0")]
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
    store = SimpleNamespace(lost=list, kept_boards=list)
    feeds = Feeds(SimpleNamespace(store=store, config={"pdus": pdus}))
    fed = Fed("pdu-a", "5", HOST)
    assert feeds.names(fed) == names
    assert {name for name in pdus if feeds.is_at(fed, name, "5")} == set(names)
    assert not any(feeds.is_at(fed, name, "6") for name in pdus)


def test_an_outlet_of_which_nobody_knows_is_held_and_not_proven():
    """Lost: a tenant's power, by a name with a port that leads to the same PDU; or by the proof of another's outlet."""
    store = SimpleNamespace(lost=list, kept_boards=list)
    pdus = {"pdu-a": {"host": HOST}, "pdu-b": {"host": HOST, "port": 2301}}
    feeds = Feeds(SimpleNamespace(store=store, config={"pdus": pdus}))
    fed = Fed("pdu-a", "5", HOST)
    assert feeds.may_be_at(fed, "pdu-b", "5")
    assert not feeds.is_at(fed, "pdu-b", "5")
    assert not feeds.may_be_at(fed, "pdu-b", "6")
