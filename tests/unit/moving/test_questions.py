# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is asked of the site's people: if these fail, two boards get one address or outlet, or an answer is for another
board than the one that was meant.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving.answers import Answers
from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving.questions import distinct, of_site
from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving.source_site import Board, Pdu, Site

WHOLE = dict(ip="10.0.2.1", arch="x86_64", vcpus=4, memory_mb=8192, local_gb=0, pdu="pdu-a", outlet="1")


def board(name, number, **said):
    """A board of which all is known."""
    known = dict(WHOLE, mac=f"02:00:00:00:00:{number:02x}", ip=f"10.0.2.{number}", outlet=str(number))
    return Board(name, f"line {number}", {**known, **said})


def site(*boards, **pdus):
    made = {name: Pdu(name, "racks", said) for name, said in (pdus or {"pdu-a": dict(driver="apc", host="h")}).items()}
    return Site(list(boards), {name.replace("_", "-"): pdu for name, pdu in made.items()})


def asked(given, server="10.0.2.254"):
    """{(thing, key): (why, needed)} of all that is asked but of the proxy node."""
    answers = Answers()
    answers.said["proxy"][""] = dict(name="proxy1", server=server)
    return {(one.thing, one.key): (one.reason, one.needed) for one in of_site(given, answers)}


def of_boards(given, **more):
    names = {one.name for one in given.boards}
    return {place: said for place, said in asked(given, **more).items() if place[0] in names}


def test_nothing_is_asked_of_what_is_known():
    """Lost: an afternoon of who answers what the source says."""
    assert of_boards(site(board("a", 1), board("b", 2))) == {}


@pytest.mark.parametrize("key", ["id", "mac", "ip", "outlet"])
def test_what_two_boards_have_neither_keeps(key):
    """Lost: the power of one board, to a claim on the other; or its root, to the other's number."""
    same = {"id": 3, "mac": "02:00:00:00:00:77", "ip": "10.0.2.9", "outlet": "5"}[key]
    given = site(board("a", 1, **{key: same}), board("b", 2, **{key: same}), board("c", 3))
    found = of_boards(given)
    assert sorted(found) == [("a", key), ("b", key)]
    assert all("is said of a (line 1) and b (line 2)" in why for why, _needed in found.values())
    assert not any(key in one.said for one in given.boards[:2])
    assert ("outlet 5 of pdu-a is said" in found["a", key][0]) == (key == "outlet")


def test_no_board_has_the_proxy_nodes_address():
    """Lost: the proxy node itself, to a board that answers in its place."""
    given = site(board("a", 1), board("b", 2))
    assert of_boards(given, server="10.0.2.2") == {("b", "ip"): ("line 2: 10.0.2.2 is the proxy node's own", True)}


def test_an_outlet_of_somebodys_machine_is_no_boards():
    """Lost: the power of a machine that is none of ours."""
    given = site(board("a", 1))
    given.others = [Board("theirs", "line 9", dict(outlet="1"), held="pdu-a")]
    assert sorted(of_boards(given)) == [("a", "outlet")]


def test_boards_of_one_name_are_told_apart():
    """Lost: an answer, to the other board of that name."""
    given = site(board("rack", 1), board("b", 2), board("rack", 3), board("rack", 4))
    distinct(given)
    assert [one.name for one in given.boards] == ["rack", "b", "rack (2)", "rack (3)"]
    assert given.notes == [
        "line 3: another one is called rack, too: it is rack (2) here",
        "line 4: another one is called rack, too: it is rack (3) here",
    ]


@pytest.mark.parametrize(("said", "keys"), [
    (dict(local_gb=10), {"disk": False}),
    (dict(pdu=None), {"pdu": False, "outlet": False}),
    (dict(outlet=None), {"outlet": False}),
    (dict(arch="aarch64"), {"driver": False}),
    (dict(vendor="Tilera"), {"features": False}),
    (dict(vendor="Tilera", features=["8x8Grid"]), {}),
    (dict(mac=None, ip=None), {"mac": True, "ip": True}),
])  # fmt: skip
def test_what_is_missing_is_asked_and_what_can_wait_is_said(said, keys):
    """Lost: a board that can be neither found nor booted; or one that is held up for what it does not need."""
    one = board("a", 1, **said)
    one.said = {key: value for key, value in one.said.items() if value is not None}
    found = of_boards(site(one))
    assert {key: needed for (_name, key), (_why, needed) in found.items()} == keys


@pytest.mark.parametrize(("said", "keys"), [
    ({}, ["driver", "host"]),
    (dict(driver="apc"), ["host", "username"]),
    (dict(driver="fence", host="h", username="u"), ["agent"]),
    (dict(driver="command"), ["script"]),
    (dict(driver="http", host="h"), ["api"]),
    (dict(driver="http", host="h", api_table={}), []),
    (dict(driver="redfish", host="h"), ["tls_ca", "username"]),
    (dict(driver="redfish", host="h", username="u", tls=False), []),
    (dict(driver="uhubctl"), []),
    (dict(driver="snmp", host="h"), []),
])  # fmt: skip
def test_what_a_pdu_needs_by_its_driver(said, keys):
    """Lost: a set-up that fails at its first login; or an address, asked of a hub at the node's own USB."""
    found = asked(site(board("a", 1), pdu_a=said))
    assert sorted(key for name, key in found if name == "pdu-a" or name == "pdu_a") == keys
