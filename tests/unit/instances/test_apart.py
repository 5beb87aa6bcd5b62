# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps containers apart: ids and a disk of each one's own, also where an earlier release had made them without.
If these fail, root of one container is root of another, or a host that was upgraded loses what was in its containers.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
import time
from functools import partial
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle, reconciliation
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.host import Host, Places
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, NoneFree
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.file_system import mount_file
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import unmount
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import (
    disks,
    id_maps,
    liblxc,
    new_container,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.compute_host import reap
from ansible_collections.hetero.compute.tests.unit.images.devices import break_file_system
from ansible_collections.hetero.compute.tests.unit.instances.older import as_before

FIRST, ONE = 3000000, id_maps.COUNT
SMALL = {"name": "small", "memory_mb": 64, "vcpus": 1, "local_gb": 1, "extra_specs": {"hypervisor": "s== LXC"}}


@pytest.fixture(autouse=True)
def subordinate(tmp_path, monkeypatch):
    """Root has ids for two containers."""
    files = (str(tmp_path / "subuid"), str(tmp_path / "subgid"))
    for path in files:
        Path(path).write_text(f"root:{FIRST}:{2 * ONE + 5}\n")
    monkeypatch.setattr(id_maps, "FILES", files)


def unprivileged(site):
    site.settings.update(unprivileged=True, lxcpath=str(site.lxcpath))
    site.config.write_text(json.dumps(site.settings))
    return site


@pytest.fixture
def apart(site):
    """A host of unprivileged containers, whose root LXC wants to see walk to the folder of all (not in pytest's)."""
    top = Path(tempfile.mkdtemp(prefix="hetero-test-", dir="/var/tmp"))
    top.chmod(0o711)
    site.lxcpath = top / "lxc"
    yield unprivileged(site)
    site.end()
    for name in liblxc.containers(str(site.lxcpath)):
        disks.unmount(site.container(name), site.here.disks)
    shutil.rmtree(top)


def database(site):
    return Path(site.database)


def columns(path):
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        schema = db.execute("PRAGMA user_version").fetchone()[0]
        return [row[1] for row in db.execute("PRAGMA table_info(instances)")], schema


def firsts(site):
    with site.host(create=False) as host:
        return {claim.instance: claim.first_id for claim in host.store.claims()}


def test_each_claim_has_ids_of_its_own_until_it_is_over(claims):
    """Lost: who is root in one container owns the files of another."""
    unprivileged(claims)
    claims.claim("a", flavor=SMALL)
    claims.claim("b", flavor=SMALL)
    assert firsts(claims) == {"a": FIRST, "b": FIRST + ONE}
    claims.claim("a", flavor=SMALL)
    assert firsts(claims)["a"] == FIRST, "what it has it keeps"
    with pytest.raises(NoneFree, match=r"no 65536 ids are left that root has .*subgid: terminate something, or"):
        claims.claim("c", flavor=SMALL)
    claims.do(lifecycle.absent, "a")
    # a container of somebody's own, and none of a claim that a restored database lacks
    (claims.lxcpath / "own").mkdir(parents=True)
    (claims.lxcpath / "own" / "config").write_text(f"lxc.idmap = u 0 {FIRST + 10} 20\n")
    with pytest.raises(NoneFree):
        claims.claim("c", flavor=SMALL)
    (claims.lxcpath / "own" / "config").unlink()
    claims.claim("c", flavor=SMALL)
    assert firsts(claims) == {"b": FIRST + ONE, "c": FIRST}


def test_the_database_itself_keeps_ranges_apart(claims):
    """Lost: whatever else goes wrong, two containers share their users' ids."""
    unprivileged(claims)
    claims.claim("a", flavor=SMALL)
    claims.claim("b", flavor=SMALL)
    with Store(str(database(claims))) as store, pytest.raises(HeteroError, match="UNIQUE"):
        store.put("b", first_id=FIRST)


def test_a_container_with_ids_and_disk_of_its_own(apart):
    """Lost: a container that is kept apart and does not run."""
    site = apart
    site.claim(flavor=SMALL)
    made = site.up()
    assert made["instances"][0]["state"] == "running", made["msg"]
    pid = site.container().init_pid
    assert Path(f"/proc/{pid}/uid_map").read_text().split() == ["0", str(FIRST), str(ONE)]
    assert os.stat(f"/proc/{pid}/root/etc").st_uid == FIRST
    seen = os.statvfs(f"/proc/{pid}/root")
    assert seen.f_blocks * seen.f_frsize <= 1 << 30
    assert not seen.f_flag & (os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC)
    assert oct(os.stat(site.container().folder).st_mode & 0o777) == "0o700"
    assert site.up()["changed"] is False
    site.do(lifecycle.absent)
    assert site.nothing_is_left()
    assert os.listdir(site.here.disks) == []


def test_after_a_power_cut_one_that_is_made_is_whole(apart, tmp_path, monkeypatch):
    """Lost: what a container's files hold and whose they are, while it is called made and is never made anew."""
    cut, point = tmp_path / "cut.ext4", tmp_path / "point"
    point.mkdir()
    real = new_container.write_whole

    def cut_off(path, *rest):
        # as it lies there now, holes left out
        subprocess.run(["cp", disks.file_of(apart.container()), cut], check=True)
        real(path, *rest)

    monkeypatch.setattr(new_container, "write_whole", cut_off)
    apart.claim(flavor=SMALL)
    apart.up()
    mount_file(str(cut), str(point))
    try:
        for path in (path for path in (apart.image / "root").rglob("*") if path.is_file() and not path.is_symlink()):
            there = point / path.relative_to(apart.image / "root")
            assert there.stat().st_uid == FIRST, there
            assert there.read_bytes() == path.read_bytes(), there
    finally:
        unmount(str(point))


def test_a_disk_that_somebody_unmounted_is_there_again(site):
    """Lost: a container that does not start after a restart of its host, until somebody knows why."""
    site.claim(flavor=SMALL)
    site.up()
    site.do(lifecycle.stopped)
    disks.unmount(site.container(), site.here.disks)
    with pytest.raises(HeteroError):
        site.container().start()
    again = site.up(check=True)
    assert again["lines"][0]["text"] == "would be put back: disk"
    assert not disks.is_mounted(site.container(), site.here.disks)
    assert site.up()["instances"][0]["state"] == "running"


def test_a_disk_with_errors_is_said_while_it_runs_and_checked_at_the_next_start(site):
    """Lost: a user's work, to a root that takes no writes while every verb says that all is well."""
    site.claim(flavor=SMALL)
    site.up()
    box = site.container()
    Path(disks.root_of(box), "kept").write_text("data")
    os.sync()
    break_file_system(disks.file_of(box))
    said = site.up()["lines"]
    reboot = "ansible-playbook hetero.compute.reboot_instance -e instance=ml-8"
    assert [line["text"] for line in said] == [
        f"its file system has errors and takes no writes: {reboot} has it checked",
        "already running, ssh answers with its own host key",
    ]
    with site.host() as host:
        (look,) = reconciliation.reconcile(host, Change(False), 10.0)["instances"]
    assert "its file system has errors" in look["found"][0]["found"]
    would = site.do(lifecycle.rebooted, check=True)
    assert (disks.has_errors(box), "failed" in would) == (True, False)
    again = site.do(lifecycle.rebooted)
    assert "put back: disk, whose file system had errors (e2fsck)" in [line["text"] for line in again["lines"]]
    assert again["instances"][0]["state"] == "running"
    assert (disks.has_errors(box), Path(disks.root_of(box), "kept").read_text()) == (False, "data")
    site.do(lifecycle.absent)


def test_a_container_whose_disk_is_gone_is_left_as_it_is(site):
    """Lost: the only hint at where its files were, to a container that starts with an empty root."""
    site.claim(flavor=SMALL)
    site.up()
    site.do(lifecycle.stopped)
    box = site.container()
    disks.unmount(box, site.here.disks)
    os.rename(disks.file_of(box), f"{box.folder}/away")
    config = Path(box.config_file).read_text()
    said = site.up()
    assert said["failed"], said
    assert f"{disks.file_of(box)}: is missing, and with it the container's root: put the file back" in said["msg"]
    assert (Path(box.config_file).read_text(), os.listdir(disks.root_of(box))) == (config, [])
    os.rename(f"{box.folder}/away", disks.file_of(box))
    assert site.up()["instances"][0]["state"] == "running"
    site.do(lifecycle.absent)


def test_an_older_database_is_read_as_it_is_and_upgraded_once_with_a_copy(claims):
    """Lost: who has what, to an upgrade; or a look at a host changes it."""
    unprivileged(claims)
    claims.claim("a", flavor=SMALL)
    path = database(claims)
    as_before(path)
    old = columns(path)
    assert (old[1], "first_id" in old[0]) == (1, False)
    assert firsts(claims) == {"a": None}
    claims.claim("z", flavor=SMALL, check=True)
    assert (columns(path), backups.copies(str(path))) == (old, []), "a look changes nothing"
    claims.claim("b", flavor=SMALL)
    assert columns(path)[1] == Store.layout.schema
    assert firsts(claims) == {"a": None, "b": FIRST}
    (copy,) = backups.copies(str(path))
    assert columns(copy) == old


def test_a_copy_of_an_older_database_refuses_what_would_be_lost(claims):
    """Lost: what is reported done, with the copy in memory that it was written to."""
    claims.claim("a", flavor=SMALL)
    path = str(database(claims))
    as_before(path)
    with Store(path, create=False) as store:
        with pytest.raises(HeteroError, match=r"host\.db: is of an older release .* have a verb"):
            store.release("a")
        assert store.claim_of("a").instance == "a"
        with store.transaction(dry=True):
            store.release("a")
        assert store.release("nobody") is None
    assert firsts(claims) == {"a": None}
    assert [one["instance"] for one in claims.info()["instances"]] == ["a"]
    assert (columns(path)[1], backups.copies(path)) == (1, [])
    with Store(path, create=False, write=True) as store:
        assert store.release("a").instance == "a"
    assert (columns(path)[1], len(backups.copies(path)), firsts(claims)) == (Store.layout.schema, 1, {})


def test_a_lease_in_an_older_database_ends_for_good(claims, monkeypatch, capfd):
    """Lost: a container is ended, its claim is there still, and so its memory and GPUs are nobody's to have."""
    monkeypatch.setattr(reap, "Host", partial(Host, places=Places(claims.machine.paths, claims.here)))
    for name in ("a", "b"):
        claims.claim(name, flavor=SMALL, lease_hours=1)
    path = str(database(claims))
    with Store(path) as store:
        store.put("a", expires=time.time() - 120)
    as_before(path)
    assert reap.main(["--config", str(claims.config)]) == 0
    assert "a of jo: its lease is over since 2 min; ended" in capfd.readouterr().out
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        assert db.execute("SELECT instance FROM instances").fetchall() == [("b",)]
    (copy,) = backups.copies(path)
    assert columns(copy)[1] == 1


def test_a_container_of_an_earlier_release_runs_on_until_it_is_rebuilt(apart):
    """Lost: what is in a container when its host is upgraded."""
    site = apart
    site.claim(flavor=SMALL)
    site.up()
    site.do(lifecycle.stopped)
    box = site.container()
    # as it was: a plain folder, ids of the first range that all shared, nothing in the database
    plain = f"{box.folder}/plain"
    subprocess.run(["cp", "-a", f"{box.folder}/rootfs", plain], check=True)
    disks.unmount(box, site.here.disks)
    os.unlink(disks.file_of(box))
    shutil.rmtree(f"{box.folder}/rootfs")
    os.rename(plain, f"{box.folder}/rootfs")
    os.chmod(box.folder, 0o711)
    config = Path(box.config_file)
    plain_root = f"lxc.rootfs.path = dir:{box.folder}/rootfs"
    config.write_text(re.sub(r"(?m)^lxc.rootfs.path = lvm:.*", plain_root, config.read_text()))
    as_before(database(site))
    first = site.up()
    assert first["instances"][0]["state"] == "running", first
    assert site.up()["changed"] is False
    config = Path(box.config_file).read_text()
    assert f"lxc.rootfs.path = dir:{box.folder}/rootfs" in config
    assert f"lxc.idmap = u 0 {FIRST} {ONE}" in config
    site.claim("other", flavor=SMALL)
    assert firsts(site) == {"ml-8": None, "other": FIRST + ONE}, "its ids are its own still"
    disks.restore(str(site.lxcpath), site.here.disks)
    assert oct(os.stat(box.folder).st_mode & 0o777) == "0o710"
    site.do(lifecycle.absent, "other")
    done = site.do(lifecycle.rebuilt, fresh=True)
    assert done["instances"][0]["state"] == "running", done
    assert firsts(site) == {"ml-8": FIRST}
    assert disks.is_mounted(box, site.here.disks)
