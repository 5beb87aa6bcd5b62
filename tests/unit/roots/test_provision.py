# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All that a board boots from, made, restored and removed on real mounts. If these failed, a rerun would change what is
whole, or leave out what is missing, and a terminated instance would leave its root or export for the next tenant.

Tests roots/place.py.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.this_node import THIS_NODE
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.choice import image_of, image_store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.forms import Machine
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots import place as place_file
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.console_log import write_console_log
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.provision import leftovers, prepare, remove
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.roots import Root
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import Wire
from ansible_collections.hetero.compute.tests.unit.images.devices import break_file_system
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY, OTHER_KEY, image_tar


@pytest.fixture
def provision(site, proxy, report):
    """Prepare board 0 for its claim, as often as called; (result, Change)."""

    def once(check=False, claim=None, board=0, image=None, proves=None):
        claim = claim or proxy.store.record(board).claim or site.claim(proxy, board=board)
        change = Change(check)
        image = image or image_of(proxy, claim)
        return prepare(proxy, proxy.board(board), claim, image, change, report.call, proves), change

    return once


def everything(folder):
    """Names, inodes and times of all files below a folder; of the file of a mounted root the kernel sets the time."""
    paths = [path for path in folder.rglob("*") if "state.db" not in path.name]
    seen = [(str(path), path.lstat()) for path in paths]
    return sorted((name, one.st_ino, None if name.endswith(".ext4") else one.st_mtime_ns) for name, one in seen)


def root_file(site, name):
    return site.state / "board-roots" / "fs_0" / "root" / name


# ---- made


def test_a_claimed_board_gets_all_it_boots_from(site, proxy, provision, report):
    result, change = provision()
    path = str(site.state / "board-roots" / "fs_0" / "root")
    assert site.exports() == {1: {"path": path, "pseudo": "/tftpboot/fs_0", "clients": ["10.0.2.1"]}}
    assert (result["root"], result["export"], result["client"]) == (path, 1, "10.0.2.1")
    assert result["files"] == [str(site.tftp / "10.0.2.1" / name) for name in ("vmlinux_0", "initrd_0")]
    assert (site.tftp / "10.0.2.1" / "vmlinux_0").read_text() == "KERNEL" * 1000
    assert root_file(site, "etc/hostname").read_text() == "jackie\n"
    assert KEY in root_file(site, "root/.ssh/authorized_keys").read_text()
    assert result["known_hosts"] == "10.0.2.1 " + result["host_key"]
    public = root_file(site, "etc/ssh/ssh_host_ed25519_key.pub").read_text()
    assert public.startswith(result["host_key"] + " ")
    claim = proxy.store.record(0).claim
    image = image_store(proxy).get("debian")
    assert (claim.host_key, claim.image_hash, claim.boot_source) == (result["host_key"], image.hash, "nfs")
    assert report.said == [("image", "root ready, exported to 10.0.2.1 only")]
    assert change.changed
    shown = json.dumps([change.diff, result])
    assert "PRIVATE" not in shown
    assert json.dumps({"clients": ["10.0.2.1"]})[1:-1] in shown


def test_a_second_time_changes_nothing(site, provision, report):
    first = provision()[0]
    before = everything(site.folder)
    second, change = provision()
    assert (change.changed, change.diff, second["restored"]) == (False, [], [])
    assert everything(site.folder) == before
    assert second["host_key"] == first["host_key"]
    assert len(report.said) == 1


def test_check_mode_touches_nothing_and_says_what_it_would_do(site, provision, proxy, report):
    claim = site.claim(proxy)
    before = everything(site.folder)
    result, change = provision(check=True)
    assert change.changed
    assert result["host_key"] is None
    assert everything(site.folder) == before
    assert site.exports() == {}
    assert proxy.store.record(0).claim == claim
    assert report.said == []
    things = [entry["after_header"] for entry in change.diff]
    assert [thing for thing in things if thing.startswith("board0")] == [
        "board0 root",
        "board0 keys",
        "board0 reboot by ssh",
        "board0 export",
    ]


def test_another_architecture_is_refused_before_anything_is_touched(site, proxy, provision):
    image_store(proxy).import_image(image_tar(site.folder / "arm.tar"), "arm", machine=Machine("aarch64"))
    claim = site.claim(proxy, image="arm")
    before = everything(site.folder)
    with pytest.raises(BadInput, match=r"board0: image arm is for aarch64, the board is TILEPro64"):
        provision(claim=claim)
    assert everything(site.folder) == before
    assert site.exports() == {}


def test_a_name_that_stands_for_a_newer_image_leaves_instances_alone(site, proxy, provision):
    provision()
    image_store(proxy).import_image(image_tar(site.folder / "new.tar", kernel="NEW"), "debian", replace=True)
    assert not provision()[1].changed
    with pytest.raises(Refused, match="rebuild the instance to change its image"):
        provision(image=image_store(proxy).get("debian"))
    assert not provision()[1].changed


# ---- restored


def remove_export(site):
    site.set_exports({})


def wrong_client(site):
    exports = site.exports()
    exports[1]["clients"] = ["10.0.2.9"]
    site.set_exports(exports)


def remove_key(site):
    root_file(site, "root/.ssh/authorized_keys").write_text(OTHER_KEY + "\n")


def user_key_only(site):
    path = root_file(site, "root/.ssh/authorized_keys")
    own = [line for line in path.read_text().splitlines() if "reboot only" in line]
    assert len(own) == 1
    path.write_text(f"{own[0]}\n")


def widen_reboot_line(site):
    path = root_file(site, "root/.ssh/authorized_keys")
    path.write_text(path.read_text().replace("restrict,", ""))


def remove_host_key(site):
    root_file(site, "etc/ssh/ssh_host_ed25519_key").unlink()


def remove_kernel(site):
    (site.tftp / "10.0.2.1" / "vmlinux_0").unlink()


def other_initrd(site):
    path = site.tftp / "10.0.2.1" / "initrd_0"
    path.unlink()
    path.write_text("INITRX" * 1000)


def remove_restore_file(site):
    (site.state / "exports" / "fs_0.conf").unlink()


def restart(site):
    """The proxy was restarted: mounts and exports are gone, files are there."""
    site.set_exports({})
    site.clean()


def remove_marker(site):
    (site.state / "board-roots" / "fs_0" / "made.json").unlink()


@pytest.mark.parametrize(
    ("damage", "restored"),
    [
        (remove_export, ["export"]),
        (wrong_client, ["export"]),
        (remove_restore_file, ["export"]),
        (remove_key, ["key", "reboot line"]),
        (user_key_only, ["key"]),
        (widen_reboot_line, ["reboot line"]),
        (remove_host_key, ["host key"]),
        (remove_kernel, ["vmlinux_0"]),
        (other_initrd, ["initrd_0"]),
        (restart, ["mount", "export"]),
    ],
)
def test_what_is_missing_is_restored_and_nothing_else(site, proxy, provision, report, damage, restored):
    first = provision()[0]
    root_file(site, "home-of-jackie").write_text("work\n")
    root_file(site, "etc/hostname").write_text("renamed\n")
    damage(site)
    foreseen, dry = provision(check=True)
    assert dry.changed
    assert foreseen["restored"] == restored
    result, change = provision()
    assert change.changed
    assert result["restored"] == restored
    said = "a new host key was made" if restored == ["host key"] else f"{', '.join(restored)} restored"
    assert report.said[1:] == [("image", said)]
    assert site.exports()[1]["clients"] == ["10.0.2.1"]
    assert root_file(site, "home-of-jackie").read_text() == "work\n"
    assert root_file(site, "etc/hostname").read_text() == "renamed\n"
    assert (result["host_key"] == first["host_key"]) == (damage is not remove_host_key)
    assert proxy.store.record(0).claim.host_key == result["host_key"]
    keys = root_file(site, "root/.ssh/authorized_keys").read_text()
    assert KEY in keys
    assert (OTHER_KEY in keys) == (damage is remove_key)
    assert not provision()[1].changed


def test_host_keys_a_tenant_made_itself_are_taken_over(site, proxy, provision):
    """Else the board would never be seen running again after a reboot."""
    provision()
    path = root_file(site, "etc/ssh/ssh_host_ed25519_key")
    path.unlink()
    path.with_suffix(".pub").unlink()
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "tenant", "-f", str(path)], check=True)
    result = provision()[0]
    assert path.with_suffix(".pub").read_text().startswith(result["host_key"])
    assert proxy.store.record(0).claim.host_key == result["host_key"]


@pytest.mark.parametrize("as_fifo", [False, True])
@pytest.mark.parametrize("why", ["proven", "on"])
def test_a_host_key_that_is_gone_while_its_board_runs_is_not_made_anew(site, proxy, provision, report, why, as_fifo):
    """Lost: the board, which still shows the key that it has read, to a new one in the database: it would be called a
    stranger, and keep its power against its owner."""
    first = provision()[0]
    remove_host_key(site)
    if as_fifo:
        os.mkfifo(root_file(site, "etc/ssh/ssh_host_ed25519_key"))
    if why == "on":
        proxy.store.power_seen(0, "on")
    said = (
        "its host key is gone from its root; while it runs it keeps the one that is known; "
        "the next start from off makes a new one"
    )
    for check in (True, False):
        result, change = provision(check=check, proves=lambda: why == "proven")
        assert (result["host_key"], result["restored"], change.changed) == (first["host_key"], [], False)
        assert report.said[-1] == ("image", said)
    assert proxy.store.record(0).claim.host_key == first["host_key"]
    assert not root_file(site, "etc/ssh/ssh_host_ed25519_key").is_file()
    proxy.store.power_seen(0, "off")
    result = provision(proves=lambda: False)[0]
    assert report.said[-1] == ("image", "a new host key was made")
    assert proxy.store.record(0).claim.host_key == result["host_key"] != first["host_key"]


def test_a_tenants_own_host_key_is_taken_over_once_its_board_shows_it(site, proxy, provision, report):
    """Lost: likewise, where the tenant has made another and did not restart its server yet."""
    first = provision()[0]
    path = root_file(site, "etc/ssh/ssh_host_ed25519_key")
    path.unlink()
    path.with_suffix(".pub").unlink()
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "tenant", "-f", str(path)], check=True)
    proxy.store.power_seen(0, "on")
    assert provision(proves=lambda: True)[0]["host_key"] == first["host_key"]
    assert proxy.store.record(0).claim.host_key == first["host_key"]
    assert "another host key lies in its root than the one that it proves" in report.said[-1][1]
    result = provision(proves=lambda: False)[0]
    assert result["host_key"] != first["host_key"]
    assert proxy.store.record(0).claim.host_key == result["host_key"]


@pytest.mark.parametrize(
    ("place", "target", "is_what"),
    [
        ("root/.ssh", "/nowhere\x1b[2J", r"a symbolic link to /nowhere\x1b[2J, which is no folder"),
        ("etc/ssh", "a\nb", r"a symbolic link to a\x0ab, which is no folder"),
        ("root/.ssh", None, "no folder"),
        ("root/.ssh/authorized_keys", "", "a folder"),
    ],
)
@pytest.mark.parametrize("check", [True, False])
def test_keys_that_cannot_be_put_into_a_tenants_root(site, proxy, provision, place, target, is_what, check):
    """Lost: what is wrong where, and how to get on, to "No such file or directory" of a path of the proxy's."""
    provision()
    path = root_file(site, place)
    for file in path.iterdir() if path.is_dir() else []:
        file.unlink()
    path.rmdir() if path.is_dir() else path.unlink()
    if target:
        path.symlink_to(target)
    elif target is None:
        path.write_text("")
    else:
        path.mkdir()
    before = sorted(str(file) for file in root_file(site, "").rglob("*"))
    with pytest.raises(Refused) as caught:
        provision(check=check)
    assert str(caught.value) == (
        f"jackie: /{place} in its root is {is_what}, so no key can be put there; nothing in its root was changed: "
        f"remove /{place} in the instance, or give it a new root, with which all in the old one goes: "
        "ansible-playbook hetero.compute.rebuild_instance -e instance=jackie -e fresh=true"
    )
    assert sorted(str(file) for file in root_file(site, "").rglob("*")) == before


def test_an_export_id_of_somebody_else_is_not_taken(site, provision):
    site.set_exports({"1": {"path": "/srv", "pseudo": "/srv", "clients": ["10.0.2.7"]}})
    with pytest.raises(HeteroError, match=r"board0: export id 1 is taken by /srv"):
        provision()
    assert site.exports()[1]["path"] == "/srv"


def test_a_server_that_does_not_answer_is_said(site, proxy, provision):
    """Lost: on which machine to look, to who sits at the controller."""
    os.unlink(site.exports_file)
    text = rf"{THIS_NODE}: nfs-ganesha does not answer on DBus .*systemctl status dbus nfs-ganesha"
    with pytest.raises(HeteroError, match=text):
        provision()
    with pytest.raises(HeteroError, match="does not answer on DBus"):
        leftovers(proxy, proxy.board(0))


# ---- killed


POINTS = ["create", "settle", "put_key", "put_host_key", "mark_whole"]
POINTS = [*(f"Root.{step}" for step in POINTS), "Ganesha.add", "BoardFiles.place"]


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_anywhere_it_converges(site, proxy, provision, point, when):
    """kill -9 within a step; the rerun ends with one whole root, which is this claim's."""
    site.claim(proxy)
    script = f"""
import os, sys
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.proxy import Proxy
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images import choice as choosing
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nfs import ganesha
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots import provision
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots import roots
from ansible_collections.hetero.compute.plugins.module_utils._hetero.tftp import board_folder as tftp
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nfs.ganesha import Ganesha
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.roots import Root
from ansible_collections.hetero.compute.plugins.module_utils._hetero.tftp.board_folder import BoardFiles
step = {point}
def killed(*arguments):
    {"step(*arguments)" if when == "after" else "pass"}
    os.kill(os.getpid(), 9)
{point} = killed
with Proxy({site.params!r}, "test") as proxy:
    claim = proxy.store.record(0).claim
    image = choosing.image_of(proxy, claim)
    provision.prepare(proxy, proxy.board(0), claim, image, Change(), print)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    result, change = provision()
    assert change.changed
    assert KEY in root_file(site, "root/.ssh/authorized_keys").read_text()
    assert proxy.store.record(0).claim.host_key == result["host_key"]
    assert root_file(site, "etc/hostname").read_text() == "jackie\n"
    assert len(Root(str(site.state), 0).mounts()) == 1
    assert not provision()[1].changed


def test_a_root_of_the_tenant_before_is_never_handed_on(site, proxy, provision, report):
    """Same board, same name, same image, same key, but claimed anew: another root and another host key."""
    first = provision()[0]
    root_file(site, "secret").write_text("of the first tenant\n")
    proxy.store.release(0, proxy.store.record(0).claim)
    with pytest.raises(Refused, match="its root was made for another claim of jackie"):
        provision()
    assert root_file(site, "secret").read_text() == "of the first tenant\n", "it may be somebody's"
    proxy.store.release(0, proxy.store.record(0).claim)
    remove_one(proxy, report)
    second = provision()[0]
    assert not root_file(site, "secret").exists()
    assert second["host_key"] != first["host_key"]
    assert "root" in second["restored"]


def test_a_root_that_an_instance_ran_from_is_not_made_anew(site, proxy, provision):
    """A record beside it that was damaged would cost a tenant all they have."""
    provision()
    root_file(site, "work").write_text("a week of it\n")
    claim = proxy.store.record(0).claim
    proxy.store.event(0, "running", "ssh answers")
    made = site.state / "board-roots" / "fs_0" / "made.json"
    whole = made.read_text()
    for odd in ('"whole": false', f'"image": "{"0" * 64}"', '"claim": "eve 1.0"'):
        key = odd.partition(":")[0]
        made.write_text(re.sub(rf"{key}: ([^,}}]*)", odd, whole))
        with pytest.raises(Refused, match=r"jackie ran from its root|its root is that of eve"):
            provision(claim=claim)
        assert root_file(site, "work").read_text() == "a week of it\n"


# ---- removed


def remove_one(proxy, report, check=False):
    change = Change(check)
    return remove(proxy, proxy.board(0), change, report.call), change


def test_all_of_it_goes(site, proxy, provision, report):
    provision()
    (site.tftp / "10.0.2.1" / "01-00-1a-ca-00-57-90.ipxe").write_text("#!ipxe\n")
    other = provision(claim=site.claim(proxy, "bob", 1), board=1)[0]
    before = everything(site.folder)
    there, dry = remove_one(proxy, report, check=True)
    assert dry.changed
    assert everything(site.folder) == before
    assert leftovers(proxy, proxy.board(0)) == there
    removed, change = remove_one(proxy, report)
    assert change.changed
    assert removed == there
    assert " ".join(text.split()[0] for text in there) == "export mount folder file file file folder file"
    assert leftovers(proxy, proxy.board(0)) == []
    assert not (site.state / "board-roots" / "fs_0").exists()
    assert not (site.tftp / "10.0.2.1").exists()
    assert os.listdir(site.state / "exports") == ["fs_1.conf"]
    # another tenant's things are all there
    assert list(site.exports()) == [2]
    assert os.path.exists(os.path.join(other["root"], "etc", "hostname"))
    assert report.said[-1] == ("image", "export, root and files removed")
    again, change = remove_one(proxy, report)
    assert (again, change.changed) == ([], False)


@pytest.mark.parametrize("damage", [remove_export, remove_kernel, remove_restore_file, remove_marker, restart])
def test_what_is_left_of_a_half_goes_too(site, proxy, provision, report, damage):
    provision()
    damage(site)
    change = remove_one(proxy, report)[1]
    assert change.changed
    assert leftovers(proxy, proxy.board(0)) == []
    assert not remove_one(proxy, report)[1].changed


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("exported", [True, False])
def test_what_a_tenant_left_open_goes_with_the_claim(site, proxy, provision, report, monkeypatch, exported, check):
    """Lost: the boot of the next tenant, whose last one, without a root by NFS, left connections to it open."""
    asked = []
    if exported:
        provision()
    else:
        site.claim(proxy)
    monkeypatch.setattr(place_file, "let_go", asked.append)
    remove(proxy, proxy.board(0), Change(check), report.call)
    assert asked == ([] if check else ["10.0.2.1"])


def test_a_root_in_use_is_not_removed_and_said(site, proxy, provision, report, monkeypatch):
    monkeypatch.setattr(
        "ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.provision.UNMOUNT_TIME", 0.2
    )
    provision()
    held = os.open(root_file(site, ""), os.O_RDONLY)
    try:
        with pytest.raises(HeteroError, match="Device or resource busy"):
            remove_one(proxy, report)
        assert site.exports() == {}
        assert root_file(site, "etc/hostname").exists()
    finally:
        os.close(held)
    remove_one(proxy, report)
    assert leftovers(proxy, proxy.board(0)) == []


def test_an_export_id_of_somebody_else_is_not_removed(site, proxy, report):
    site.set_exports({"1": {"path": "/srv", "pseudo": "/srv", "clients": []}})
    assert remove_one(proxy, report)[0] == []
    assert list(site.exports()) == [1]


def test_the_reboot_line_may_only_reboot(site, proxy, provision):
    """Lost: the limit of what the proxy may do on a tenant's board; or a tenant's own lines."""
    provision()
    path, state = root_file(site, "root/.ssh/authorized_keys"), site.state / "reboot-key"
    (line,) = [line for line in path.read_text().splitlines() if line.endswith(" hetero: reboot only")]
    public = (state / "id_ed25519.pub").read_text().split()[1]
    assert line == (
        'restrict,command="echo hetero: rebooting; exec /sbin/reboot" ssh-ed25519 ' + public + " hetero: reboot only"
    )
    assert (state / "id_ed25519").stat().st_mode & 0o777 == 0o600
    assert "PRIVATE" not in path.read_text()
    proxy.config = replace(proxy.config, soft_reboot=False)
    result, change = provision()
    assert (change.changed, result["restored"]) == (True, ["reboot line"])
    assert path.read_text() == f"{KEY}\n"
    assert not provision()[1].changed


# ---- Tilera boards


def test_a_kernel_in_flash_is_not_put_into_the_tftp_folder(site, proxy, provision):
    """A board wired anew would go on fetching the kernel of its folder, or its folder would grow with each board."""
    provision()
    proxy.config = replace(proxy.config, boards={"0": Wire(kernel_source="flash")})
    result, change = provision()
    assert (result["files"], result["restored"], change.changed) == ([], ["vmlinux_0", "initrd_0"], True)
    assert list((site.tftp / "10.0.2.1").iterdir()) == []
    assert not provision()[1].changed
    proxy.config = replace(proxy.config, boards={"0": Wire(kernel_source="tftp")})
    assert provision()[0]["restored"] == ["vmlinux_0", "initrd_0"]
    assert (site.tftp / "10.0.2.1" / "vmlinux_0").exists()


def test_what_its_kernel_said_goes_with_the_instance(site, proxy, provision, report):
    """The next tenant's operator would read of the one before."""
    provision()
    log = site.tftp / "log_0"
    write_console_log(proxy, proxy.board(0), "Linux version\n")
    assert f"file {log}" in leftovers(proxy, proxy.board(0))
    remove_one(proxy, report)
    assert not log.exists()
    assert leftovers(proxy, proxy.board(0)) == []


# ---- what somebody may have


@pytest.mark.parametrize("damage", ["", "{", "\0" * 64, None, "folder"])
def test_a_root_of_which_nobody_can_tell_is_kept(site, proxy, provision, damage):
    """Lost: a tenant's root, to one bad sector and a request that was run again."""
    provision()
    root_file(site, "data").write_text("the tenant's\n")
    made = site.state / "board-roots" / "fs_0" / "made.json"
    made.unlink()
    if damage == "folder":
        made.mkdir()
    elif damage is not None:
        made.write_text(damage)
    if damage != "folder":
        shown = root_file(site, "etc/ssh/ssh_host_ed25519_key.pub")
        shown.write_text(f"{' '.join(KEY.split()[:2])}\n")
    with pytest.raises(Refused, match=r"whom it was made for cannot be read.*rebuild or terminate"):
        provision()
    assert root_file(site, "data").read_text() == "the tenant's\n"
    remove(proxy, proxy.board(0), Change(), lambda *said: None)
    assert leftovers(proxy, proxy.board(0)) == []


def test_a_file_system_with_errors_is_checked_and_mounted_again(site, proxy, provision):
    """Lost: a board whose root takes no writes any more, while every verb says that all is well."""
    provision()
    root_file(site, "data").write_text("the tenant's\n")
    os.sync()
    break_file_system(site.state / "board-roots" / "fs_0" / "root.ext4")
    with pytest.raises(OSError, match=r"Read-only|Input/output"):
        root_file(site, "more").write_text("lost\n")
    assert "mount" in provision()[0]["restored"]
    root_file(site, "more").write_text("kept\n")
    assert root_file(site, "data").read_text() == "the tenant's\n"
    assert provision()[0]["restored"] == []
