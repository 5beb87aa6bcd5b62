# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What conserver is told of each kind of console; conserver itself reads it.

Tests nodes/proxy/consoles_check.py.
"""

from __future__ import annotations

import json
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.findings import Findings
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.conserver_files import (
    configuration,
    quoted,
    serving,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.consoles_check import (
    consoles,
    on_this_machine,
)

LINES = {
    "0": {"type": "serial", "device": "/dev/ttyUSB0", "flow": "rts"},
    "1": {"type": "telnet", "host": "ts1.example", "port": 2004},
    "2": {
        "type": "ssh",
        "host": "ts1",
        "user": "port 7"[:4],
        "key": "/etc/hetero/k",
        "port": 2222,
        "host_key": "a ssh-rsa AAAAB ann@ts1",
    },
    "3": {"type": "command", "command": 'echo "a;b" {c} # d \\'},
}


def wired(site, boards, **more):
    config = json.loads((site.folder / "proxy.json").read_text())
    config.update(boards=boards, **more)
    (site.folder / "proxy.json").write_text(json.dumps(config))
    return site.proxy()


def test_conserver_reads_what_is_written(site):
    """Lost: all consoles of a proxy, to one command with a brace in it."""
    with wired(site, {board: {"console_from": line} for board, line in LINES.items()}) as proxy:
        served = serving(proxy.config, proxy.boards)
        file = site.folder / "conserver.cf"
        file.write_text(configuration(proxy.config, served))
    done = subprocess.run(
        ["conserver", "-S", "-S", "-C", str(file)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done
    assert "ERROR" not in done.stdout + done.stderr
    assert "/dev/ttyUSB0,115200" in done.stdout
    assert "ts1.example,2004" in done.stdout
    assert 'echo "a;b" {c} # d \\' in done.stdout
    assert "-p 2222" in done.stdout
    assert "StrictHostKeyChecking=yes" in done.stdout
    assert served["board2"].files[0].text == "[ts1]:2222 ssh-rsa AAAAB\n"


def test_the_password_of_a_bmc_is_in_a_file(site):
    """Lost: the BMC's password, to each account of the proxy that types ps."""
    (site.folder / "credentials.json").write_text(json.dumps({"bmc0": {"username": "ann", "password": "s3cret"}}))
    boards = {"0": {"pdu": "bmc0", "outlet": "1", "console_from": {"type": "ipmi"}}}
    with wired(site, boards, pdus={"bmc0": {"driver": "ipmi", "host": "10.0.9.1", "cipher_suite": 17}}) as proxy:
        served = serving(proxy.config, proxy.boards)
        text = configuration(proxy.config, served)
    assert "s3cret" not in text
    assert served["board0"].files[0] == ("board0.password", "s3cret")
    assert served["board0"].words["exec"].count(f"-f {proxy.config.consoles_folder}/board0.password") == 2
    with wired(site, {"0": {"console_from": {"type": "ipmi"}}}) as proxy, pytest.raises(BadInput, match="is a BMC"):
        serving(proxy.config, proxy.boards)


@pytest.mark.parametrize("text", ["plain", "a b", 'say "x"', "{};#\\", " edge ", "tab\there"])
def test_any_value_is_one_value(text):
    """Lost: what a command with such a character did."""
    assert quoted(text).replace("\\\\", "\0").replace("\\", "").replace("\0", "\\") == text


def test_a_place_has_one_console(site):
    """Lost: two boards' words in one log; and a console by IPMI of a board that has no BMC."""
    found = Findings()
    serial = {"console_from": {"type": "serial", "device": "/dev/ttyUSB0"}}
    consoles(
        {"1": serial, "2": serial, "3": {"pdu": "a", "console_from": {"type": "ipmi"}}}, {"a": {"driver": "apc"}}, found
    )
    assert [str(one.what) for one in found.defects] == [
        "its console is at /dev/ttyUSB0, as board 1's is",
        "its console is by IPMI, and a is no BMC",
    ]


def test_a_bmc_and_a_login_have_one_console_each(site):
    """Lost: what a tenant types and reads, to the tenant of the board whose log has the same machine's console."""
    ssh = {"type": "ssh", "host": "ts1", "user": "port7", "key": "/k"}
    wires = {
        "0": {"pdu": "bmc0", "console_from": {"type": "ipmi"}},
        "1": {"pdu": "pdu-a", "console_from": {"type": "ipmi", "pdu": "bmc0"}},
        "2": {"pdu": "bmc2", "console_from": {"type": "ipmi"}},
        "3": {"console_from": ssh},
        "9": {"pdu": "bmc9", "console_from": {"type": "ipmi"}},
        "4": {"console_from": {**ssh, "host": "TS1", "port": 22}},
        "5": {"console_from": {**ssh, "port": 2207}},
        "6": {"console_from": {**ssh, "command": "attach 7"}},
        "7": {"console_from": {"type": "telnet", "host": "ts1", "port": 7001}},
        "8": {"console_from": {"type": "tcp", "host": "Ts1", "port": 7001}},
    }
    pdus = {name: {"driver": "ipmi", "host": "10.0.9.1"} for name in ("bmc0", "bmc2")}
    pdus["bmc9"] = {"driver": "ipmi", "host": "10.0.9.1", "port": 6230}
    found = Findings()
    consoles(wires, {**pdus, "pdu-a": {"driver": "apc"}}, found)
    assert {str(one.thing)[-1]: str(one.what) for one in found.defects} == {
        "1": "its console is at BMC 10.0.9.1, as board 0's is",
        "2": "its console is at BMC 10.0.9.1, as board 0's is",
        "4": "its console is at port7@ts1 port 22, as board 3's is",
        "8": "its console is at port 7001 of ts1, as board 7's is",
    }


def test_a_host_key_is_a_public_key(site):
    """Lost: a console that is refused each minute, to the comment behind a key, or to a word that is none."""
    ssh = {"type": "ssh", "host": "ts1", "user": "ann", "key": "/k"}
    found = Findings()
    consoles({"0": {"console_from": {**ssh, "host_key": "SHA256:abc"}}}, {}, found)
    assert [str(one.what) for one in found.defects] == ["its console's host_key is no public key"]
    lines = ("ssh-ed25519 AAAAx root@ts1", "ts1 ssh-ed25519 AAAAx", "ssh-ed25519 AAAAx")
    for line in lines:
        with wired(site, {"0": {"console_from": {**ssh, "host_key": line}}}) as proxy:
            assert serving(proxy.config, proxy.boards)["board0"].files[0].text == "ts1 ssh-ed25519 AAAAx\n"


def test_what_ssh_says_is_not_what_the_board_says(site):
    """Lost: a board that is off and is taken for one that lives, for a terminal server refuses the proxy's key."""
    line = {"type": "ssh", "host": "127.0.0.1", "port": 1, "user": "ann", "key": "/nowhere"}
    with wired(site, {"0": {"console_from": line}}) as proxy:
        command = serving(proxy.config, proxy.boards)["board0"].words["exec"]
    done = subprocess.run(
        command, shell=True, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (255, "", "")


def test_what_a_console_lacks_on_this_machine_is_said(tmp_path):
    """Lost: that a serial adapter is not plugged in, or a key not readable, until somebody needs the console."""
    plain, own = tmp_path / "plain", tmp_path / "own"
    plain.write_text("")
    own.write_text("")
    own.chmod(0o400)
    ssh = {"type": "ssh", "host": "ts1", "user": "ann"}
    wires = {
        "0": {"console_from": {"type": "serial", "device": f"{tmp_path}/ttyUSB0"}},
        "1": {"console_from": {"type": "serial", "device": str(plain)}},
        "2": {"console_from": {"type": "serial", "device": "/dev/null"}},
        "3": {"console_from": {**ssh, "key": f"{tmp_path}/lost"}},
        "4": {"console_from": {**ssh, "key": str(own)}},
        "5": {"console_from": {"type": "serail"}},
        "6": {"console": "/var/log/board6.log"},
        "7": None,
    }
    found = Findings()
    on_this_machine(wires, found)
    said = {str(note.thing).rpartition(" ")[2]: note.what for note in found.notes}
    assert said == {
        "0": f"its console's device {tmp_path}/ttyUSB0 is not there",
        "1": f"its console's device {plain} is no device",
        "3": f"its console's key {tmp_path}/lost is not there",
        "4": f"account conservr cannot read its console's key {own}",
    }
    assert (found.defects, "/dev/serial/by-id" in str(found.notes[0])) == ([], True)
