# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said of a board that had, or may have had, its power by another's outlet."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power.doubt import Doubt
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power.last_outlet import Feeds
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import Fed
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import pdu_places
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import ProxyConfig

#: Of which a name server says an address.
NAMED = {"pdu-a.lab": ["10.0.100.1"], "pdu-b.lab": ["10.0.100.2"]}
MACHINES = dict(driver="fence", agent="fence_x", agent_options={"port_as_ip": 1})
PDUS = {
    "pdu-a": {"host": "pdu-a.lab"},
    "pdu-b": {"host": "pdu-b.lab"},
    "pdu-c": {"host": "10.0.100.3"},
    "pdu-d": {"host": "10.0.100.3", "port": 2301},
    "bmcs": MACHINES,
}
RESOLVE = "nothing is switched: have {} resolved on the proxy node, by its name server or a line in /etc/hosts"


@pytest.fixture
def doubt(monkeypatch):
    """Of board 0, at outlet 1 of a PDU, while nobody says an address of these; of whom others had power by what."""

    def make(at, held, silent=(), unknown=None):
        def ask(name, *more, **words):
            return [(2, 1, 6, "", (address, 0)) for address in ([] if name in silent else NAMED.get(name, []))]

        monkeypatch.setattr(pdu_places.socket, "getaddrinfo", ask)
        pdu_places._looked_up.cache_clear()
        kept = {
            number: SimpleNamespace(claim=SimpleNamespace(instance=f"vm{number}"), fed=fed, anew=False)
            for number, fed in held.items()
        }
        feeds = Feeds.__new__(Feeds)
        feeds.proxy, feeds._kept = SimpleNamespace(boards=range(20), config=ProxyConfig(pdus=PDUS)), {}
        feeds._fed_by = {}
        for number, one in kept.items():
            feeds._keep(number, one)
        board = SimpleNamespace(id=0, name="board0")
        holders = feeds.holders(board, *at)
        return Doubt(feeds, board, None, Fed(*at), None, holders, unknown or {}) if holders else None

    yield make
    pdu_places._looked_up.cache_clear()


@pytest.mark.parametrize(
    ("at", "held", "silent", "text", "names"),
    [
        (("pdu-a", "1"), {1: Fed("pdu-b", "1", "pdu-b.lab")}, [], None, None),
        (
            ("pdu-a", "1"),
            {1: Fed("pdu-a", "1", "pdu-a.lab")},
            ["pdu-a.lab"],
            ", by which vm1 on board1 had power last",
            None,
        ),
        (
            ("pdu-a", "1"),
            {1: Fed("pdu-b", "1", "pdu-b.lab")},
            ["pdu-b.lab"],
            ", by which vm1 on board1 may have had power last: pdu-b.lab has no address just now",
            "pdu-b.lab",
        ),
        (
            ("pdu-a", "1"),
            {1: Fed("pdu-b", "1", "pdu-b.lab"), 2: Fed("pdu-c", "01", "10.0.100.3")},
            ["pdu-a.lab", "pdu-b.lab"],
            ", by which vm1 on board1 and vm2 on board2 may have had power last: pdu-a.lab and pdu-b.lab have no"
            " address just now",
            "pdu-a.lab and pdu-b.lab",
        ),
        (
            ("pdu-a", "1"),
            {1: Fed("pdu-a", "1", "pdu-a.lab"), 2: Fed("pdu-b", "1", "pdu-b.lab")},
            ["pdu-b.lab"],
            ", by which vm1 on board1 had power last, by which vm2 on board2 may have had power last: pdu-b.lab has no"
            " address just now",
            None,
        ),
        (
            ("pdu-d", "1"),
            {1: Fed("pdu-c", "1", "10.0.100.3")},
            [],
            ", by which vm1 on board1 may have had power last: pdu-c outlet 1 may be the same outlet",
            None,
        ),
        (
            ("bmcs", "bmc.lab"),
            {1: Fed("bmcs", "10.0.100.9", "/port_as_ip")},
            [],
            ", by which vm1 on board1 may have had power last: bmc.lab has no address just now",
            "bmc.lab",
        ),
    ],
)
def test_what_is_a_guess_is_said_to_be_one(doubt, at, held, silent, text, names):
    """Lost: what to do while the name server is down; a guess, told as a fact, has a plug looked for in the rack."""
    one = doubt(at, held, silent)
    if text is None:
        assert one is None
        return
    assert str(one) == f"its wiring names {at[0]} outlet {at[1]}{text}"
    assert one.remedy.startswith(RESOLVE.format(names)) is bool(names)
    assert ("adopt=" in one.remedy) is not bool(names)


def test_a_lost_record_is_more_than_a_name_without_an_address(doubt):
    """Lost: whose record is lost, behind the word that a name is to be resolved."""
    one = doubt(("pdu-a", "1"), {1: Fed("pdu-b", "1", "pdu-b.lab")}, ["pdu-b.lab"], {5: "eve"})
    assert "may feed eve on board5" in str(one)
    assert "adopt=" in one.remedy
