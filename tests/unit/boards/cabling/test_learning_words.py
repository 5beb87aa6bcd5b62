# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Outlets as people name them, and what drivers are told that cannot ask their PDU for its outlets.

Tests boards/cabling/outlet_spans.py.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.cabling.learning import Learning
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.cabling.outlet_spans import outlets
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.uhubctl import OUTLET
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import ProxyConfig

PDUS = {"pdu-a": {"host": "10.0.100.1"}, "again": {"host": "10.0.100.1"}, "pdu:b": {"host": "10.0.100.2"}, "pdu": {}}
HUBS = {"hubs": {"driver": "uhubctl"}}


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["pdu-a:1-3"], [("pdu-a", "1"), ("pdu-a", "2"), ("pdu-a", "3")]),
        (["pdu-a:8-8", "pdu:b:1-2"], [("pdu-a", "8"), ("pdu:b", "1"), ("pdu:b", "2")]),
        (["pdu:2:7-8"], [("pdu", "2:7"), ("pdu", "2:8")]),
        (["pdu:b:2:7"], [("pdu:b", "2:7")]),
        (["pdu:rack-left", "pdu:10.0.0.7"], [("pdu", "rack-left"), ("pdu", "10.0.0.7")]),
    ],
)
def test_spans_and_names(words, found):
    assert outlets(PDUS, words) == found


@pytest.mark.parametrize("outlet", ["1-1:2", "2-3:14", "10-1:1", "1-1.4:2", "1:2"])
def test_a_hubs_port_is_taken_by_its_name(outlet):
    """Lost: learn= for boards at a hub that is plugged into the node itself, 1-1 as on a Raspberry Pi."""
    assert OUTLET.fullmatch(outlet)
    assert outlets(HUBS, [f"hubs:{outlet}"]) == [("hubs", outlet)]


@pytest.mark.parametrize("hub", ["1-1", "1-1.4", "1"])
def test_a_span_of_a_hubs_ports(hub):
    assert outlets(HUBS, [f"hubs:{hub}:1-3"]) == [("hubs", f"{hub}:{port}") for port in "123"]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("pdu-a", '"pdu-a", which names no outlet: write spans and names of outlets behind their PDU, such as'),
        ("pdu-a:", '"pdu-a:", which names no outlet'),
        ("pdu-a:3-", '"pdu-a:3-", which names no outlet'),
        ("pdu-a:-3", '"pdu-a:-3", which names no outlet'),
        ("pdu-a:1-2:", '"pdu-a:1-2:", which names no outlet'),
        ("pdu-a:1-2:3-", '"pdu-a:1-2:3-", which names no outlet'),
        ("pdu-a:1:1-1:8", '"pdu-a:1:1-1:8", which names no outlet'),
        ("pdu-a:1-2-3", '"pdu-a:1-2-3", which names no outlet'),
        ("pdu-a:8-1", '"pdu-a:8-1", a span from 8 to 1: write the lower number first'),
        ("pdu-a:1-20000", "a span from 1 to 20000"),
        ("1-8", '"1-8", which names no PDU (known: again, pdu, pdu-a, pdu:b)'),
        ("pdu-x:1", 'there is no PDU "pdu-x"'),
        ("again:3", "names outlet 3 of again twice"),
    ],
)
def test_what_cannot_be_read(word, said):
    """Lost: another outlet than the one that was meant; or one that is tested twice, and takes its board for two."""
    with pytest.raises(BadInput) as refused:
        outlets(PDUS, ["pdu-a:3", word] if word == "again:3" else [word])
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("settings", "wired", "told"),
    [({}, [], ["3", "1"]), ({}, ["1", "2"], ["1", "2", "3"]), ({"outlets": [1, 2]}, None, [1, 2])],
)
def test_a_driver_that_cannot_ask_is_told_the_outlets(settings, wired, told):
    """Lost: all outlets of a script, or of a smart plug, of which no board is wired yet."""
    test = Learning.__new__(Learning)
    given = settings if wired is None else dict(settings, **({"outlets": wired} if wired else {}))
    test.proxy = SimpleNamespace(config=ProxyConfig(pdus={"plugs": settings}), pdu=lambda name: (given, {}))
    named = [("plugs", "3"), ("plugs", "1"), ("others", "9")]
    test.findings = [SimpleNamespace(work=SimpleNamespace(pdu=pdu, outlet=outlet)) for pdu, outlet in named]
    assert test._pdu("plugs")[0]["outlets"] == told
