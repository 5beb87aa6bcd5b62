# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cabling check that was killed with an outlet on, and what the next one makes of that once the wiring was corrected.
If these fail, it cuts the power of whatever the outlet of the new wiring feeds.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.cabling import cabling
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import forget, swap

CUT_OFF = "is to be switched on for the cabling check"


def killed(site, board, outlet):
    """A check of a board was killed after it said what it was about to do."""
    with site.proxy() as proxy:
        proxy.store.event(board, "switch", f"{outlet} {CUT_OFF}")


def checked(site, board):
    return site.module("board_cabling", boards=[board], timeout=1)["boards"][0]


def others_outlet(site):
    """Outlet 3 feeds what is no board."""
    path = site.folder / "pdu-a.json"
    data = json.loads(path.read_text())
    data["outlets"]["3"] = "on"
    path.write_text(json.dumps(data))


@pytest.mark.parametrize("cut_off", [True, False])
def test_the_outlet_of_a_corrected_wiring_is_not_taken_for_the_one_left_on(site, cut_off):
    """Lost: the power of a switch or a server, which was on at the outlet that the wiring names now."""
    others_outlet(site)
    if cut_off:
        killed(site, 1, "pdu-a outlet 2")
    site.wire(1, outlet="3")
    told = checked(site, 1)
    assert (told["verdict"], site.outlets()["3"]) == ("on", "on")
    assert "pdu-a outlet 3 is on although this board is free: it feeds something, and is not switched" in told["text"]
    assert told["text"].endswith("ansible-playbook hetero.compute.reconcile switches it off")


def test_the_outlet_of_another_pdu_is_not_taken_for_the_one_left_on(site):
    """Lost: the same, where it is the PDU's name that was corrected."""
    others_outlet(site)
    path = site.folder / "proxy.json"
    config = json.loads(path.read_text())
    config["pdus"]["pdu-b"] = config["pdus"]["pdu-a"]
    path.write_text(json.dumps(config))
    killed(site, 1, "pdu-a outlet 3")
    site.wire(1, pdu="pdu-b", outlet="3")
    assert (checked(site, 1)["verdict"], site.outlets()["3"]) == ("on", "on")


def test_a_tenant_whose_record_names_no_outlet_keeps_power(ten):
    """Lost: a running instance of an earlier release, whose outlet a free board's wiring names now."""
    assert not any(result.get("failed") for result in ten.provision("jackie"))
    forget(ten)
    killed(ten, 2, "pdu-a outlet 3")
    ten.pdu(board2="on")
    swap(ten, 0, 2)
    assert (checked(ten, 2)["verdict"], ten.outlets()["1"]) == ("on", "on")


def test_the_outlet_that_was_left_on_is_still_taken_up(site):
    """Lost: the check after one that was killed."""
    killed(site, 1, "pdu-a outlet 2")
    site.pdu(board1="on")
    assert (checked(site, 1)["verdict"], site.outlets()["2"]) != ("on", "on")
    assert site.outlets()["2"] == "off"


@pytest.mark.parametrize(("now", "is_it"), [("192.0.2.1", True), ("192.0.2.2", False)])
def test_a_name_that_is_another_pdus_now_is_not_believed(site, now, is_it):
    """Lost: the same, where the addresses of two PDUs were corrected, and their names stayed."""
    texts = []
    with site.proxy() as proxy:
        check = cabling.Cabling(proxy, [cabling.BoardWork(proxy, proxy.board(1), None)], cabling.Options(1.0))
        work = check.findings[0].work
        work.pdu, work.outlet = proxy.outlet(work.board)
        for host in ("192.0.2.1", now):
            proxy.config = replace(proxy.config, pdus={"pdu-a": {"driver": "apc", "host": host}})
            texts.append(check._to_be(work))
            if len(texts) == 1:
                proxy.store.event(1, "switch", texts[0])
        assert texts[0] == f"pdu-a outlet 2 (192.0.2.1) {CUT_OFF}"
        assert check._ours(work) is is_it
