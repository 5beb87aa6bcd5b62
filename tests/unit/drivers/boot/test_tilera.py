# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tilera boards: the lab's strict tile-monitor as a process, what answers it on a board as another, an sshd only where
the sequence starts it.

Tests drivers/boot/shell.py, drivers/boot/tile_monitor.py.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import threading
import time
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import power_proof
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import (
    BadInput,
    HeteroError,
    StepFailed,
    TimedOut,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot import registry, ssh, tilera
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.driver import (
    FIRMWARE,
    NFS,
    RAM_ROOT,
    SYSTEM,
    TFTP,
    System,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.registry import BootDrivers
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.shell import NoProgram
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.tile_monitor import TileMonitor, runs
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.console_log import is_own_log
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import boards_file
from ansible_collections.hetero.compute.tests.unit.drivers.boot.test_ssh import free_port, make_key

LAB = Path(__file__).resolve().parents[4] / "roles" / "lab" / "files"
LO = "127.0.0.1"
MAC = "00:1a:ca:00:57:90"
TARGET = ["--resume", "--net", LO]
PROBE = [*TARGET, "--run", "-", "true", "-", "--wait", "--quit"]
#: The calls of Nova's driver, word by word.
NETWORK = (
    f"--resume --net {LO} --run - ifconfig xgbe0 hw ether {MAC} - --wait --run - ifconfig xgbe0 IP2 - --wait --quit"
)
SSHD = f"--resume --net {LO} --run - /usr/sbin/sshd - --wait --quit"
RULE = f"--resume --net {LO} --run - iptables -A INPUT -p tcp ! -s {LO} --dport 963 -j DROP - --wait --quit"
DMESG = f"--resume --net {LO} -- dmesg"


class TileBoard:
    """A board that tile-monitor reaches once it is `up`; its commands are files that a test may replace."""

    def __init__(self, folder, port):
        self.folder, self.port = folder, port
        self.log = folder / "monitor.log"
        self.commands = folder / "commands"
        self.commands.mkdir()
        self.agent = folder / "agent"
        self.process = None
        for name in ("ifconfig", "iptables"):
            self.command(name, 'echo "$0 $*" >> "$(dirname "$0")/../done"')
        self.command("sshd", 'echo started >> "$(dirname "$0")/../done"')
        self.command("dmesg", 'echo "Linux version 2.6.38-tile"')
        # the board's /usr/sbin is a folder of ours
        text = (LAB / "images" / "tile-agent").read_text()
        text = text.replace("read -r verb", f"PATH={self.commands}:$PATH\nread -r verb", 1)
        text = text.replace('eval "exec $command"', 'eval "exec ${command#/usr/sbin/}"', 1)
        assert "${command#" in text
        self.agent.write_text(text)
        self.agent.chmod(0o755)
        self.monitor = folder / "tile-monitor"
        shutil.copy(LAB / "tile_monitor.py", folder)
        shutil.copy(LAB / "tile-monitor", self.monitor)  # with its mode: the lab needs it executable

    def command(self, name, script):
        path = self.commands / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def up(self):
        argv = ["busybox", "nc", "-ll", "-p", str(self.port), "-e", str(self.agent)]
        self.process = subprocess.Popen(argv, env=dict(os.environ, TMPDIR=str(self.folder)), stdin=subprocess.DEVNULL)

    def down(self):
        if self.process:
            self.process.kill()
            self.process.wait(60)

    @property
    def calls(self):
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [" ".join(json.loads(line)["argv"]) for line in lines]

    @property
    def done(self):
        path = self.folder / "done"
        return [line.split("/")[-1] for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def tile(site, tmp_path, monkeypatch):
    """Board 0 of the site as a Tilera board at the loopback address, and what plays it."""
    (tmp_path / "tile").mkdir()
    board = TileBoard(tmp_path / "tile", free_port())
    monkeypatch.delitem(boards_file._NO_HOSTS, "127")  # no board but this one is this machine
    monkeypatch.setenv("TILE_MONITOR_PORT", str(board.port))
    monkeypatch.setenv("TILE_MONITOR_LOG", str(board.log))
    site.config["tile_monitor"] = str(board.monitor)
    wiring = site.config["boards"]["0"]
    del wiring["driver"], wiring["console"]
    rows = (site.folder / "tilera_boards").read_text().replace("10.0.2.1 ", f"{LO} ")
    (site.folder / "tilera_boards").write_text(rows)
    site.write()
    # At the loopback address something refuses connections also while the board's outlet is off.
    monkeypatch.setattr(power_proof.Silence, "lives", lambda silence: False)
    yield board
    board.down()


@pytest.fixture
def answers(monkeypatch):
    """How the board's ssh server answers, and who was asked."""
    asked = []

    def ask(ip, host_key, deadline, cancelled=None):
        asked.append(ip)
        return True

    monkeypatch.setattr(tilera.ssh, "answers", ask)
    return asked


def follow(proxy, key="ssh-ed25519 AAAA", limit=60.0, root="nfs", cancelled=None):
    """A boot of board 0 as its driver follows it: (answer, steps reported)."""
    driver, said = BootDrivers(proxy).of(proxy.board(0)), []
    driver.switched(proxy.board(0), "on")
    system = System(None, root, key)

    def report(phase, text):
        said.append((phase, text))

    return driver.answers(proxy.board(0), system, Deadline(limit), cancelled or threading.Event(), report), said


# ---- the sequences


def test_the_sequences_are_the_originals_in_their_order(site, tile, answers):
    """A Tilera board that is up stays without network, or without ssh, or open to everybody's tile-monitor."""
    tile.up()
    with site.proxy() as proxy:
        answer, said = follow(proxy)
    assert answer is True
    assert tile.calls == [" ".join(PROBE), RULE, NETWORK.replace("IP2", LO), SSHD, DMESG]
    assert tile.done == [
        f"iptables -A INPUT -p tcp ! -s {LO} --dport 963 -j DROP",
        f"ifconfig xgbe0 hw ether {MAC}",
        f"ifconfig xgbe0 {LO}",
        "started",
    ]
    log = site.folder / "tftpboot" / "log_0"
    assert said == [
        ("monitor", "tile-monitor connects"),
        ("firewall", f"port 963 is closed to all but {LO}"),
        ("network", f"xgbe0 is {LO}, {MAC}"),
        ("sshd", "sshd started"),
        ("console", f"what its kernel said is in {log}"),
    ]
    assert log.read_text().split("\n", 1)[1] == "Linux version 2.6.38-tile\n"
    with site.proxy() as proxy:
        assert is_own_log(proxy, proxy.board(0))
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert answers == [LO]


def test_the_users_address_may_be_another(site, tile, answers):
    """Users of a board with a network of their own would be sent to the proxy's side of it."""
    site.config["boards"]["0"]["address"] = "10.9.9.9"
    site.write()
    tile.up()
    with site.proxy() as proxy:
        follow(proxy)
        driver = BootDrivers(proxy).of(proxy.board(0))
        assert driver.known_hosts(proxy.board(0), "ssh-ed25519 AAAA x") == "10.9.9.9 ssh-ed25519 AAAA"
        assert driver.address(proxy.board(0)) == "10.9.9.9"
    assert NETWORK.replace("IP2", "10.9.9.9") in tile.calls
    assert answers == ["10.9.9.9"]


def test_a_board_that_comes_up_late_is_waited_for(site, tile, answers):
    """tile-monitor fails until the board's system is up; the first refusal must not end the boot."""
    timer = threading.Timer(0.7, tile.up)
    timer.start()
    with site.proxy() as proxy:
        answer, said = follow(proxy)
    timer.join()
    assert (answer, said[0][0], len(tile.calls)) == (True, "monitor", 5)


def test_a_real_ssh_server_is_proven_after_the_steps(site, tile, sshd_program, tmp_path, monkeypatch):
    """Running means the host key of this very root, on a Tilera board too."""
    key, public = make_key(tmp_path, "right")
    port = free_port()
    config = tmp_path / "sshd_config"
    config.write_text(f"ListenAddress {LO}:{port}\nHostKey {key}\nPidFile {tmp_path}/sshd.pid\nUsePAM no\n")
    script = f"mount -t tmpfs none /run && mkdir -m 755 /run/sshd && exec {sshd_program} -f {config}"
    tile.command("sshd", f"exec unshare --mount sh -c '{script}'")
    real = ssh.answers
    monkeypatch.setattr(tilera.ssh, "answers", lambda *args: real(*args, port=port))
    tile.up()
    try:
        with site.proxy() as proxy:
            assert follow(proxy, public)[0] is True
            with pytest.raises(ssh.WrongHostKey):
                follow(proxy, make_key(tmp_path, "wrong")[1])
    finally:
        subprocess.run(["kill", (tmp_path / "sshd.pid").read_text().strip()], check=True)


def test_a_board_that_was_found_on_is_only_asked(site, tile, answers):
    """A second run would set the network anew under whoever works on the board."""
    tile.up()
    with site.proxy() as proxy:
        driver = BootDrivers(proxy).of(proxy.board(0))
        system = System(None, "nfs", "ssh-ed25519 AAAA")
        assert driver.answers(proxy.board(0), system, Deadline(60), threading.Event(), None) is True
        assert tile.calls == []
        # a boot that another call began, which was killed: its steps may not all be done
        driver.under_way(proxy.board(0))
        driver.answers(proxy.board(0), system, Deadline(60), threading.Event(), lambda *step: None)
        assert len(tile.calls) == 5
        driver.switched(proxy.board(0), "off")
        driver.answers(proxy.board(0), system, Deadline(60), threading.Event(), lambda *step: None)
    assert len(tile.calls) == 5


def test_a_board_that_was_not_told_to_reboot_is_only_asked(site, tile, answers, tmp_path):
    """Lost: a reboot by power, to "File exists" of a network that the system which still runs has already."""
    tile.up()
    with site.proxy() as proxy:
        board, driver = proxy.board(0), BootDrivers(proxy).of(proxy.board(0))
        system = System(None, "nfs", "ssh-ed25519 AAAA")
        told = driver.told_to_reboot(board, system, str(tmp_path / "no-key"), "mark", Deadline(60))
        with pytest.raises(HeteroError, match="cannot be told to reboot"), told:
            pass
        assert driver.answers(board, system, Deadline(90), threading.Event(), lambda *step: None)
        assert tile.calls == []
        driver.boots_anew(board)
        driver.answers(board, system, Deadline(90), threading.Event(), lambda *step: None)
    assert len(tile.calls) == 5


def test_a_system_in_ram_is_only_closed_to_others(site, tile, answers):
    """The proxy's own system for disks has no sshd to start; a neighbour would be root on a board while it is wiped."""
    tile.up()
    with site.proxy() as proxy:
        answer, said = follow(proxy, root=RAM_ROOT)
    assert (answer, [phase for phase, _text in said]) == (True, ["monitor", "firewall"])
    assert tile.calls == [" ".join(PROBE), RULE]
    assert answers == []


def test_a_port_that_is_to_be_open_stays_open(site, tile, answers):
    """A site whose images have no iptables could not boot its boards any more."""
    site.config["boards"]["0"]["firewall"] = "open"
    site.write()
    tile.up()
    with site.proxy() as proxy:
        answer, said = follow(proxy)
    assert (answer, [phase for phase, _text in said]) == (True, ["monitor", "network", "sshd", "console"])


# ---- what goes wrong


@pytest.mark.parametrize(
    ("name", "phase", "remedy"),
    [
        ("ifconfig", "network", "kernel has xgbe0"),
        ("sshd", "sshd", "/usr/sbin/sshd"),
        ("iptables", "firewall", "iptables"),
        ("dmesg", "console", "dmesg"),
    ],
)
def test_a_failed_step_is_named_with_what_it_said(site, tile, answers, name, phase, remedy):
    """The original went on whatever a command said, and users waited for a board without network."""
    site.config["boards"]["0"]["firewall"] = "127.0.0.0/8"
    site.write()
    tile.command(name, f"echo looked; echo '{name}: no such device' >&2; exit 3")
    tile.up()
    with site.proxy() as proxy, pytest.raises(StepFailed) as failed:
        follow(proxy)
    error = failed.value
    assert error.phase == phase
    assert f"board0: tile-monitor, step {phase}: ended with 3 and said: {name}: no such device" in str(error)
    assert remedy in error.remedy
    assert error.facts["output"] == f"looked\n{name}: no such device"
    assert error.facts["command"][0] in ("--run", "--")
    order = ["firewall", "network", "sshd", "console"]
    assert len(tile.calls) == 2 + order.index(phase), "nothing after the step that failed"
    assert answers == []


def test_a_step_that_hangs_ends_at_its_deadline(site, tile, answers, monkeypatch):
    """One hanging command on one board would hold all boards of a play until its end."""
    monkeypatch.setattr(tilera, "STEP", 3.0)
    tile.command("sshd", "echo half-way; sleep 20")
    tile.up()
    start = time.monotonic()
    with site.proxy() as proxy, pytest.raises(StepFailed, match=r"step sshd: .*did not end within 3 s"):
        follow(proxy, limit=60)
    assert time.monotonic() - start < 60


def test_what_a_killed_command_had_said_is_kept(site, tile):
    """A command that hangs after its error message would leave no trace of why."""
    tile.monitor.write_text("#!/bin/sh\necho out; echo no license >&2\nexec sleep 30\n")
    monitor = TileMonitor(str(tile.monitor), LO, "board0")
    for seconds in (0.5, 10):  # a busy machine needs longer to say it
        with pytest.raises(TimedOut) as timed_out:
            monitor.do(runs(["true"]), Deadline(seconds))
        if timed_out.value.facts["said"]:
            break
    assert timed_out.value.facts["said"] == "no license\nout\n"


def test_a_board_that_never_connects(site, tile, answers):
    """The wait must end with the last words of tile-monitor, not with "no ssh"."""
    with site.proxy() as proxy, pytest.raises(StepFailed, match=r"no connection within 6 s.*cannot connect") as failed:
        follow(proxy, limit=6)
    assert (failed.value.phase, answers) == ("monitor", [])


def test_a_cancelled_wait_ends(site, tile, answers):
    """A board whose power is cut meanwhile would be waited for until its timeout."""
    cancelled = threading.Event()
    timer = threading.Timer(0.3, cancelled.set)
    timer.start()
    start = time.monotonic()
    with site.proxy() as proxy:
        assert follow(proxy, limit=120, cancelled=cancelled) == (False, [])
    timer.join()
    assert time.monotonic() - start < 60


@pytest.mark.parametrize(
    ("wiring", "said"),
    [
        ({"firewall": "10.1.1.1"}, "would keep the proxy node .127.0.0.1. out"),
        ({"firewall": "yes"}, "no address or network"),
        ({"kernel_source": "card"}, "no such kernel_source: card"),
    ],
)
def test_wrong_wiring_is_said_before_any_power(site, tile, wiring, said):
    """It would be found only after a boot, and blamed on the board."""
    site.config["boards"]["0"].update(wiring)
    site.claim(0)
    site.write()
    result = site.run("start", 0)
    assert result["failed"]
    assert re.search(said, result["msg"])
    assert site.power(0) == "off"


@pytest.mark.parametrize("fault", ["missing", "mode"])
def test_a_missing_tile_monitor_is_the_proxys(site, tile, fault):
    """Every Tilera board of the proxy would be quarantined, one after the other."""
    tile.monitor.unlink() if fault == "missing" else tile.monitor.chmod(0o644)
    word = "is missing: install Tilera's MDE" if fault == "missing" else "is not executable"
    site.claim(0)
    with site.proxy() as proxy:
        driver = BootDrivers(proxy).of(proxy.board(0))
        faults = driver.self_test(proxy.board(0), System(None))
        assert any(str(tile.monitor) in text and word in text for text in faults)
    result = site.run("start", 0)
    assert word in result["msg"]
    assert site.power(0) == "off"


# ---- kernel in flash


def test_a_kernel_in_flash_is_not_awaited(site, tile):
    """A board that never asks for a kernel would be called dead."""
    site.config["boards"]["0"]["kernel_source"] = "flash"
    site.write()
    with site.proxy() as proxy:
        driver = BootDrivers(proxy).of(proxy.board(0))
        assert (driver.files(proxy.board(0)), driver.needed(proxy.board(0))) == ({}, [])
        assert driver.entry(proxy.board(0), System(None)) == {}
        with pytest.raises(BadInput, match="kernel in flash"):
            driver.entry(proxy.board(0), System(None, RAM_ROOT))
        other = BootDrivers(proxy, "auto", "tftp").of(proxy.board(0))
        with pytest.raises(BadInput, match="wiring says kernel_source flash"):
            other.entry(proxy.board(0), System(None))
        with pytest.raises(BadInput, match="pxe knows no kernel_source flash"):
            BootDrivers(proxy, "pxe").of(proxy.board(0))
        own = BootDrivers(proxy, "tilera").of(proxy.board(1))
        assert own.files(proxy.board(1)) == {"vmlinux_1": "kernel", "initrd_1": "initrd"}
        called = BootDrivers(proxy, "tilera", "flash").of(proxy.board(1))
        assert called.files(proxy.board(1)) == {}


class Seen(tilera.Tilera):
    """A Tilera driver with things to see, in place of packets."""

    things = ()

    def watch(self, boards, seen):
        self._told = (boards, seen)
        return super().watch(boards, seen)

    power = "on"

    def switched(self, board, state):
        super().switched(board, state)
        self.power = state
        if state == "on":
            for kind, name in self.things:
                self._told[1](board.id, kind, name, time.monotonic(), board.ip)

    def self_test(self, board, system):
        return []

    def alive(self, board, limit):
        return self.power == "on"  # the loopback address never goes silent


KERNEL_SEEN = [(FIRMWARE, ""), (TFTP, "vmlinux_0"), (TFTP, "initrd_0"), (SYSTEM, ""), (NFS, "")]
FLASH_SEEN = [(SYSTEM, ""), (NFS, "")]


@pytest.fixture
def start(site, tile, answers, monkeypatch):
    """start(things seen, **wiring): a start of board 0; its result."""

    def run(things, timeout=60, retries=1, **wiring):
        monkeypatch.setitem(registry.DRIVERS, "tilera", Seen)
        monkeypatch.setattr(Seen, "things", things)
        site.config["boards"]["0"].update(wiring)
        site.write()
        site.claim(0)
        return site.run("start", 0, timeout=timeout, retries=retries)

    if os.geteuid() != 0:
        pytest.skip("packet sockets need root")
    return run


SHOWN = ("power", "tftp", "flash", "nfs", "monitor", "network", "sshd", "firewall", "console", "running", "error")


def test_phases_of_a_boot(site, tile, start):
    """People see where the boot is; a second run repeats nothing."""
    tile.up()
    result = start(KERNEL_SEEN)
    assert result["boards"][0]["state"] == "running"
    phases = ["power", "tftp", "nfs", "monitor", "firewall", "network", "sshd", "console", "running"]
    assert [event.phase for event in site.events(0, SHOWN)] == phases
    assert list(result["boards"][0]["phases"]) == phases
    calls = tile.calls
    again = site.run("start", 0)
    assert (again["changed"], tile.calls) == (False, calls)


def test_phases_of_a_boot_from_flash(site, tile, start):
    """The phases say what was seen, and not that files were fetched."""
    tile.up()
    result = start(FLASH_SEEN, kernel_source="flash")
    assert result["boards"][0]["state"] == "running"
    assert [event.phase for event in site.events(0, SHOWN)][:4] == ["power", "flash", "nfs", "monitor"]


def test_a_failed_step_is_the_images(site, tile, start):
    """The board is sound when its image lacks sshd: it goes back clean, and the words are in the result."""
    tile.command("sshd", "echo 'sshd: no hostkeys available' >&2; exit 1")
    tile.up()
    one = start(KERNEL_SEEN)["boards"][0]
    assert (one["blame"], one["state"]) == ("image", "shutting down")
    assert "step sshd: ended with 1 and said: sshd: no hostkeys available" in one["error"]
    assert one["evidence"]["step"] == "sshd"
    assert one["evidence"]["output"] == "sshd: no hostkeys available"
    assert "no hostkeys" in site.events(0, SHOWN)[-1].text
    assert site.power(0) == "off"


@pytest.mark.parametrize(
    ("things", "wiring", "blame", "said"),
    [
        ([], {}, "board", "no boot request within"),
        ([], {"kernel_source": "flash"}, "board", "no boot request within"),
        ([(FIRMWARE, "")], {"kernel_source": "flash"}, "board", "stalled at flash"),
        ([(SYSTEM, "")], {"kernel_source": "flash"}, "board", "stalled at nfs"),
        (FLASH_SEEN, {"kernel_source": "flash"}, "image", "step monitor: no connection"),
        (KERNEL_SEEN[:-1], {}, "image", "stalled at nfs"),
        (KERNEL_SEEN, {}, "image", "step monitor: no connection"),
    ],
)
def test_whose_fault_a_stall_is(site, start, things, wiring, blame, said):
    """A sound board in quarantine, or a dead one given to the next."""
    one = start(things, timeout=1, retries=0, **wiring)["boards"][0]
    assert one["blame"] == blame
    assert said in one["error"]


# ---- a shell


def test_shell(site, tile, tmp_path):
    """Disks of Tilera boards are written by these commands: each word, file and exit status must arrive."""
    tile.up()
    source = tmp_path / "archive"
    source.write_bytes(os.urandom(3_000_000))
    target = tmp_path / "on the board"
    told = []
    with site.proxy() as proxy:
        shell = BootDrivers(proxy).of(proxy.board(0)).shell(proxy.board(0), System(None, RAM_ROOT))
        assert shell.run(["printf", "%s|", "a b", "$HOME", "it's", "-"], Deadline(60)) == "a b|$HOME|it's|-|"
        shell.put(str(source), str(target), Deadline(60), progress=lambda *at: told.append(at))
        assert target.read_bytes() == source.read_bytes()
        assert told[-1] == (3_000_000, 3_000_000)
        assert shell.run(["cat", "-"], Deadline(60), stdin=str(LAB / "lab.py")) == (LAB / "lab.py").read_text()
        assert not list(Path("/tmp").glob("hetero-" + "?" * 32))
        with pytest.raises(HeteroError, match="false ended with 1 and said"):
            shell.run(["false"], Deadline(60))
        with pytest.raises(NoProgram, match="name an image that has this program"):
            shell.run(["sh", "-c", "no-such-program"], Deadline(60))
        with pytest.raises(HeteroError, match=r"no/where.*nonexistent"):
            shell.put(str(source), str(tmp_path / "no" / "where"), Deadline(60))
        with pytest.raises(TimedOut):
            shell.run(["sleep", "30"], Deadline(0.5))


def test_what_answers_in_a_system_in_ram_takes_whole_files(site, tile, tmp_path):
    """There all programs are busybox's, of which some read more than they are told. Lost: a root's beginning."""
    text = tile.agent.read_text()
    only = "".join(f'{name}() {{ busybox {name} "$@"; }}\n' for name in ("cat", "dd", "head", "mkdir", "rm", "wc"))
    tile.agent.write_text(text.replace("#!/bin/sh\n", f"#!/bin/busybox sh\n{only}", 1))
    tile.up()
    source, target = tmp_path / "archive", tmp_path / "on the board"
    source.write_bytes(os.urandom(3_000_000))
    with site.proxy() as proxy:
        shell = BootDrivers(proxy).of(proxy.board(0)).shell(proxy.board(0), System(None, RAM_ROOT))
        shell.put(str(source), str(target), Deadline(60))
        assert shell.run(["printf", "%s|", "a b"], Deadline(60)) == "a b|"
    assert target.read_bytes() == source.read_bytes()


def test_progress_of_an_upload_never_goes_back(site, tile, tmp_path):
    """tile-monitor that has read all closes the file while the board still writes: 95 %, and then 0 % until the end."""
    source = tmp_path / "archive"
    source.write_bytes(bytes(1000))
    # It goes on until enough was told of it.
    over = tmp_path / "over"
    tile.monitor.write_text(
        f'#!/bin/sh\nexec < "$5"\nhead -c 1000 > /dev/null\nwhile [ ! -e {over}.read ]; do sleep 0.02; done\n'
        f"exec < /dev/null\nwhile [ ! -e {over} ]; do sleep 0.02; done\n"
    )
    told = []

    def progress(done, size):
        told.append(done)
        if any(told):
            Path(f"{over}.read").touch()
            if len(told) - told.index(next(filter(None, told))) > 5:
                over.touch()

    with site.proxy() as proxy:
        shell = BootDrivers(proxy).of(proxy.board(0)).shell(proxy.board(0), System(None, RAM_ROOT))
        shell.put(str(source), "/x", Deadline(20), progress=progress)
    assert told == sorted(told)
    assert told[-1] == 1000


def test_progress_of_an_upload_is_what_was_read(site, tile, tmp_path):
    """An upload of minutes that says nothing looks like one that hangs."""
    source = tmp_path / "archive"
    source.write_bytes(bytes(1000))
    tile.monitor.write_text('#!/bin/sh\nexec < "$5"\nhead -c 400 > /dev/null\nread -r nothing < /dev/null\nsleep 1\n')
    # a shell's head reads in blocks: what was read is at least what it took
    told = []
    with site.proxy() as proxy:
        shell = BootDrivers(proxy).of(proxy.board(0)).shell(proxy.board(0), System(None, RAM_ROOT))
        shell.put(str(source), "/x", Deadline(60), progress=lambda *at: told.append(at))
    assert told[-1] == (1000, 1000)
    assert 400 <= told[0][0] <= 1000
    assert len(told) >= 3


# ---- the lab's tile-monitor itself


@pytest.mark.parametrize(
    "line",
    [
        "",
        "--net 127.0.0.1 --resume --run - true - --wait --quit",
        "--resume --net --run - true - --wait --quit",
        "--resume --net nowhere --run - true - --wait --quit",
        "--resume --net 127.0.0.1 --run true --wait --quit",
        "--resume --net 127.0.0.1 --run - true --wait --quit",
        "--resume --net 127.0.0.1 --run - - --wait --quit",
        "--resume --net 127.0.0.1 --run - true - --quit",
        "--resume --net 127.0.0.1 --run - true - --wait",
        "--resume --net 127.0.0.1 --wait --quit",
        "--resume --net 127.0.0.1 --quit",
        "--resume --net 127.0.0.1 --quit --run - true - --wait",
        "--resume --net 127.0.0.1 --upload a --quit",
        "--resume --net 127.0.0.1 --",
        "--resume --net 127.0.0.1 --run - true - --wait -- dmesg",
        "--resume --net 127.0.0.1 --reset --quit",
    ],
)
def test_the_labs_tile_monitor_is_strict(tile, line):
    """A lenient stand-in would let through what Tilera's refuses."""
    tile.up()
    done = subprocess.run([str(tile.monitor), *line.split()], stderr=subprocess.PIPE, check=False, timeout=600)
    assert (done.returncode, done.stderr[:14]) == (2, b"tile-monitor: ")
    assert tile.calls == []
