# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lab that moves in and does not know which outlet feeds which board: where its PDUs are written down.

Lost: PDUs that were put where the written file sends them (group_vars/proxies.yml), or into answers.yml: the first are
switched off by an empty tftp_proxy_pdus in host_vars, the second are not taken, so cabling -e learn= knows no PDU.
"""

from __future__ import annotations

from ansible_collections.hetero.compute.tests.unit.moving.moves import PROXY, moved, wiring

TABLE = """name,mac,ip,arch,vcpus,memory_mb,local_gb,disk
jackie,00:1a:ca:00:58:98,10.0.2.2,x86_64,4,8192,60,none
"""


def written(folder, **answers):
    (folder / "boards.csv").write_text(TABLE)
    result = moved(folder, "csv", folder / "boards.csv", answers={"proxy": PROXY, **answers})
    return result, wiring(folder)


def test_pdus_of_ones_own_count_where_the_file_sends_them(tmp_path):
    """host_vars count more than group_vars: an empty one there takes away what is in group_vars/proxies.yml."""
    assert "tftp_proxy_pdus" not in written(tmp_path)[1]


def test_a_pdu_of_the_answers_is_written_down(tmp_path):
    pdu = {"driver": "snmp", "host": "10.0.100.1"}
    result, said = written(tmp_path, pdus={"pdu-a": pdu})
    assert not any("is none that the source has any more" in line for line in result["lines"])
    assert said["tftp_proxy_pdus"] == {"pdu-a": pdu}
    assert result["vault"] == ["vaulted_pdu_a_community"]


def test_one_of_which_nobody_says_what_speaks_to_it_is_none(tmp_path):
    """Such as the user name of one that the source once had."""
    result, said = written(tmp_path, pdus={"pdu-b": {"username": "apc"}})
    words = "is none that the source has any more; give its driver to have it written down"
    assert f"answers.yml: pdus: pdu-b: {words}" in result["notes"]
    assert "tftp_proxy_pdus" not in said


def test_one_that_lacks_its_address_is_asked(tmp_path):
    result, said = written(tmp_path, pdus={"pdu-a": {"driver": "snmp"}})
    assert [(one["about"], one["key"]) for one in result["questions"] if one["needed"]] == [("pdu-a", "host")]
    assert "tftp_proxy_pdus" not in said
