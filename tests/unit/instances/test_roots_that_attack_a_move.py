# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers in whose root a tenant has put what may break a copy, or the host to which it goes. If these fail, a root
arrives as another one, or a tenant changes a file of the new host.

Tests compute_host/moved_roots.py, hypervisors/lxc/id_maps.py, files/sparse_copy.py.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import struct
import tempfile
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import disks, id_maps, liblxc
from ansible_collections.hetero.compute.tests.unit.instances.conftest import Site
from ansible_collections.hetero.compute.tests.unit.instances.test_container_moves_cut_off import SMALL, Containers

FIRST, ONE = 3000000, id_maps.COUNT
BARE = dict(SMALL, name="small", memory_mb=64, extra_specs={"hypervisor": "s== LXC"})
#: Linux's numbers: the tags of an access control list's entries, and CAP_NET_RAW.
OWNER, USER, GROUP_OF_IT, GROUP, MASK, OTHERS, NO_ID, NET_RAW = 1, 2, 4, 8, 0x10, 0x20, 0xFFFFFFFF, 13


def second(site, folder, **more):
    folder.mkdir()
    other = Site(folder, site.machine, site.image)
    other.settings.update(name="gpu2", addresses=["10.0.81.12", "10.0.81.13"], **more)
    other.config.write_text(json.dumps(other.settings))
    return other


@pytest.fixture(params=["privileged", "same ids", "other ids"])
def ml(request, site, tmp_path, monkeypatch):
    """ml-8 runs on gpu1; (it, the first of its ids there)."""
    top = Path(tempfile.mkdtemp(prefix="hetero-test-", dir="/var/tmp"))
    top.chmod(0o711)  # LXC wants to see an unprivileged container's root walk there
    more = {} if request.param == "privileged" else dict(unprivileged=True)
    if more:
        files = [str(tmp_path / name) for name in ("subuid", "subgid")]
        for path in files:
            Path(path).write_text(f"root:{FIRST}:{4 * ONE}\n")
        monkeypatch.setattr(id_maps, "FILES", files)
    site.lxcpath = top / "one"
    site.settings.update(addresses=["10.0.81.10", "10.0.81.11"], lxcpath=str(site.lxcpath), **more)
    site.config.write_text(json.dumps(site.settings))
    other = second(site, tmp_path / "second", lxcpath=str(top / "two"), **more)
    other.lxcpath = top / "two"
    with other.host():
        pass
    if request.param == "other ids":
        other.claim("first", flavor=BARE)  # has the ids that ml-8 has on gpu1
    made = Containers(site, other)
    made.flavor = BARE
    made.provide()
    yield made, FIRST if more else 0
    for one in (site, other):
        one.end()
        for name in liblxc.containers(str(one.lxcpath)):
            disks.unmount(one.container(name), one.here.disks)
    shutil.rmtree(top)


def filled(root, first, victim):
    """What its tenant leaves: all that a file can be and have."""
    odd = os.fsencode(root) + b"/odd"
    os.mkdir(odd)
    for name in (b"new\nline", b"-rf *", b"not \xff utf-8", b"\x1b[2J", b"a" * 255, b".removed-1", b"config"):
        with open(odd + b"/" + name, "wb") as file:
            file.write(name)
    os.link(odd + b"/config", odd + b"/second-name")
    for name, to in ((b"shadow", "/etc/shadow"), (b"loop", "loop"), (b"up", "../../../../../.."), (b"host", victim)):
        os.symlink(os.fsencode(to), odd + b"/" + name)
    os.mkfifo(odd + b"/fifo")
    os.mknod(odd + b"/null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.mknod(odd + b"/disk", stat.S_IFBLK | 0o666, os.makedev(7, 0))
    with socket.socket(socket.AF_UNIX) as one:
        here = os.getcwd()
        os.chdir(odd)
        one.bind("socket")
        os.chdir(here)
    with open(odd + b"/bomb", "wb") as file:
        file.truncate(10 << 40)  # 10 TB that are a hole
        file.seek(5 << 40)
        file.write(b"x")
    for name in ("unfinished", "root.ext4", "made.json", "hetero.d", "disk.uuid"):
        Path(root, name).write_text("forged")
        os.chown(Path(root, name), first, first)
    os.chown(odd, first, first)
    for path, names, files in os.walk(odd):
        for name in names + files:
            os.chown(path + b"/" + name, first + 1000, first + 1000, follow_symlinks=False)
    os.chmod(odd + b"/config", 0o6755)
    ping = odd + b"/-rf *"
    os.setxattr(ping, "user.note", b"\0\xff")
    capability = struct.pack("<IIII", 0x02000001, 1 << NET_RAW, 0, 0) + bytes(4)
    if first:
        capability = struct.pack("<IIIIII", 0x03000001, 1 << NET_RAW, 0, 0, 0, first)
    os.setxattr(ping, "security.capability", capability)
    entries = [(OWNER, 6, NO_ID), (USER, 4, first + 33), (GROUP_OF_IT, 4, NO_ID), (GROUP, 4, first + 44)]
    entries += [(MASK, 4, NO_ID), (OTHERS, 0, NO_ID)]
    access = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *one) for one in entries)
    os.setxattr(odd + b"/new\nline", "system.posix_acl_access", access)
    os.setxattr(odd, "system.posix_acl_default", access)


def seen(root, first):
    """{path: all that can be seen of it}, with the ids as those inside."""
    found = {}
    for path, names, files in os.walk(os.fsencode(root)):
        for name in [b"."] + names + files:
            one = os.path.join(path, name)
            had = os.lstat(one)
            what = [had.st_mode, had.st_uid - first, had.st_gid - first, had.st_nlink, had.st_rdev]
            what += [had.st_size, had.st_mtime_ns, had.st_blocks if stat.S_ISREG(had.st_mode) else 0]
            if stat.S_ISLNK(had.st_mode):
                what.append(os.readlink(one))
            else:
                what += [(key, attribute(os.getxattr(one, key), key, first)) for key in sorted(os.listxattr(one))]
            if stat.S_ISREG(had.st_mode) and had.st_size < 1 << 20:
                what.append(Path(os.fsdecode(one)).read_bytes())
            found[os.path.relpath(one, os.fsencode(root))] = what
    return found


def attribute(value, key, first):
    """An attribute of a file, with the ids as those inside."""
    if key == "security.capability":
        return value[:20] + (struct.pack("<I", struct.unpack("<I", value[20:24])[0] - first) if first else b"")
    if key.startswith("system.posix_acl"):
        entries = struct.iter_unpack("<HHI", value[4:])
        return [(tag, may, number if number == NO_ID else number - first) for tag, may, number in entries]
    return value


@pytest.mark.dear
def test_a_root_arrives_as_it_left_whatever_its_tenant_put_there(ml, tmp_path):
    """Lost: files of a tenant, or who may read them; a file of the new host, through a link of a tenant's."""
    made, first = ml
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "authorized_keys").write_text("the host's own\n")
    root = made.work("gpu1").parent
    filled(str(root), first, str(victim))
    shutil.rmtree(root / ".ssh")
    inside = root.parent / str(victim)[1:]  # where the link leads in its own root
    inside.mkdir(parents=True, mode=0o700)
    (root / ".ssh").symlink_to(victim)
    for path in (root / ".ssh", inside):
        os.chown(path, first, first, follow_symlinks=False)
    before = seen(str(root), first)
    made.migrate()
    with made.at(made.sites["gpu2"]) as host:
        arrived = host.store.claim_of("ml-8").first_id or 0
    moved = made.work("gpu2").parent
    assert (moved.parent / str(victim)[1:] / "authorized_keys").exists()
    after = seen(str(moved), arrived)
    for name in (b".", b"work"):
        before.pop(name, None), after.pop(name, None)
    assert {name: (before.get(name), after.get(name)) for name in before if before[name] != after.get(name)} == {}
    assert (victim / "authorized_keys").read_text() == "the host's own\n"
    assert os.listdir(victim) == ["authorized_keys"]
