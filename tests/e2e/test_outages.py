# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of faults, continued: servers, disks, PDUs and files of a proxy that are gone or broken.

A proxy's fault quarantines nothing, an image's gives the board back clean, a board's puts it aside with its evidence.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from conftest import FOLDER
from labs import ROOT

#: Seconds from power to ssh that these tests give a boot: an undisturbed one takes a third of it.
TIMEOUT = 25


@contextlib.contextmanager
def described(change):
    """The lab with something else in its description; the PDUs, and so all boards, are off and on before and after."""
    path = FOLDER / "lab.json"
    before = path.read_text()
    description = json.loads(before)
    change(description)

    def put(text):
        lab = [sys.executable, ROOT / "roles/lab/files/lab.py", path, "pdus"]
        subprocess.run([*lab, "down"], check=True)
        path.write_text(text)
        subprocess.run([*lab, "up"], check=True)

    put(json.dumps(description))
    try:
        yield
    finally:
        put(before)


@contextlib.contextmanager
def undone(lab, command, back):
    """A command on the proxy, and the one that undoes it."""
    lab.on_proxy(command)
    try:
        yield
    finally:
        lab.on_proxy(back)


def states(lab):
    """How many boards are in which state."""
    found = [board["state"] for board in lab.module("board_info")["boards"]]
    return {state: found.count(state) for state in found}


def works(lab, instance="after"):
    """A provision that is not disturbed; the instance is gone again afterwards."""
    board = lab.provision(instance).board(instance)
    assert lab.ssh(instance, "uname -n").strip() == instance
    lab.terminate(instance)
    return board


def failed(lab, instance, **extra):
    """What a provision says that has to fail; no board may be in error after it."""
    played = lab.provision(instance, expect=2, hetero_boot_timeout=TIMEOUT, **extra)
    assert "error" not in states(lab), played.output
    return played.output


@pytest.mark.long
def test_a_database_that_is_locked(lab):
    """Lost: a play that hangs for ever, or a board claimed twice."""
    script = (
        "import sqlite3, time; db = sqlite3.connect('/var/lib/hetero/state.db', isolation_level=None);"
        "db.execute('BEGIN IMMEDIATE'); open('/run/locked', 'w').close(); time.sleep(120)"
    )
    lab.on_proxy(f'systemd-run --quiet --unit=locker python3 -c "{script}"')
    with undone(lab, "timeout 10 sh -c 'until [ -e /run/locked ]; do sleep 0.1; done'", "systemctl stop locker"):
        output = failed(lab, "greta")
    assert "state.db: has been locked by another process for 10 s" in output
    assert "fuser -v" in output
    assert works(lab, "greta") == 0


def test_a_database_that_is_damaged(lab):
    """Lost: who has which board, and the file from which somebody could still have read it."""
    lab.provision("hugo")
    # the timer's copy may be of this very moment
    copy = lab.on_proxy("hetero backup >/dev/null; ls -t /var/lib/hetero/backups/state-*.db | head -n 1").strip()
    lab.on_proxy(
        "set -e; cd /var/lib/hetero; mkdir /root/aside;"
        "python3 -c \"import sqlite3; sqlite3.connect('state.db').execute('PRAGMA wal_checkpoint(TRUNCATE)')\";"
        "cp state.db /root/aside/; printf 'no database any more' | dd of=state.db conv=notrunc status=none"
    )
    output = lab.provision("ida", expect=2).output
    assert "state.db: is no SQLite database" in output
    assert copy in output, "it names the copy to put in its place"
    assert lab.on_proxy("head -c 9 /var/lib/hetero/state.db") == "no databa"
    lab.on_proxy(f"cd /var/lib/hetero; mv state.db* /root/aside/; cp {copy} state.db")
    again = lab.provision("hugo")
    assert (again.changed, again.board("hugo")) == (0, 0), again.output


def test_a_disk_that_is_full(lab):
    """Lost: boards out of use, one after the other, for a file that could not be written."""
    folder = "/var/lib/hetero/board-roots"
    fill = f"mount -t tmpfs -o size=64k none {folder} && ! dd if=/dev/zero of={folder}/fill status=none"
    with undone(lab, fill, f"umount {folder}"):
        output = failed(lab, "jan")
    assert re.search(r"/var/lib/hetero/board-roots\S*: .*No space left on device", output), output
    lab.terminate("jan")
    assert works(lab, "jan") == 0


@pytest.mark.long
def test_a_state_folder_that_cannot_be_written(lab):
    """Lost: a traceback instead of the mount option that somebody forgot."""
    lab.provision("kim")
    folder = "/var/lib/hetero"
    with undone(lab, f"mount --bind {folder} {folder} && mount -o remount,bind,ro {folder}", f"umount {folder}"):
        output = lab.provision("lars", expect=2).output
        status = lab.play("status").output
    assert re.search("/var/lib/hetero.*is on a file system that is read-only", output)
    assert re.search(r"board0 +board +\S+ +\S+ +running +kim", status), "looking needs no writing"
    assert lab.provision("kim").changed == 0


@pytest.mark.long
def test_an_nfs_server_that_is_stopped(lab):
    """Lost: boards blamed for a root that their proxy does not serve."""
    with undone(lab, "systemctl stop nfs-ganesha", "systemctl start nfs-ganesha"):
        output = failed(lab, "mia")
    assert "nfs-ganesha does not answer" in output
    lab.terminate("mia")
    assert works(lab, "mia") == 0


@pytest.mark.long
def test_an_nfs_server_that_stops_under_a_boot(lab):
    """Lost: the image blamed, and the board taken from its user, for what starting a service mends."""
    process = lab.start("provision_instance", instance="nils", flavor="tp64.8x8", hetero_boot_timeout=TIMEOUT)
    deadline = time.monotonic() + 1200
    while lab.machine(0) is None:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    with undone(lab, "systemctl stop nfs-ganesha", "systemctl start nfs-ganesha"):
        played = lab.end(process)
    assert played.rc == 2
    assert re.search("the proxy itself fails: .*NFS", played.output), played.output
    assert "error" not in states(lab)
    assert lab.provision("nils").board("nils") == 0


@pytest.mark.long
def test_a_kernel_that_is_none(lab):
    """Lost: a good board, for a file that is no kernel."""
    lab.on_proxy(
        "set -e; mkdir /srv/bad; cd /srv/bad; tar xf /srv/images/debian-12.tar;"
        "head -c 4000000 /dev/urandom > kernel; tar cf /srv/no-kernel.tar image.json kernel initrd root;"
        "rm -r /srv/bad"
    )
    lab.module("board_image", image="/srv/no-kernel.tar", name="no-kernel")
    output = failed(lab, "olga", image="no-kernel")
    assert "image no-kernel does not boot: stalled at" in output
    assert states(lab) == {"power off": 10}
    assert lab.machine(0) is None
    assert works(lab) == 0


@pytest.mark.long
def test_a_board_that_never_asks_for_anything(lab):
    """Lost: every user waits once for the board whose network card is dead."""

    def dead(description):
        description["pdus"]["pdu-a"]["outlets"]["5"]["argv"] = ["sleep", "600"]

    with described(dead):
        played = lab.provision("paul", hetero_boot_timeout=TIMEOUT)
        assert played.board("paul") == 1
        said = r"kept out of use: no boot request within (\d+) s, twice; console: board0.log"
        assert int(re.search(said, played.output)[1]) >= TIMEOUT, played.output
        assert states(lab) == {"error": 1, "running": 1, "power off": 8}
        lab.terminate("paul")
    lab.play("repair", node="board0")


@pytest.mark.long
def test_a_board_that_boots_too_slowly(lab):
    """Lost: a sound board out of use, because somebody gave it less time than its boot takes."""
    played = lab.provision("rosa", expect=2, hetero_boot_timeout=4, attempts=1)
    assert int(re.search(r"stalled at \w+ after (\d+) s", played.output)[1]) >= 4, played.output
    assert "hetero_boot_timeout" in played.output, played.output
    lab.terminate("rosa")
    for entry in lab.module("board_info")["boards"]:
        if entry["state"] == "error":
            lab.play("repair", node=entry["name"])
    assert works(lab, "rosa") == 0


@pytest.mark.long
def test_one_of_two_pdus_is_dead(lab):
    """Lost: half of the boards out of use, and the other half not served, because one PDU lost its network."""
    pdu = json.loads((FOLDER / "run" / "pdu-a.json").read_text())["pid"]
    os.kill(pdu, signal.SIGSTOP)
    try:
        played = lab.provision("six", expect=2, count=6)
    finally:
        os.kill(pdu, signal.SIGCONT)
    assert "pdu-a" in played.output
    assert states(lab).get("running") == 1, played.output
    assert "error" not in states(lab), played.output
    again = lab.provision("six", count=6)
    assert states(lab) == {"running": 6, "power off": 4}, again.output
