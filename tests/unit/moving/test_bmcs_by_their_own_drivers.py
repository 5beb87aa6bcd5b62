# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""BMCs by drivers redfish and ipmi, as the guide to the first board has them, in a table or in answers.

Lost: a set-up without a user and a password for the BMC, of which nobody said that they are needed; and a PDU that is
not written down because a file of the proxy node does not lie on the controller.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.tests.unit.moving.moves import PROXY, moved, questions, wiring

HEAD = "name,mac,ip,arch,vcpus,memory_mb,local_gb,disk,pdu,outlet,pdu_driver,pdu_host"
ROW = "jackie,00:1a:ca:00:58:98,10.0.2.2,x86_64,4,8192,0,none,bmc-a"


@pytest.mark.parametrize("bmc", ["1,ipmi,10.0.100.21", "System.Embedded.1,redfish,10.0.100.20"])
def test_the_login_of_a_bmc_is_asked_and_named(tmp_path, bmc):
    (tmp_path / "boards.csv").write_text(f"{HEAD}\n{ROW},{bmc}\n")
    asked = questions(moved(tmp_path / "site", "csv", tmp_path / "boards.csv", answers={"proxy": PROXY}))
    assert ("bmc-a", "username") in asked
    assert (("bmc-a", "tls_ca") in asked) == ("redfish" in bmc), "few are signed by whom the node trusts"
    answers = {"proxy": PROXY, "pdus": {"bmc-a": {"username": "operator"}}}
    result = moved(tmp_path / "site", "csv", tmp_path / "boards.csv", answers=answers, replace=True)
    assert result["vault"] == ["vaulted_bmc_a_password"]
    login = {"username": "operator", "password": "{{ vaulted_bmc_a_password }}"}
    assert wiring(tmp_path / "site")["tftp_proxy_pdu_credentials"] == {"bmc-a": login}


def test_a_certificate_of_the_proxy_node_need_not_be_here(tmp_path):
    """`tls_ca` is on the proxy node (guide_errors); move_in runs on the controller, and looks there."""
    row = f"{ROW},System.Embedded.1,redfish,10.0.100.20,operator,/etc/ssl/bmcs-of-the-proxy.pem"
    (tmp_path / "boards.csv").write_text(f"{HEAD},pdu_username,pdu_tls_ca\n{row}\n")
    moved(tmp_path / "site", "csv", tmp_path / "boards.csv", answers={"proxy": PROXY})
    assert "bmc-a" in wiring(tmp_path / "site")["tftp_proxy_pdus"]


def test_a_driver_by_answers_leaves_nothing_of_the_one_that_it_replaces(tmp_path):
    """Neither settings, which no driver would read, nor an outlet, which by Redfish is another machine."""
    info = {"ipmi_address": "10.0.100.21", "ipmi_username": "admin", "ipmi_cipher_suite": 3}
    node = {"UUID": "u", "Name": "jackie", "Driver": "ipmi", "Driver Info": info}
    node["Properties"] = {"cpu_arch": "x86_64", "cpus": 8, "memory_mb": 16384, "local_gb": 0}
    port = {"UUID": "p", "Address": "02:00:00:00:02:01", "Node UUID": "u", "PXE boot enabled": True}
    (tmp_path / "nodes.json").write_text(json.dumps([node, port]))
    answers = {"proxy": PROXY, "boards": {"jackie": {"ip": "10.0.2.2"}}, "pdus": {"bmc-jackie": {"driver": "redfish"}}}
    result = moved(tmp_path / "site", "ironic", tmp_path / "nodes.json", answers=answers)
    said = wiring(tmp_path / "site")
    assert said["tftp_proxy_pdus"]["bmc-jackie"] == {"driver": "redfish", "host": "10.0.100.21"}
    assert "give the Id of its system" in questions(result)["jackie", "outlet"]
    assert said["tftp_proxy_boards"][0] == {}
    answers["boards"]["jackie"]["outlet"] = "Self"
    moved(tmp_path / "site", "ironic", tmp_path / "nodes.json", answers=answers, replace=True)
    assert wiring(tmp_path / "site")["tftp_proxy_boards"][0] == {"pdu": "bmc-jackie", "outlet": "Self"}
