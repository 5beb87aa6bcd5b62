# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""host_vars/NAME.yml that people changed, when a board is added to the source later.

Lost: the outlets that playbook `cabling` printed and somebody pasted, so that a tenant's stop cuts the neighbour's
board; and the RAM images that move_in itself told to name. Without `replace=true` no board is ever added.
"""

from __future__ import annotations

import pytest
import yaml

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.tests.unit.moving.moves import PROXY, moved, wiring

HEAD = "name,mac,ip,arch,vcpus,memory_mb,local_gb,disk,pdu,outlet,pdu_driver,pdu_host\n"
TWO = (
    "j1,00:1a:ca:00:58:91,10.0.2.3,x86_64,4,8192,60,/dev/sda,pdu-a,5,apc,10.0.100.1\n"
    "j2,00:1a:ca:00:58:92,10.0.2.4,x86_64,4,8192,60,none,pdu-a,6,,\n"
)
THIRD = "j3,00:1a:ca:00:58:93,10.0.2.5,x86_64,4,8192,60,none,pdu-a,7,,\n"


def test_what_people_corrected_there_stays_or_is_named(tmp_path):
    table = tmp_path / "boards.csv"
    table.write_text(HEAD + TWO)
    result = moved(tmp_path / "site", "csv", table, answers={"proxy": PROXY})
    assert any("name it in tftp_proxy_ram_images" in line for line in result["lines"])
    path = tmp_path / "site" / "host_vars" / "proxy1.yml"
    said = wiring(tmp_path / "site")
    # as cabling printed it, for the cables of the two are swapped
    said["tftp_proxy_boards"][0]["outlet"], said["tftp_proxy_boards"][1]["outlet"] = 6, 5
    said["tftp_proxy_ram_images"] = {"x86_64": "ram"}
    path.write_text(yaml.safe_dump(said))
    before = path.read_text()
    table.write_text(HEAD + TWO + THIRD)
    result = moved(tmp_path / "site", "csv", table, replace=True)
    assert path.read_text() == before
    notes = [note for note in result["notes"] if note.startswith("host_vars/proxy1.yml would have ")]
    assert [note.partition("tftp_proxy_boards: ")[2] for note in notes] == [
        "0: {pdu: pdu-a, outlet: 5, disk: /dev/sda}",
        "1: {pdu: pdu-a, outlet: 6, disk: none}",
        "2: {pdu: pdu-a, outlet: 7, disk: none}",
    ]
    path.unlink()
    moved(tmp_path / "site", "csv", table)
    assert wiring(tmp_path / "site")["tftp_proxy_boards"][2]["outlet"] == 7


def test_what_nobody_changed_is_written_anew(tmp_path):
    table = tmp_path / "boards.csv"
    table.write_text(HEAD + TWO)
    moved(tmp_path / "site", "csv", table, answers={"proxy": PROXY})
    table.write_text(HEAD + TWO + THIRD)
    moved(tmp_path / "site", "csv", table, replace=True)
    assert wiring(tmp_path / "site")["tftp_proxy_boards"][2]["outlet"] == 7


@pytest.mark.parametrize("more", ["secret: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n", "x: {\n", "- x\n"])
def test_what_is_no_plain_yaml_stays_too(tmp_path, more):
    table = tmp_path / "boards.csv"
    table.write_text(HEAD + TWO)
    moved(tmp_path / "site", "csv", table, answers={"proxy": PROXY})
    path = tmp_path / "site" / "host_vars" / "proxy1.yml"
    path.write_text(path.read_text() + more)
    before = path.read_text()
    result = moved(tmp_path / "site", "csv", table, replace=True)
    assert path.read_text() == before
    assert any("was changed since it was written, and stays" in note for note in result["notes"])


def test_outlets_that_were_learned_are_not_told_away(tmp_path):
    """The guide has tftp_proxy_boards replaced by what cabling learned, and the PDUs added."""
    table, path = tmp_path / "boards.csv", tmp_path / "site" / "host_vars" / "proxy1.yml"
    head = "name,mac,ip,arch,vcpus,memory_mb,local_gb,disk\n"
    rows = [f"j{n},00:1a:ca:00:58:9{n},10.0.2.{n + 2},x86_64,4,8192,0,none\n" for n in (1, 2, 3)]
    table.write_text(head + "".join(rows[:2]))
    moved(tmp_path / "site", "csv", table, answers={"proxy": PROXY})
    own = wiring(tmp_path / "site")
    own["tftp_proxy_pdus"] = {"pdu-a": {"driver": "snmp", "host": "10.0.100.1"}}
    own["tftp_proxy_boards"] = {n: {"pdu": "pdu-a", "outlet": str(n), "disk": "none"} for n in (0, 1)}
    path.write_text(yaml.safe_dump(own))
    table.write_text(head + "".join(rows))
    notes = moved(tmp_path / "site", "csv", table, replace=True)["notes"]
    assert [note for note in notes if note.startswith("host_vars")] == [
        "host_vars/proxy1.yml was changed since it was written, and stays: write there what it lacks",
        "host_vars/proxy1.yml would have tftp_proxy_boards: 2: {disk: none}",
    ]
    # of another board they are wrong
    table.write_text(head.replace("name", "id,name") + f"1,{rows[0]}0,{rows[1]}")
    with pytest.raises(Refused, match="wires board0, board1 as boards that are others now"):
        moved(tmp_path / "site", "csv", table, replace=True)
