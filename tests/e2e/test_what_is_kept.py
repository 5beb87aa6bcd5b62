# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an instance that ran once keeps, on boards with an operating system: its board, its power and its root.

Each test is a way in which an earlier release took one of them away: with an exit code of 0, or by words that it
printed itself. Each play's output is kept in build/logs/kept.log, as a user saw it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal

import pytest
import yaml
from conftest import FOLDER
from labs import ROOT

LOG = ROOT / "build" / "logs" / "kept.log"
STATE = "/var/lib/hetero"
#: Seconds from power to ssh that these tests give a boot which cannot come to its end.
TIMEOUT = 25


def play(lab, name, expect=0, **extra):
    played = lab.play(name, expect, **extra)
    words = " ".join(f"-e {key}={value}" for key, value in extra.items() if isinstance(value, (str, int)))
    with LOG.open("a", encoding="utf-8") as log:
        log.write(f"\n# ansible-playbook hetero.compute.{name} {words}\n{played.output}")
    return played


def asked(lab, expect=0, instance="jackie", **extra):
    """The request by which the instance was made, once more."""
    return play(lab, "provision_instance", expect, instance=instance, flavor="tp64.8x8", **extra)


class Tenant:
    """jackie, who has board 0 and wrote a file there."""

    def __init__(self, lab):
        assert asked(lab, board=0).board("jackie") == 0
        lab.ssh("jackie", "echo mine > /root/data; sync")
        self._lab = lab
        self.machine = lab.machine(0)
        self._boot = self._booted()

    def _booted(self):
        return self._lab.ssh("jackie", "cat /proc/sys/kernel/random/boot_id")

    def has_all(self):
        """Board, root and power were never taken: it is the same boot of the same machine."""
        self.has_power()
        assert self._booted() == self._boot
        self.has_its_root()

    def has_power(self):
        assert self._lab.machine(0) == self.machine, "its power was cut"

    def has_its_root(self):
        """It may have been booted again."""
        assert self._lab.ssh("jackie", "uname -n; cat /root/data").split() == ["jackie", "mine"]
        info = self._lab.module("board_info")
        assert [(claim["instance"], claim["board"]) for claim in info["claims"]] == [("jackie", 0)]


@pytest.fixture
def jackie(lab):
    LOG.parent.mkdir(parents=True, exist_ok=True)
    with LOG.open("a", encoding="utf-8") as log:
        log.write(f"\n#### {os.environ.get('PYTEST_CURRENT_TEST')}\n")
    return Tenant(lab)


@contextlib.contextmanager
def halted(machine):
    """A machine whose processors stand still, as on a host that is busy with others."""
    os.kill(machine, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(machine, signal.SIGCONT)


def test_a_busy_board_is_not_cut_by_who_asks_again(lab, jackie):
    """Lost: the power of running boards, since sshd took longer than some seconds."""
    with halted(jackie.machine):
        again = lab.start("provision_instance", instance="jackie", flavor="tp64.8x8", board=0)
        said = ""
        for line in again.stdout:
            said += line
            if "wait" in line or "silent" in line or "answer" in line:
                break
    said += lab.end(again).output
    with LOG.open("a", encoding="utf-8") as log:
        log.write(said)
    assert again.returncode == 0, said
    jackie.has_all()


@pytest.fixture(params=[True, False], ids=["a copy from before the claim", "no copy"])
def copied(lab, request):
    lab.on_proxy(f"rm -f {STATE}/backups/state-*.db")
    if request.param:
        lab.module("board_reconcile")  # makes a database where none is yet
        lab.on_proxy("hetero backup")
    return request.param


def test_the_printed_way_out_of_a_lost_database_takes_nothing(lab, copied, jackie):
    """Lost: each instance that was made since the last copy, by the remedy itself."""
    lab.on_proxy(f"mkdir /root/gone && mv {STATE}/state.db* /root/gone/")
    try:
        said = asked(lab, expect=2, board=0).output
        jackie.has_power()
        if copied:
            lab.on_proxy(re.search(r"run on node proxy1: (cp -p \S+ \S+) and then", said)[1])
        assert re.search(r"ansible-playbook hetero\.compute\.(reconcile)\b", said)
        play(lab, "reconcile")
        jackie.has_all()
        assert asked(lab, board=0).changed == 0
    finally:
        lab.on_proxy(f"[ -e {STATE}/state.db ] || mv /root/gone/* {STATE}/; rm -r /root/gone")


def test_a_claim_that_is_gone_gives_nobody_the_board(lab, jackie):
    """Lost: a running machine, taken over by the next who asks."""
    row = f"import sqlite3; db = sqlite3.connect('{STATE}/state.db'); db.execute('DELETE FROM claims'); db.commit()"
    lab.on_proxy(f'python3 -c "{row}"')
    taken = asked(lab, expect=2, instance="greta", board=0)
    assert "board0" in taken.output
    play(lab, "reconcile")
    jackie.has_all()


@pytest.fixture
def idle(lab, jackie):
    """A proxy node whose Python reads a load of none: beside other tests it would wait for five minutes, not one."""
    read = "/usr/lib/python3/dist-packages/idle.pth"
    lab.on_proxy(f"echo 'import os; os.getloadavg = lambda: (0.0, 0.0, 0.0)' > {read}")
    yield
    lab.on_proxy(f"rm {read}")


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize(
    "silent",
    [
        pytest.param("mount --bind /bin/true /usr/sbin/sshd && kill $(cat /run/sshd.pid)", id="no sshd"),
        pytest.param("echo 'Port 2222' >> /etc/ssh/sshd_config && kill -HUP $(cat /run/sshd.pid)", id="another port"),
    ],
)
def test_a_root_outlives_an_sshd_that_does_not_answer(lab, jackie, silent):
    """Lost: all files of a tenant who moved sshd, or whose fsck took long; the image was blamed."""
    lab.ssh("jackie", silent)
    said = asked(lab, expect=None, board=0, hetero_boot_timeout=TIMEOUT).output
    assert lab.on_proxy(f"cat {STATE}/board-roots/fs_0/root/root/data") == "mine\n", said
    assert [claim["board"] for claim in lab.module("board_info")["claims"]] == [0]


def test_a_pulled_cable_gives_no_empty_root_on_another_board(lab, jackie):
    """Lost: a tenant who finds an empty machine under the name, and nobody who knows where the files are."""
    tap = next(board["tap"] for board in lab.description["boards"] if board["id"] == 0)
    lab.inside("ip", "link", "set", tap, "down")
    try:
        said = asked(lab, expect=None, hetero_boot_timeout=TIMEOUT).output
        assert [claim["board"] for claim in lab.module("board_info")["claims"]] == [0], said
    finally:
        lab.inside("ip", "link", "set", tap, "up")
    asked(lab, board=0)
    jackie.has_its_root()


def test_swapped_outlets_cut_nobody(lab, jackie):
    """Lost: a tenant's power, by the play that is there to mend what drifted."""
    inventory = yaml.safe_load((FOLDER / "inventory" / "lab.yml").read_text())
    boards = inventory["proxies"]["hosts"]["proxy1"]["tftp_proxy_boards"]
    first, second = (boards[board]["outlet"] for board in (0, 1))
    swapped = {**boards, 0: {**boards[0], "outlet": second}, 1: {**boards[1], "outlet": first}}
    try:
        play(lab, "proxy", expect=None, flags=("-e", json.dumps({"tftp_proxy_boards": swapped})))
        said = play(lab, "reconcile", expect=None).output
        assert "board0" in said
        jackie.has_all()
    finally:
        play(lab, "proxy")
    assert play(lab, "reconcile").changed in (0, 1)
    jackie.has_all()
