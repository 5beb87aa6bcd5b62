# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Moving in: a question says what its answer may be.

Lost: the way on. Of USB hubs it is said that uhubctl switches those of the controller ("node" and its name) alone, and
host is asked again whatever is answered, the proxy node's own name and address too; of an outlet it is said that it is
none, and not what one is, as the set-up says for the same mistake.
"""

from __future__ import annotations

import os

import pytest

from ansible_collections.hetero.compute.tests.unit.moving.moves import PROXY, moved, wiring

HEAD = "name,mac,ip,arch,vcpus,memory_mb,local_gb,disk,pdu,outlet,pdu_driver,pdu_host\n"
HUBS = "hubs,1-1:2,uhubctl,pi.example.org"


def said(folder, pdu, **pdus):
    path = folder / "boards.csv"
    path.write_text(f"{HEAD}jackie,00:1a:ca:00:58:98,10.0.2.2,x86_64,4,8192,0,none,{pdu}\n")
    return "\n".join(moved(folder, "csv", path, answers={"proxy": PROXY, "pdus": pdus})["lines"])


def test_hubs_are_those_of_the_proxy_node(tmp_path):
    """This machine is the controller, and has none."""
    lines = said(tmp_path, HUBS)
    assert f"node {os.uname().nodename}" not in lines
    assert "uhubctl switches hubs of the proxy node alone: leave host out, or give localhost" in lines


@pytest.mark.parametrize("host", [*PROXY.values(), "localhost"])
def test_the_proxy_node_itself_is_taken_for_their_host(tmp_path, host):
    assert "? hubs" not in said(tmp_path, HUBS, hubs={"host": host})
    assert wiring(tmp_path)["tftp_proxy_boards"][0]["pdu"] == "hubs"


@pytest.mark.parametrize(
    ("pdu", "words"), [("sw,Gi1/0/12,snmp,10.0.100.1", "write its number"), ("bmc,2,ipmi,10.0.100.2", "write 1")]
)
def test_an_outlet_that_is_none_is_told_with_what_one_is(tmp_path, pdu, words):
    assert f"is none that a PDU has: {words}" in said(tmp_path, pdu)
