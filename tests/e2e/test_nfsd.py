# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy that exports by its kernel's NFS server: a machine with Debian's own kernel, two boards, what goes wrong.

The tests are one story: each goes on where the one before ended, on a lab of this file's own.
"""

from __future__ import annotations

import os
import select
import signal
import time

import pytest
from conftest import FOLDER
from forging import forge, look_for, slashed_names
from labs import Lab
from writing import write_on, writing

pytestmark = pytest.mark.long

BOARDS = {"alice": 0, "bert": 1}
ROOTS = {name: f"/var/lib/hetero/board-roots/fs_{board}/root" for name, board in BOARDS.items()}
ADDRESSES = {name: f"10.0.2.{board + 1}" for name, board in BOARDS.items()}
#: A boot of this machine takes 12 s on two idle cores.
BOOT_TIME = 240
#: Seconds in which a board that boots from it is to come up, also beside other load: both are emulated.
PATIENCE = 1800


@pytest.fixture(scope="module")
def site():
    """The lab with a machine as its proxy node, set up by the playbook that sets up any other."""
    lab = Lab(FOLDER.parent / "nfsd")
    lab.play("lab_down")
    try:
        lab.play("lab_up", lab_proxy="machine")
        # nobody says which NFS server
        lab.play("proxy")
        yield lab
    finally:
        lab.play("lab_down")


@pytest.fixture(scope="module")
def two(site):
    """Two instances, provisioned side by side."""
    plays = [
        site.start("provision_instance", instance=name, flavor="tp64.8x8", board=board, hetero_boot_timeout=PATIENCE)
        for name, board in BOARDS.items()
    ]
    for played in [site.end(play) for play in plays]:
        assert played.rc == 0, played.output
    return site


def exports(lab):
    """{path: (client, fsid)} of what the kernel itself was told: by rpc.mountd, as boards ask."""
    found = {}
    for line in lab.on_proxy("exportfs -s").splitlines():
        path, _blank, rest = line.partition(" ")
        client, _bracket, options = rest.strip().partition("(")
        found[path] = (client, next(word for word in options.split(",") if word.startswith("fsid=")))
    return found


def all_exports():
    return {ROOTS[name]: (ADDRESSES[name], f"fsid={board + 1}") for name, board in BOARDS.items()}


def mount(lab, instance, path):
    """What mount says on an instance's board that asks for a root; nothing where it gets it."""
    options = "vers=3,nolock,tcp,port=2049,mountproto=tcp,addr=10.0.2.254"
    return lab.ssh(
        instance,
        f"mkdir -p /mnt/x; mount -i -t nfs -o {options} 10.0.2.254:{path} /mnt/x 2>&1 && umount /mnt/x; true",
    )


def test_a_new_machine_has_the_kernels_server_and_keeps_it(site):
    """Lost: all files of the proxy and its tenants, by the other server; all boards' open files, when it changes."""
    assert '"exports": "nfsd"' in site.on_proxy("cat /etc/hetero/proxy.json")
    assert site.on_proxy("ss -Htlnp sport = :2049 src 0.0.0.0").split()[5:] == [], "a program holds the port"
    again = site.play("proxy")
    assert again.changed == 0, again.output


def test_each_board_has_its_root_and_no_other(two):
    """Lost: a board's files, to whoever asks."""
    for name in BOARDS:
        said = two.ssh(name, "uname -n; findmnt -no SOURCE,FSTYPE /").split()
        assert said == [name, f"10.0.2.254:{ROOTS[name]}", "nfs"]
    assert exports(two) == all_exports()
    assert " overlay " in two.on_proxy(f"grep ' {ROOTS['alice']} ' /proc/self/mountinfo"), "not a copy of the image"
    assert mount(two, "bert", ROOTS["bert"]) == ""
    assert f"cannot mount 10.0.2.254:{ROOTS['alice']}" in mount(two, "bert", ROOTS["alice"])


def test_forged_handles_find_nothing_but_the_tenants_own(two):
    """Lost: another tenant's files, and the proxy's; tests/attack/test_nfs_handles.py does the same to nfs-ganesha."""
    said = forge(two, "alice", ROOTS["alice"], ROOTS["bert"], look_for(two, ROOTS["bert"], "bert"))
    assert "works" in said, said
    assert [line for line in said if line.startswith(("found", "mounts"))] == []


def test_names_with_slashes_lead_nowhere(two):
    """Lost: all files of all tenants and of the proxy; tests/attack/test_nfs_names.py says so of nfs-ganesha."""
    said, made = slashed_names(two, "alice", ROOTS["alice"])
    assert said[0] == "works", f"this shows nothing: {said}"
    assert [line for line in said[1:] if not line.startswith("refused")] == []
    calls = {"LOOKUP", "CREATE", "MKDIR", "SYMLINK", "LINK", "RENAME", "REMOVE", "RMDIR"}
    assert {line.split()[1] for line in said[1:]} == calls
    assert made == []


def test_groups_are_those_of_the_board(two):
    """Lost: a user who is in a group on the board and may not read that group's files."""
    two.ssh("alice", "echo shared > /srv/f; chown 0:1234 /srv/f; chmod 640 /srv/f")
    user = "setpriv --reuid=1000 --regid=1000"
    assert two.ssh("alice", f"{user} --groups=1234 cat /srv/f") == "shared\n"
    assert two.ssh("alice", f"{user} --clear-groups cat /srv/f 2> /dev/null || echo no") == "no\n"


def test_a_second_run_changes_nothing_and_an_export_comes_back(two):
    """Lost: a board that hangs on its root for ever after `exportfs -u`."""
    before = two.boot_ids(BOARDS)
    again = two.provision("alice", board=0, hetero_boot_timeout=PATIENCE)
    assert again.changed == 0, again.output
    two.on_proxy(f"exportfs -u 10.0.2.1:{ROOTS['alice']}; rm /etc/exports.d/hetero-fs_0.exports")
    assert list(exports(two)) == [ROOTS["bert"]]
    again = two.provision("alice", board=0, hetero_boot_timeout=PATIENCE)
    assert again.changed == 1, again.output
    assert set(again.phases("alice")) == {"image", "running"}
    two.on_proxy("exportfs -r")
    assert exports(two) == all_exports()
    assert two.boot_ids(BOARDS) == before, "it came back without a reboot"


def reboot(lab):
    before = lab.on_proxy("cat /proc/sys/kernel/random/boot_id")
    lab.on_proxy("systemd-run --quiet --on-active=0.1 systemctl reboot")
    end = time.monotonic() + BOOT_TIME
    while lab.try_on_proxy("cat /proc/sys/kernel/random/boot_id") in (None, before):
        assert time.monotonic() < end, "the proxy does not come back"
        time.sleep(0.2)


def power_cut(lab):
    pid = int((lab.folder / "run" / "proxy1.pid").read_text().split()[0])
    end = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    # its network cards are free again when it has ended
    assert select.select([end], [], [], 100)[0]
    os.close(end)
    lab.start_proxy()


def restart_of_the_server(lab):
    lab.on_proxy("systemctl restart nfs-server")


def killed_mountd(lab):
    lab.on_proxy("systemctl kill --signal=KILL nfs-mountd")


def a_start_that_fails(lab):
    """What the server needs before its start cannot be done at first."""
    hide = "mv /etc/hetero/proxy.json /etc/hetero/away; systemctl restart nfs-server; cat /proc/fs/nfsd/threads"
    assert lab.on_proxy(hide).splitlines()[-1] == "0", "it answers without an export"
    lab.on_proxy("mv /etc/hetero/away /etc/hetero/proxy.json")


@pytest.mark.parametrize("harm", [reboot, power_cut, restart_of_the_server, killed_mountd, a_start_that_fails])
def test_boards_that_write_see_no_error(two, harm):
    """Lost: what everybody was working on, on all boards of a proxy that starts again, or whose server does."""
    boards = two.boot_ids(BOARDS)
    with writing(two, BOARDS):
        harm(two)
        write_on(two, BOARDS, BOOT_TIME)
        assert exports(two) == all_exports()
    again = two.provision("bert", board=1, hetero_boot_timeout=PATIENCE)
    assert again.changed == 0, again.output
    assert two.boot_ids(BOARDS) == boards


def test_nothing_is_left(two):
    """Lost: the next tenant's privacy."""
    for name in BOARDS:
        two.terminate(name)
    look = (
        "exportfs -s; ls /etc/exports.d; grep -o '/board-roots/fs_[^ ]*' /proc/self/mountinfo;"
        " find /var/lib/hetero/board-roots -name 'fs_*';"
        " test ! -e /var/lib/hetero/exports || ls /var/lib/hetero/exports;"
        " find /tftpboot -name '*_[0-9]' -o -name '01-*'"
    )
    assert two.on_proxy(f"{look}; true") == ""
    info = two.module("board_info", power=True)
    assert info["claims"] == []
    assert {(board["state"], board["power"]) for board in info["boards"]} == {("power off", "off")}
