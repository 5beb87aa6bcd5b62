# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Private roots on real overlay mounts. If these failed, a tenant would share files or host keys with another, an
image could lead the proxy to its own files, or a root would stay mounted for ever.

Tests files/root_work.py, images/room.py, roots/machine_identity.py.
"""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import threading
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError, TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import mounts_below, unmount
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.root_work import inside, read_file
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.room import Room
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.store import ImageStore
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.machine_identity import (
    fingerprint,
    parse_key,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.roots import Root
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY, MEMBERS, OTHER_KEY, member, tar

CLAIM = "jackie 1700000000.5"
SIZE = 1 << 30


@pytest.fixture
def folder(tmp_path):
    yield tmp_path
    for point in reversed(mounts_below(str(tmp_path))):
        unmount(point)


def fresh(folder, image, number=0, claim=CLAIM, size=SIZE):
    """A fresh root, mounted."""
    made = Root(str(folder), number)
    made.create(image, claim, Room(str(folder)), size)
    return made


@pytest.fixture
def root(folder, image):
    return fresh(folder, image)


def in_root(root, name):
    with open(os.path.join(root.path, name)) as file:
        return file.read()


def hostile_image(folder, *members):
    """An image whose root has more members, or others."""
    names = [info.name for info, data in members]
    whole = [member(name, text) for name, text in MEMBERS.items() if name not in names]
    source = tar(folder / "hostile.tar", [*whole, *members])
    return ImageStore(str(folder / "images")).import_image(source, "hostile")


def link(name, target):
    return member(name, kind=b"2", linkname=target)


def test_a_root_is_an_overlay_that_can_be_exported(root, image):
    mount = root.mounts()[root.path]
    assert (mount.kind, mount.source, mount.lower) == ("overlay", "fs_0", image.root)
    assert {"index=on", "nfs_export=on"} <= set(mount.options)
    assert list(root.mounts()) == [root.path], "its layers are mounted nowhere"
    assert root.ready(image)
    assert (root.made().claim, root.made().image, root.made().whole) == (CLAIM, image.hash, False)
    root.mark_whole()
    assert root.made().whole


def test_what_a_tenant_writes_stays_its_own(root, image, folder):
    other = fresh(folder, image, 1, "bob 1")
    with open(os.path.join(root.path, "etc", "hostname"), "w") as file:
        file.write("mine\n")
    assert in_root(other, "etc/hostname") == "template\n"
    with open(os.path.join(image.root, "etc", "hostname")) as file:
        assert file.read() == "template\n"
    with pytest.raises(OSError, match="Read-only"):
        open(os.path.join(image.root, "etc", "hostname"), "w").close()
    assert stat.S_IMODE(os.stat(folder / "board-roots").st_mode) == 0o700


def test_nobody_on_the_proxy_can_open_a_tenants_device_node(root):
    """A tenant is root in its root and may make a node of the proxy's disk there."""
    node = os.path.join(root.path, "disk")
    os.mknod(node, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    with pytest.raises(PermissionError):
        open(node).close()


def test_a_fresh_root_becomes_a_machine_of_its_own(root):
    root.settle("jackie")
    root.put_key(KEY)
    root.put_host_key("jackie")
    assert in_root(root, "etc/hostname") == "jackie\n"
    assert in_root(root, "etc/machine-id") == ""
    names = sorted(os.listdir(os.path.join(root.path, "etc", "ssh")))
    assert names == ["ssh_host_ed25519_key", "ssh_host_ed25519_key.pub", "sshd_config"]
    found = root.inspect(KEY)
    public = "etc/ssh/ssh_host_ed25519_key.pub"
    host_key = in_root(root, public).rsplit(" ", 1)[0]
    assert found == {"key": True, "own": [], "host_key": host_key, "hostname": "jackie"}
    modes = {
        "root": 0o755,
        "root/.ssh": 0o700,
        "root/.ssh/authorized_keys": 0o600,
        "etc/ssh/ssh_host_ed25519_key": 0o600,
        public: 0o644,
    }
    for name, mode in modes.items():
        status = os.stat(os.path.join(root.path, name))
        assert (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid) == (mode, 0, 0), name
    # The private half belongs to the public one, and lies nowhere else.
    private = os.path.join(root.path, "etc/ssh/ssh_host_ed25519_key")
    said = subprocess.run(["ssh-keygen", "-y", "-f", private], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert said.split()[:2] == found["host_key"].split()
    assert sorted(os.listdir(root.folder)) == ["layers", "made.json", "root", "root.ext4"]


def test_two_roots_have_two_host_keys(root, image, folder):
    other = fresh(folder, image, 1, "bob 1")
    for one in (root, other):
        one.settle("x")
        one.put_host_key("x")
    assert root.inspect(KEY)["host_key"] != other.inspect(KEY)["host_key"]


OWN_LINE = f'restrict,command="echo; exec /sbin/reboot" {" ".join(OTHER_KEY.split()[:2])} hetero: reboot only'


def test_a_users_key_with_the_proxys_own_comment_stays(root):
    """Lost: the login of a user whose key's comment ends as the proxy's own line does."""
    key = f"{' '.join(KEY.split()[:2])} jackie hetero: reboot only"
    root.put_key(key)
    for line in (OWN_LINE, None):
        root.put_own_line(line)
        assert root.inspect(key)["key"]
        assert root.inspect(key)["own"] == ([line] if line else [])
    assert in_root(root, "root/.ssh/authorized_keys") == f"{key}\n"


def test_keys_that_are_not_read_whole_are_not_written_anew(root):
    """Lost: the keys of a tenant who has more than a mebibyte of them, cut off where reading ends."""
    root.put_key(KEY)
    path = os.path.join(root.path, "root/.ssh/authorized_keys")
    with open(path, "a") as file:
        file.write(f"# {'x' * 1000}\n" * 1100)
    before = os.path.getsize(path)
    for put, given in ((root.put_key, OTHER_KEY), (root.put_own_line, OWN_LINE)):
        with pytest.raises(HeteroError, match="1 MiB or more"):
            put(given)
        assert os.path.getsize(path) == before


def test_other_keys_are_kept_and_none_comes_twice(root):
    root.put_key(OTHER_KEY)
    root.put_key(KEY)
    root.put_key(f"{KEY}\n{OTHER_KEY}")
    assert in_root(root, "root/.ssh/authorized_keys") == f"{OTHER_KEY}\n{KEY}\n"
    assert root.inspect(KEY)["key"]
    with open(os.path.join(root.path, "root/.ssh/authorized_keys"), "w") as file:
        file.write(f"{OTHER_KEY}\n#{KEY}\n")
    assert not root.inspect(KEY)["key"]


def test_inspect_says_what_is_missing(root):
    assert root.inspect(KEY) == {"key": False, "own": [], "host_key": None, "hostname": "template"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty"),
        ("hello", "is no OpenSSH public key"),
        ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPUmyQLP\nssh-rsa !", "line 2 of it is no OpenSSH public key"),
        ('command="/bin/sh" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPUmyQLP', "is no OpenSSH public key"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0c2VjcmV0\n", "is a private key"),
    ],
)
def test_a_wrong_key_is_refused_and_never_shown(text, reason):
    with pytest.raises(BadInput, match=reason) as caught:
        parse_key(text)
    assert "c2VjcmV0" not in str(caught.value)


def test_blanks_around_keys_do_not_count():
    """Lost: a key that was pasted with the blanks and line ends around it."""
    assert parse_key(f"  {KEY} \n\n\t{OTHER_KEY}\r\n\n") == parse_key(f"{KEY}\n{OTHER_KEY}")


def test_a_fingerprint_is_the_one_ssh_keygen_prints(tmp_path):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "key")], check=True)
    said = subprocess.check_output(["ssh-keygen", "-l", "-f", str(tmp_path / "key.pub")], text=True)
    assert fingerprint((tmp_path / "key.pub").read_text()) == said.split()[1]


# ---- links and special files in an image


def test_links_in_an_image_do_not_lead_to_the_proxys_files(folder):
    """Each of these would make the proxy write its own files if they were followed from outside."""
    outside = folder / "outside"
    (outside / ".ssh").mkdir(parents=True)
    (outside / "hostname").write_text("the proxy's\n")
    (outside / ".ssh" / "authorized_keys").write_text("the proxy's\n")
    (outside / "ssh_host_rsa_key").write_text("the proxy's\n")
    image = hostile_image(
        folder,
        link("root/root", str(outside)),
        link("root/etc/hostname", str(outside / "hostname")),
        link("root/etc/machine-id", str(outside / "hostname")),
    )
    before = {path: path.read_text() for path in outside.rglob("*") if path.is_file()}
    root = fresh(folder, image)
    root.settle("jackie")
    with pytest.raises(HeteroError, match="/root"):
        root.put_key(KEY)
    assert {path: path.read_text() for path in outside.rglob("*") if path.is_file()} == before
    assert in_root(root, "etc/hostname") == "jackie\n"


def test_links_inside_the_root_work(folder):
    """An image may keep root's home elsewhere: links are followed as the board follows them."""
    image = hostile_image(folder, link("root/root", "/home/admin"), member("root/home"), member("root/home/admin"))
    root = fresh(folder, image)
    root.put_key(KEY)
    assert in_root(root, "home/admin/.ssh/authorized_keys") == f"{KEY}\n"
    assert root.inspect(KEY)["key"]


def zeros(path):
    os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5))


@pytest.mark.parametrize("make", [os.mkfifo, zeros, "socket"])
def test_a_tenants_pipe_or_device_does_not_hang_the_proxy(root, make):
    path = os.path.join(root.path, "etc/hostname")
    os.unlink(path)
    with socket.socket(socket.AF_UNIX) as plug:
        if make == "socket":
            # The name of a socket has at most 107 letters.
            here = os.open(os.path.dirname(path), os.O_RDONLY)
            plug.bind(f"/proc/self/fd/{here}/hostname")
            os.close(here)
        else:
            make(path)
        start = time.monotonic()
        assert root.inspect(KEY)["hostname"] == ""
        assert time.monotonic() - start < 60


@pytest.mark.parametrize("target", ["a" * 300, "authorized_keys"], ids=["too long", "itself"])
def test_a_link_to_no_name_is_replaced(root, target):
    """Lost: a stop, a start and a look at a container or board, to a link in the place of its keys."""
    root.put_key(KEY)
    keys = os.path.join(root.path, "root/.ssh/authorized_keys")
    os.unlink(keys)
    os.symlink(target, keys)
    assert not root.inspect(KEY)["key"]
    root.put_key(KEY)
    assert root.inspect(KEY)["key"]


#: As a module: the locale is its user's, and no error was said yet whose words the C library would look for.
READS = """
import locale, sys
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots import machine_identity as personal
personal.FILES_TIME = 20.0
locale.setlocale(locale.LC_ALL, "")
print(locale.setlocale(locale.LC_MESSAGES), personal.host_key(sys.argv[1]))
"""


def test_no_words_of_a_root_are_read_by_the_c_library(tmp_path):
    """Lost: the proxy, or the host of a container: words in another character set have the C library load a program
    from there, as root, to convert them."""
    for name in ("C.UTF-8", "C.utf8", "C"):
        folder = tmp_path / "usr/share/locale" / name / "LC_MESSAGES"
        folder.mkdir(parents=True)
        os.mkfifo(folder / "libc.mo")  # who opens it hangs
    env = dict(os.environ, LC_ALL="C.UTF-8", PYTHONPATH=os.pathsep.join(sys.path))
    said = subprocess.run([sys.executable, "-c", READS, tmp_path], env=env, capture_output=True, text=True, check=False)
    assert (said.stdout, said.stderr) == ("C.UTF-8 None\n", "")


def test_a_huge_file_is_not_read_whole(root):
    os.makedirs(os.path.join(root.path, "root/.ssh"))
    with open(os.path.join(root.path, "root/.ssh/authorized_keys"), "w") as file:
        file.truncate(1 << 40)
    assert not root.inspect(KEY)["key"]


def test_work_inside_has_a_deadline_and_an_end(root):
    start = time.monotonic()
    with pytest.raises(TimedOut, match=r"work inside it took longer than 0\.3 s"):
        inside(root.path, lambda: time.sleep(300), Deadline(0.3))
    assert time.monotonic() - start < 60
    with pytest.raises(HeteroError, match="ended without an answer"):
        inside(root.path, lambda: os._exit(3), Deadline(60))
    with pytest.raises(HeteroError, match="/nowhere: No such file"):
        inside(root.path, lambda: os.listdir("/nowhere"), Deadline(60))
    assert inside(root.path, lambda: read_file("/etc/hostname"), Deadline(60)) == "template\n"


# ---- going away


def test_after_a_restart_the_same_root_is_mounted_again(root, image):
    root.settle("jackie")
    root.put_key(KEY)
    root.unmount(Deadline(60))
    assert not root.ready(image)
    assert root.exists()
    root.mount(image)
    assert root.ready(image)
    assert root.inspect(KEY)["key"]


def test_unmounting_waits_for_a_server_that_lets_go_late(root):
    """nfs-ganesha closes an export's files some milliseconds after RemoveExport."""
    held = os.open(root.path, os.O_RDONLY)
    timer = threading.Timer(0.3, os.close, (held,))
    timer.start()
    start = time.monotonic()
    root.unmount(Deadline(60))
    assert 0.2 < time.monotonic() - start < 50
    assert root.mounts() == {}
    timer.join()


def test_a_root_in_use_is_said_and_not_removed(root):
    held = os.open(root.path, os.O_RDONLY)
    try:
        with pytest.raises(HeteroError, match=r"tried for 0\.\d s \(Device or resource busy\).*fuser -vm"):
            root.unmount(Deadline(0.2))
        with pytest.raises(HeteroError, match="is still mounted"):
            root.remove()
        assert in_root(root, "etc/hostname") == "template\n"
    finally:
        os.close(held)


def test_what_is_mounted_in_a_root_goes_first(root, image):
    """Somebody who looked into a root by chroot left /proc in it; its removal must not reach that."""
    point = os.path.join(root.path, "etc")
    if subprocess.run(["mount", "-t", "tmpfs", "left", point], check=False).returncode:
        pytest.skip("no tmpfs can be mounted here")
    assert len(root.mounts()) == 2
    root.unmount(Deadline(60))
    root.remove()
    root.remove()
    assert not root.exists()
    assert os.path.exists(os.path.join(image.root, "etc", "hostname"))


def test_another_roots_number_is_not_ours(root, image, folder):
    """fs_1 is not in fs_10."""
    ten = fresh(folder, image, 10, "ten 1")
    one = Root(str(folder), 1)
    assert one.mounts() == {}
    one.unmount(Deadline(60))
    assert ten.ready(image)


def test_a_state_folder_that_mount_options_cannot_hold_is_refused(tmp_path):
    with pytest.raises(BadInput, match="comma, colon"):
        Root(str(tmp_path / "a,b"), 0)
