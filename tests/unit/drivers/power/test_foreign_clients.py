# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's PDU against clients that know nothing of us: Debian's fence_apc, pdudaemon and powerman, unmodified.

If it failed, the lab would prove nothing: the product and its PDU would only agree with each other.
"""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.tests.turns import in_turns
from ansible_collections.hetero.compute.tests.unit.drivers.power.emulated_pdu import PASSWORD, alive, boards, until
from ansible_collections.hetero.compute.tests.unit.drivers.power.emulated_ssh import EmulatedSsh


def run(*argv, seconds=120):
    """(exit code, all that it said)."""
    done = subprocess.run(argv, capture_output=True, text=True, timeout=seconds, check=False)
    return done.returncode, done.stdout + done.stderr


def fence(pdu, action, port=None, *options):
    argv = ["fence_apc", "-a", "127.0.0.1", "-u", str(port or pdu.port), "-l", "apc", "-p", PASSWORD, "-n", "3"]
    patient = [f"--{word}-timeout=60" for word in ("login", "shell", "power")]  # by default 3 to 20 s
    return run(*argv, "-o", action, *patient, *options)


#: What fence_apc is asked, the outlet's power before, its exit code (status: 0 on, 2 off), the power after.
ASKED = [
    ("status", "off", 2, "off"),
    ("status", "on", 0, "on"),
    ("list", "off", 0, "off"),
    ("on", "off", 0, "on"),
    ("off", "on", 0, "off"),
    ("reboot", "on", 0, "on"),
]


@pytest.mark.parametrize("dialect", ["menu", "cli"])
def test_fence_apc_switches_real_processes(emulated, tmp_path, dialect):
    """Without it, an administrator's own tools could not be tried on the lab, and the emulator might be a fiction."""
    pdus = []
    for number, (_action, before, _code, _after) in enumerate(ASKED):
        (tmp_path / str(number)).mkdir()
        outlet = {**boards(tmp_path / str(number), "3")["3"], "state": before}
        pdus.append(emulated(dialect=dialect, outlets={"3": outlet}))
    pids = [pdu.outlets["3"]["pid"] for pdu in pdus]
    # It sleeps for most of its seconds, so three at a time, each with a PDU of its own.
    with ThreadPoolExecutor(3) as pool:
        ended = list(pool.map(fence, pdus, [action for action, *_rest in ASKED]))
    for (action, before, code, after), pdu, pid, (seen, text) in zip(ASKED, pdus, pids, ended):
        assert seen == code, (action, text)
        outlet = pdu.outlets["3"]
        assert outlet["state"] == after, action
        assert (outlet["pid"] is not None and alive(outlet["pid"])) == (after == "on"), action
        if action == "list":
            assert text.splitlines()[2] == "3,board3"
            assert len(text.splitlines()) == 8
        if action in ("off", "reboot"):
            assert before == "on"
            assert not alive(pid), action


@pytest.mark.parametrize("dialect", ["menu-user", "menu2", "menu2-user"])
def test_fence_apc_finds_its_way(emulated, dialect):
    """Without it, the menus of AOS 2 and of lesser accounts would be our own invention."""
    pdus = [emulated(dialect=dialect, outlet_count=24, outlets={"3": {"state": before}}) for before in ("on", "off")]
    with ThreadPoolExecutor(2) as pool:
        ended = list(pool.map(fence, pdus, ["off", "on"]))
    assert [code for code, _text in ended] == [0, 0], ended
    assert [pdu.outlets["3"]["state"] for pdu in pdus] == ["off", "on"]
    assert all(outlet["state"] == "off" for number, outlet in pdus[0].outlets.items() if number != "3")


def test_fence_apc_over_ssh(emulated, tmp_path):
    """Without it, the ssh side that our own ssh is tried on would be our own invention."""
    pdu = emulated(dialect="menu")
    ssh = EmulatedSsh(tmp_path, pdu)
    try:
        options = f"--ssh-options=-o StrictHostKeyChecking=accept-new -o UserKnownHostsFile={tmp_path}/known_hosts"
        code, text = fence(pdu, "on", ssh.port, "--ssh", options)
    finally:
        ssh.stop()
    assert code == 0, text
    assert pdu.outlets["3"]["state"] == "on"


def pdudaemon(pdu, driver, request):
    """Its exit code is 0 whatever happened."""
    settings = {"driver": driver, "telnetport": pdu.port, "username": "apc", "password": PASSWORD}
    config = pdu.folder / "pdudaemon.json"
    daemon = {"hostname": "127.0.0.1", "port": 1, "logging_level": "DEBUG", "listener": "http"}
    config.write_text(json.dumps({"daemon": daemon, "pdus": {"127.0.0.1": settings}, "aliases": {}}))
    argv = ["pdudaemon", "--conf", str(config), "--logfile", str(pdu.folder / "pdudaemon.log"), "--drive"]
    return run(*argv, "--hostname", "127.0.0.1", "--port", "3", "--retries", "1", "--request", request)[1]


#: pdudaemon's driver → the PDU's dialect, and how many outlets it has.
PDUDAEMON = {
    "apc7900": ("menu2", 8),
    "apc7952": ("menu", 24),
    "apc7932": ("menu-direct", 24),
    "apc8959": ("cli", 24),
}


@pytest.mark.parametrize("driver", in_turns(list(PDUDAEMON), days=2))
def test_pdudaemon(emulated, tmp_path, driver):
    """Without it, a lab that is switched by pdudaemon could not be tried, nor compared with ours."""
    dialect, count = PDUDAEMON[driver]
    pdu = emulated(dialect=dialect, outlet_count=count, outlets=boards(tmp_path, "3"))
    said = pdudaemon(pdu, driver, "on")
    assert pdu.outlets["3"]["state"] == "on", said
    pid = pdu.outlets["3"]["pid"]
    assert alive(pid)
    said = pdudaemon(pdu, driver, "off")
    assert pdu.outlets["3"]["state"] == "off", said
    assert not alive(pid)
    assert all(outlet["state"] == "off" for outlet in pdu.outlets.values())


@pytest.fixture
def powerman(emulated, tmp_path):
    """A function that starts a powermand for a PDU of driver and dialect; returns (PDU, client's command)."""
    started = []

    def start(driver, dialect):
        pdu = emulated(dialect=dialect, password="apc", outlets=boards(tmp_path, "3"))  # its drivers know no other
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        binary = shutil.which("powermand")
        assert binary, "powermand (Debian: powerman) is not installed: run tools/setup test"
        drivers = Path(binary).resolve().parents[2] / "etc" / "powerman"
        config = tmp_path / "powerman.conf"
        config.write_text(
            f'include "{drivers}/{driver}.dev"\nlisten "127.0.0.1:{port}"\n'
            f'device "pdu" "{driver}" "127.0.0.1:{pdu.port}"\nnode "board[1-8]" "pdu" "[1-8]"\n'
        )
        with open(tmp_path / "powermand.log", "w", encoding="utf-8") as log:
            started.append(subprocess.Popen([binary, "-f", "-c", str(config)], stdout=log, stderr=log))

        def client(*words):
            return run("powerman", "-h", f"127.0.0.1:{port}", *words)

        assert until(lambda: client("--list")[0] == 0), (tmp_path / "powermand.log").read_text()
        return pdu, client

    yield start
    for daemon in started:
        daemon.kill()
        daemon.wait()


@pytest.mark.parametrize(("driver", "dialect"), [("apc7900", "menu2"), ("apc7900v3", "menu")])
def test_powerman(powerman, driver, dialect):
    """Without it, a cluster that is switched by powerman could not be tried; it is the strictest of the clients."""
    pdu, client = powerman(driver, dialect)
    code, text = client("--on", "board3")
    assert (code, "successfully" in text) == (0, True), text
    assert "board3" in client("--query", "board[1-8]")[1].splitlines()[0]
    everyone = "board[1-8]"
    assert client("--on", everyone)[0] == 0  # it uses the delayed action of the master entry

    def states():
        _code, text = client("--query", everyone)
        return dict(re.findall(r"^(on|off): +(\S*)$", text, re.M))

    assert until(lambda: states()["on"] == everyone)
    assert client("--off", "board3")[0] == 0
    assert states()["off"] == "board3"
    assert pdu.outlets["3"] == {"state": "off", "pid": None}
