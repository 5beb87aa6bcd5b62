# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which secrets of a PDU that is asked by SNMP are to be in a vault. If these fail, a person is asked for one that
there is not, and nothing says how to leave it out.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.tests.unit.moving.moves import PROXY, moved, wiring

TABLE = "name,mac,ip,arch,vcpus,memory_mb,local_gb,disk,pdu,outlet\n"
TABLE += "jackie,00:1a:ca:00:58:98,10.0.2.2,x86_64,4,8192,60,none,pdu-a,2\n"
USER = {"driver": "snmp", "snmp_version": "3", "username": "power"}
BY_AGENT = {"driver": "fence", "agent": "fence_eaton_snmp"}


@pytest.mark.parametrize(
    ("said", "secrets"),
    [
        (USER, ["password", "privacy_password"]),
        ({**USER, "privacy_protocol": "AES"}, ["password", "privacy_password"]),
        ({**USER, "privacy_protocol": "none"}, ["password"]),
        ({"driver": "snmp"}, ["community"]),
        (BY_AGENT, ["community"]),
        ({**BY_AGENT, "snmp_version": "2c"}, ["community"]),
        ({**BY_AGENT, "snmp_version": "3", "username": "power"}, ["password"]),
        ({"driver": "fence", "agent": "fence_apc", "username": "apc"}, ["password"]),
    ],
)
def test_secrets_that_are_asked_for(tmp_path, said, secrets):
    (tmp_path / "boards.csv").write_text(TABLE)
    answers = {"proxy": PROXY, "pdus": {"pdu-a": {"host": "10.0.100.1", **said}}}
    result = moved(tmp_path, "csv", tmp_path / "boards.csv", answers=answers)
    assert result["vault"] == [f"vaulted_pdu_a_{secret}" for secret in secrets]
    pdu = wiring(tmp_path)["tftp_proxy_pdus"]["pdu-a"]
    assert pdu.get("privacy_protocol") in (None, "AES")
