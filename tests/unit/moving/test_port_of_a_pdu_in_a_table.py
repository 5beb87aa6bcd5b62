# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Column pdu_port of a table, which the page (guide_moving_in, "A table") has as what is said of a PDU: its port.

Lost: another board's power. The port that telnet has, 23, becomes the board's outlet, without a word.
"""

from __future__ import annotations

from ansible_collections.hetero.compute.tests.unit.moving.moves import PROXY, moved, questions, wiring

HEAD = "name,mac,ip,arch,vcpus,memory_mb,local_gb,disk,pdu,pdu_driver,pdu_host,pdu_port"
ROW = "jackie,00:1a:ca:00:58:98,10.0.2.2,x86_64,4,8192,0,none,pdu-a,apc,10.0.100.1,23"


def test_a_pdus_port_is_no_outlet(tmp_path):
    (tmp_path / "boards.csv").write_text(f"{HEAD}\n{ROW}\n")
    moved(tmp_path / "site", "csv", tmp_path / "boards.csv", answers={"proxy": PROXY})
    assert "outlet" not in wiring(tmp_path / "site")["tftp_proxy_boards"][0]


def test_a_pdus_port_stands_beside_the_outlet(tmp_path):
    (tmp_path / "boards.csv").write_text(f"{HEAD},outlet\n{ROW},6\n")
    moved(tmp_path / "site", "csv", tmp_path / "boards.csv", answers={"proxy": PROXY})
    said = wiring(tmp_path / "site")
    assert said["tftp_proxy_boards"][0]["outlet"] == 6
    assert said["tftp_proxy_pdus"]["pdu-a"]["port"] == 23


def test_flags_lists_and_numbers_of_a_pdu(tmp_path):
    head = HEAD.replace("pdu_port", "outlet,pdu_tls_verify,pdu_banks,pdu_inrush,pdu_username")
    row = ROW.replace("apc,10.0.100.1,23", 'redfish,10.0.100.1,Self,FALSE,"1-8, 9-16",4,jo')
    (tmp_path / "boards.csv").write_text(f"{head}\n{row}\n")
    moved(tmp_path / "site", "csv", tmp_path / "boards.csv", answers={"proxy": PROXY})
    pdu = wiring(tmp_path / "site")["tftp_proxy_pdus"]["pdu-a"]
    assert (pdu["tls_verify"], pdu["banks"], pdu["inrush"]) == (False, ["1-8", "9-16"], 4)


def test_what_is_no_flag_is_said_with_what_would_be_one(tmp_path):
    head, row = HEAD.replace("pdu_port", "pdu_tls_verify"), ROW.replace("apc,10.0.100.1,23", "redfish,10.0.100.1,never")
    (tmp_path / "boards.csv").write_text(f"{head}\n{row}\n")
    asked = questions(moved(tmp_path / "site", "csv", tmp_path / "boards.csv", answers={"proxy": PROXY}))
    assert "true or false" in asked["pdu-a", "tls_verify"]
