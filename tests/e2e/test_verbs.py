# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole life of one instance by the playbooks, and what the proxy and its operator do beside it.

Each play's output is kept in build/logs/verbs.log, as a user saw it.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess

import pytest
from conftest import FOLDER
from labs import ROOT

ROOTS = "/var/lib/hetero/board-roots"
EXPORTS = "busctl --json=short call org.ganesha.nfsd /org/ganesha/nfsd/ExportMgr org.ganesha.nfsd.exportmgr"
LOG = ROOT / "build" / "logs" / "verbs.log"


@pytest.fixture(scope="module")
def life(up):
    """A lab with a second image, the plays kept in a log; jackie runs on board 0 and writes a file."""
    LOG.parent.mkdir(parents=True, exist_ok=True)
    LOG.write_text("")
    up.on_proxy(
        "set -e; mkdir /srv/two; cd /srv/two; tar xf /srv/images/debian-12.tar;"
        "echo two > root/etc/which; tar cf ../two.tar image.json kernel initrd root; cd ..; rm -r two"
    )
    up.module("board_image", image="/srv/two.tar", name="debian-two")
    up.on_proxy("rm /srv/two.tar")
    up.provision("jackie", board=0)
    up.ssh("jackie", "echo mine > /root/data")
    yield up
    for claim in up.module("board_info")["claims"]:
        up.terminate(claim["instance"])


def play(lab, name, expect=0, **extra):
    played = lab.play(name, expect, **extra)
    words = " ".join(f"-e {key}={value}" for key, value in extra.items() if key != "flags")
    with LOG.open("a", encoding="utf-8") as log:
        flags = " ".join(extra.get("flags", ()))
        log.write(f"\n# ansible-playbook hetero.compute.{name} {words} {flags}\n{played.output}")
    return played


def note(lab, board):
    """The board's line in the status."""
    return re.search(rf"^board{board} .*$", play(lab, "status").output, re.M)[0]


def boot_id(lab):
    return lab.ssh("jackie", "cat /proc/sys/kernel/random/boot_id")


def test_stop_and_start(life):
    """Lost: the work of a user who lets a board rest, or the board itself."""
    dry = play(life, "stop_instance", instance="jackie", flags=("--check",))
    assert "pdu-a outlet 5 is on: on → off" in dry.output
    assert life.machine(0) is not None
    assert play(life, "stop_instance", instance="jackie").changed == 1
    assert life.machine(0) is None
    assert play(life, "stop_instance", instance="jackie").changed == 0
    assert re.search(r"power off +jackie .*stopped", note(life, 0))
    assert play(life, "start_instance", instance="jackie").changed == 1
    assert life.ssh("jackie", "cat /root/data") == "mine\n"
    assert play(life, "start_instance", instance="jackie").changed == 0


def test_rebuild(life):
    """Lost: the way that "rebuild it" errors promise; or the old key and files stay in the new root."""
    refused = play(life, "provision_instance", 2, instance="jackie", flavor="tp64.8x8", image="debian-two")
    assert "hetero.compute.rebuild_instance" in refused.output
    key = FOLDER / "ssh" / "second"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    other = dict(image="debian-two", key_file=f"{key}.pub")
    stranger = play(life, "rebuild_instance", 2, instance="jackie", owner="eve", **other)
    assert "belongs to" in stranger.output
    before = boot_id(life)
    dry = play(life, "rebuild_instance", instance="jackie", flags=("--check", "--diff"), **other)
    assert "debian-12 → debian-two" in dry.output
    assert boot_id(life) == before
    first = life.start("rebuild_instance", instance="jackie", **other)
    assert any(re.match(r"jackie +board0 +power", line) for line in first.stdout)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    done = play(life, "rebuild_instance", instance="jackie", **other)
    assert "jackie is running on board0: ssh -F build/lab/e2e/ssh/jackie jackie" in done.output
    way = ["ssh", "-F", FOLDER / "ssh" / "jackie", "-i", key, "-o", "IdentitiesOnly=yes", "jackie"]
    look = [*way, "cat /etc/which; test ! -e /root/data && echo fresh"]
    said = subprocess.run(look, check=True, stdout=subprocess.PIPE, text=True, timeout=600).stdout
    assert said == "two\nfresh\n"
    keys = life.on_proxy(f"cat {ROOTS}/fs_0/root/root/.ssh/authorized_keys")
    assert keys.startswith(key.with_suffix(".pub").read_text())
    assert [line.rpartition(" hetero: ")[2] for line in keys.splitlines()[1:]] == ["reboot only"]
    assert play(life, "rebuild_instance", instance="jackie", **other).changed == 0


def test_a_lease_is_extended_and_ends(life):
    """Lost: boards that draw power for people who forgot them; or an instance that goes before its time."""
    assert play(life, "extend_instance", instance="jackie", hours=3).changed == 1
    assert "lease 3 h left" in note(life, 0)
    life.on_proxy("systemctl start hetero-reap.service")
    assert life.machine(0) is not None
    life.on_proxy(
        # in both records: the later one counts
        "python3 -c \"import json, sqlite3; db = sqlite3.connect('/var/lib/hetero/state.db');"
        "db.execute('UPDATE claims SET expires = 1'); db.commit();"
        "path = '/var/lib/hetero/claims/board0.json'; kept = json.load(open(path)); kept['claim']['expires'] = 1;"
        "json.dump(kept, open(path, 'w'))\"; systemctl start hetero-reap.service"
    )
    assert life.machine(0) is None
    left = f"ls {ROOTS}; {EXPORTS} ShowExports; find /tftpboot -name '*_0' -o -name '01-*'; cat /proc/self/mountinfo"
    assert not re.search(r"fs_0|/tftpboot/\S*_0|/01-", life.on_proxy(left))
    journal = life.on_proxy("journalctl -q -u hetero-reap.service -o cat")
    with LOG.open("a", encoding="utf-8") as log:
        log.write(f"\n# journalctl -u hetero-reap.service\n{journal}")
    assert re.search(r"board0: jackie of \w+: its lease is over since \d+ d; off, cleaned, free", journal)
    (board,) = life.module("board_info", boards=[0], events=20, power=True)["boards"]
    assert (board["state"], board["power"], board["instance"]) == ("power off", "off", None)
    assert [event["actor"] for event in board["events"] if event["phase"] == "reap"] == ["reap"]
    assert life.on_proxy("systemctl is-active hetero-reap.timer") == "active\n"


def test_maintenance(life):
    """Lost: a board under somebody's screwdriver that a play switches on."""
    why = "its fan rattles"
    assert play(life, "maintenance", node="board1", state="on", reason=why).changed == 1
    assert re.search(rf"maintenance +- .*{why}", note(life, 1))
    life.inside("fence_apc", "-a", "10.0.100.1", "-l", "apc", "-p", "apc", "-n", "6", "-o", "on")
    assert "its outlet is on" in play(life, "maintenance", 2, node="board1", state="off").output
    life.inside("fence_apc", "-a", "10.0.100.1", "-l", "apc", "-p", "apc", "-n", "6", "-o", "off")
    assert play(life, "maintenance", node="board1", state="off").changed == 1
    assert play(life, "maintenance", node="board1", state="off").changed == 0


@pytest.mark.long
def test_console_and_reconcile(life):
    """Lost: hours with a database that says one thing and racks that do another; or a tenant's machine, tidied away."""
    life.terminate("jackie")  # which is gone where the tests above were run too
    life.provision("kim", board=0)
    life.provision("lee", board=2)
    shown = play(life, "console", instance="kim", lines=3)
    assert "/var/log/hetero/conserver/board0.log" in shown.output
    assert play(life, "reconcile").changed == 0
    before = life.ssh("kim", "cat /proc/sys/kernel/random/boot_id")
    life.on_proxy(f"{EXPORTS} RemoveExport q 1; rm /tftpboot/10.0.2.1/01-*.ipxe /tftpboot/10.0.2.1/initrd_0")
    for outlet, state in ((7, "off"), (8, "on")):  # lee's board 2; board 3, which nobody has
        life.inside("fence_apc", "-a", "10.0.100.1", "-l", "apc", "-p", "apc", "-n", str(outlet), "-o", state)
    life.on_proxy("mkdir -p /tftpboot/10.0.2.5 && touch /tftpboot/10.0.2.5/vmlinux_4")
    dry = play(life, "reconcile", flags=("--check",))
    for board, text in (
        (2, "recorded as running, its outlet is off"),
        (3, "its outlet is on, and nobody has it"),
        (4, "left by nobody: file /tftpboot/10.0.2.5/vmlinux_4"),
    ):
        # beside its board, or on the line below
        assert re.search(rf"^board{board} .*\s+{re.escape(text)}", dry.output, re.M), (text, dry.output)
    for text in ("missing: export, initrd_0", "its boot entry is missing, or another"):  # of board 0, a line each
        assert text in dry.output
    assert life.machine(3) is not None
    mended = play(life, "reconcile")
    assert "10 boards: 6 as recorded, 4 mended, 0 to look at" in mended.output
    assert play(life, "reconcile").changed == 0
    assert life.machine(3) is None
    assert life.ssh("kim", "cat /proc/sys/kernel/random/boot_id; ls /root") == before
    assert re.search(r"^board2 .* power off +lee .*found off", play(life, "status").output, re.M)
    assert play(life, "start_instance", instance="lee").changed == 1
    assert life.ssh("lee", "uname -n") == "lee\n"
