# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each verb on a proxy with a file system that is full: of its state, of its run folder, of the boards' files, of /tmp.
If these fail, tenants who filled a disk keep their boards for ever, an error sends an operator to the wrong place, or
what was begun stays half done.

Tests core/reserve.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from contextlib import suppress

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import tenants_boards
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups, reserve
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images import room
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images import store as images
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY
from ansible_collections.hetero.compute.tests.unit.sweep.killing import run_alone
from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import FLAVOR
from ansible_collections.hetero.compute.tests.unit.verbs.conftest import played
from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import lose

#: Of which each has a file system of its own here.
FOLDERS = ("state", "run", "tftpboot", "tmp")
#: The played boards' own file, which is no part of a proxy.
BOARDS = "run/fake-boots"


def mount(folder):
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m,mode=755", "tmpfs", str(folder)], check=True)


class Full:
    """A played proxy, on file systems that fill up at a word."""

    def __init__(self, site):
        self.site = site

    def fill(self, name, mode="wb"):
        """To the last byte, but for what is kept for such a day."""
        with open(self.site.folder / name / "filler", mode, buffering=0) as file, suppress(OSError):
            while file.write(bytes(4096)):
                pass

    def free(self, name):
        os.unlink(self.site.folder / name / "filler")

    def there(self):
        """What is there, without these tests' own."""
        there = self.site.what_is_there()
        own = {str(self.site.folder / name) for name in (*FOLDERS, BOARDS)}
        tftp = {name: files for name, files in there["tftp"].items() if name != "filler"}
        return dict(there, mounts=[point for point in there["mounts"] if point not in own], tftp=tftp)

    def verb(self, name):
        """The last result of a verb; its words where it raises."""
        site, own = self.site, dict(boards=[0], instance="jackie", timeout=5)
        modules = {
            "stop": ("tilera_boot", dict(own, state="stopped", keep=True)),
            "start": ("tilera_boot", own),
            "extend": ("board_lease", dict(instance="jackie", hours=3)),
            "reconcile": ("board_reconcile", dict(timeout=5)),
            "info": ("board_info", {}),
        }
        if name == "backup":
            return run_alone(site.points, lambda: dict(path=backups.make(site.params["state_db"])))
        if name in modules:
            module, given = modules[name]
            return site.module(module, **given)
        result = getattr(site, name)()[-1]
        assert not result.get("broken"), result["msg"]
        return result


@pytest.fixture
def full(tmp_path, monkeypatch):
    tmp_path.chmod(0o755)
    for name in (*FOLDERS, BOARDS):
        mount(tmp_path / name)
    monkeypatch.setattr(images, "KEEP_FREE", 0)
    monkeypatch.setattr(room, "SPARE", 0)
    site = played(tmp_path, monkeypatch, 2)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    config = json.loads((tmp_path / "proxy.json").read_text())
    (tmp_path / "proxy.json").write_text(json.dumps(dict(config, roots_overcommit=10**6)))
    assert not any(result.get("failed") for result in site.provision())
    yield Full(site)
    site.tear_down()


@pytest.mark.parametrize("name", FOLDERS)
def test_what_is_full_is_read_and_given_back(full, name):
    """Lost: all boards of a proxy whose disk its tenants filled: nobody could even be told who has them."""
    site = full.site
    full.fill(name)
    shown = full.verb("info")
    assert [board["instance"] for board in shown["boards"]] == ["jackie", None]
    for verb in ("reconcile", "extend", "stop", "start", "reboot"):
        result = full.verb(verb)
        assert not result.get("failed"), (verb, result)
    assert full.there() == site.running("jackie")
    assert not full.verb("terminate").get("failed")
    assert full.there() == site.clean()


def test_what_is_full_for_one_board_is_no_fault_of_another(full, monkeypatch):
    """Lost: what reconcile mends of all boards, and which of them it could not, to the first that needs space."""
    site = full.site
    assert not any(result.get("failed") for result in site.provision("bob"))
    put_back = tenants_boards.put_back

    def full_for_one(proxy, board, claim, change):
        if board.id == 0:
            with open("/dev/full", "w") as file:
                file.write("x")
        return put_back(proxy, board, claim, change)

    monkeypatch.setattr(tenants_boards, "put_back", full_for_one)
    (site.tftp / "10.0.2.2" / "vmlinux_1").unlink()
    result = full.verb("reconcile")
    assert not result.get("failed"), result
    (first, second) = (board["found"] for board in result["boards"])
    assert [found["found"] for found in first] == [
        "board0: cannot be written (No space left on device): free space on its file system, then run this again"
    ]
    assert [(found["found"], found["done"]) for found in second] == [("missing: vmlinux_1", "put back")]


def full_at(monkeypatch, full, name):
    """The file system of the state is full, to the last byte, from a call of the store on."""
    call = getattr(Store, name)

    def without_room(*args, **given):
        full.fill("state")
        (full.site.state / "state.reserve").unlink(missing_ok=True)
        full.fill("state", "ab")
        return call(*args, **given)

    monkeypatch.setattr(Store, name, without_room)


@pytest.mark.parametrize("name", ["adopt", "move"])
def test_what_a_full_disk_kept_from_the_database_is_not_told_as_done(full, monkeypatch, name):
    """Lost: an instance that was told as adopted, and that no database has; or a state that nobody ever recorded."""
    site = full.site
    if name == "adopt":
        lose(site)
    else:
        site.cut(0)
    with monkeypatch.context() as patched:
        full_at(patched, full, name)
        result = full.verb("reconcile")
    (found,) = result["boards"][0]["found"]
    failed = {
        "adopt": f"could not be adopted for jackie: {site.params['state_db']}: cannot grow, its disk is full (SQLite: ",
        "move": f"{site.state}/claims/board0.json: cannot be written (No space left on device): ",
    }
    assert found["found"].startswith(failed[name]), found
    assert "free space on" in found["found"]
    assert (found["done"], result["changed"], result["diff"], result["lines"]) == (None, False, [], [])
    full.free("state")
    found = full.verb("reconcile")["boards"][0]["found"][0]
    assert found["done"].startswith("adopted" if name == "adopt" else "recorded as power off")


def test_a_lease_ends_on_a_full_disk(full):
    full.site.expire()
    full.fill("state")
    assert (
        full.verb("reap")["said"][-1] == "board0: jackie of jackie: its lease is over since 2 min; off, cleaned, free"
    )
    assert full.there() == full.site.clean()


def test_who_goes_on_filling_does_not_get_all_that_is_kept(full):
    """Lost: each verb that would free the disk, by one look at it, after which its filler took what that had freed."""
    site = full.site
    full.fill("state")
    for verb in (*["info"] * 5, "stop", "extend", "info", "terminate"):
        result = full.verb(verb)
        assert not result.get("failed"), (verb, result)
        full.fill("state", "ab")
    assert full.there() == site.clean()
    full.free("state")
    assert not any(result.get("failed") for result in site.provision())
    kept = site.state / "state.reserve"
    assert kept.stat().st_blocks * 512 == reserve.SIZE, "it is whole again"


def test_a_full_disk_takes_no_more(full):
    """Lost: what is kept for ending instances, to those who ask for more of them; a good database, by its own copy."""
    site = full.site
    site.wire(1, disk="sda")
    request = dict(instance="bob", owner="bob", flavor=FLAVOR, image="debian", ssh_public_key=KEY)
    full.fill("state")
    for _turn in range(3):
        asked = site.module("board_claim", boot_source="disk", **request)
        assert "board1: the file system of the proxy's database is full: free space on it, or term" in asked["msg"], (
            asked
        )
        copied = full.verb("backup")
        assert f"{site.state}: its file system is full" in copied["msg"]
        assert "aside" not in copied["msg"]
    assert full.there() == site.running("jackie")
    full.free("state")
    site.wire(1, disk=None)
    assert not any(result.get("failed") for result in site.provision("bob"))
    assert full.verb("backup")["path"]
    full.fill("state")
    for name in ("bob", "jackie"):
        assert not any(result.get("failed") for result in site.terminate(name))
    assert full.there() == site.clean()


@pytest.mark.parametrize("name", ["run", "tftpboot", "tmp"])
def test_what_is_begun_on_a_full_disk_goes_on_when_there_is_space(full, name):
    site = full.site
    assert not full.verb("terminate").get("failed")
    full.fill(name)
    first = site.provision()[-1]
    if name == "tftpboot":
        assert f"{site.tftp}/10.0.2.1/.vmlinux_0.new: cannot be written (No space left on device): free" in first["msg"]
    full.free(name)
    assert not any(result.get("failed") for result in site.provision())
    assert full.there() == site.running("jackie")
