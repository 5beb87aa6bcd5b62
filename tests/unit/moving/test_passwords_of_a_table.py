# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Passwords in a table: they are written nowhere, and shown nowhere, whatever the source holds (guide_moving_in).

Lost: the password of a BMC, in a file that all on the controller may read and that is made to be kept in a repository.
"""

from __future__ import annotations

import subprocess

import pytest

from ansible_collections.hetero.compute.tests.unit.moving.moves import MARKER, PROXY, files, moved, questions, wiring

HEAD = "name,mac,ip,arch,vcpus,memory_mb,local_gb,disk,pdu,outlet,pdu_driver,pdu_host"
ROW = "jackie,00:1a:ca:00:58:98,10.0.2.2,x86_64,4,8192,0,none,bmc-a,1"


def holding(tmp_path, head, row, answers=None):
    """The files that hold the password, and the lines that show it."""
    (tmp_path / "boards.csv").write_text(f"{head}\n{row}\n")
    result = moved(tmp_path / "site", "csv", tmp_path / "boards.csv", answers=answers)
    written = [name for name, text in files(tmp_path / "site").items() if MARKER in text]
    return written + [line for line in result["lines"] if MARKER in line]


@pytest.mark.parametrize(
    "command",
    [
        f"ipmitool -I lanplus -H 10.0.100.20 -U admin -P {MARKER} sol activate",
        f"sshpass -p{MARKER} ssh console@terminals",
        f"PASSWORD={MARKER} /usr/local/bin/console jackie",
        f"/usr/local/bin/console https://admin:{MARKER}@terminals/7",
        f"echo {MARKER} | ipmiconsole",
    ],
)
def test_of_the_command_that_attaches_to_a_console(tmp_path, command):
    """As LAVA's dictionaries have it, where it is left out."""
    row = f"{ROW},ipmi,10.0.100.20,{command}"
    assert holding(tmp_path, f"{HEAD},console_command", row, {"proxy": PROXY}) == []
    asked = questions(moved(tmp_path / "site", "csv", tmp_path / "boards.csv"))
    assert "may hold a password" in asked["jackie", "console_command"]


@pytest.mark.parametrize(
    "command",
    ["telnet terminals 7001", "ssh -p 7001 console@terminals", "picocom -b 115200 /dev/ttyUSB0", "console jackie"],
)
def test_a_command_that_can_hold_none_is_taken(tmp_path, command):
    holding(tmp_path, f"{HEAD},console_command", f"{ROW},ipmi,10.0.100.20,{command}", {"proxy": PROXY})
    assert wiring(tmp_path / "site")["tftp_proxy_boards"][0]["console_command"] == command


def test_of_options_of_a_fence_agent(tmp_path):
    options = f'"{{""lanplus"": 1, ""passwd"": ""{MARKER}""}}"'
    row = f"{ROW},fence,10.0.100.20,fence_ipmilan,{options}"
    assert holding(tmp_path, f"{HEAD},pdu_agent,pdu_agent_options", row) == []


def test_the_line_for_a_vault_asks_unseen_and_ends_no_line(tmp_path):
    """Lost: a password that `encrypt_string` gave a line end, as Enter ends it; and one that stood on the screen."""
    (tmp_path / "boards.csv").write_text(f"{HEAD}\n{ROW},ipmi,10.0.100.20\n")
    lines = moved(tmp_path / "site", "csv", tmp_path / "boards.csv", answers={"proxy": PROXY})["lines"]
    (line,) = (line for line in lines if line.startswith("! vaulted_bmc_a_password is to be in a vault: "))
    command = line.partition("vault: ")[2].partition(" >> ")[0].replace("ansible-vault encrypt_string", "od -An -c")
    command = command.replace("--stdin-name vaulted_bmc_a_password", "")
    said = subprocess.run(["bash", "-c", command], input="geheim\n", capture_output=True, text=True, check=True)
    assert said.stdout.split() == list("geheim")


@pytest.mark.parametrize(("first", "later"), [("pd_a", "pd.a"), ("a", "a_privacy")])
def test_the_variable_of_a_password_is_never_anothers(tmp_path, first, later):
    """Lost: the password of a PDU, which the vault has by now, to another device whose name differs by a dot."""

    def variables(*pdus):
        lines = [
            f"{pdu}x,02:00:00:00:00:0{at},10.0.2.{at},x86_64,4,8192,0,none,{pdu},1,snmp,10.0.100.{at},3,apc\n"
            for at, pdu in enumerate(pdus, 1)
        ]
        columns = "name,mac,ip,arch,vcpus,memory_mb,local_gb,disk,pdu,outlet,pdu_driver,pdu_host,pdu_snmp_version"
        (tmp_path / "t.csv").write_text(f"{columns},pdu_username\n{''.join(lines)}")
        moved(tmp_path / "site", "csv", tmp_path / "t.csv", answers={"proxy": PROXY}, replace=True)
        said = wiring(tmp_path / "site")["tftp_proxy_pdu_credentials"]
        return {pdu: {one for key, one in said[pdu].items() if key != "username"} for pdu in pdus}

    alone, both = variables(first), variables(later, first)
    assert variables(first, later) == both, "whichever comes first"
    assert not both[first] & both[later]
    assert not alone[first] & both[later]
