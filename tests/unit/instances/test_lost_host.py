# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's database that is gone. If these fail, the GPUs, names and addresses of containers that run look free, and
the next who asks gets them.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import sqlite3
import subprocess
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host import config
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle, reconciliation
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.host import Host, Places
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, NoneFree
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.gpus import discovery
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import persistence
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus.site import Site
from ansible_collections.hetero.compute.plugins.module_utils._hetero.instances.kinds import compute_host
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.compute_host import backup, gpu_restore, reap
from ansible_collections.hetero.compute.plugins.modules import host_info, host_reconcile
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY
from ansible_collections.hetero.compute.tests.unit.instances.conftest import ADDRESSES, CG1, IMAGE
from ansible_collections.hetero.compute.tests.unit.instances.older import MODULES

OWN = ADDRESSES[:2]
LOST = "is not there, and instances were made on node "
UNFINISHED = "was lost, and not all that containers and guests have is written down in it again"
BOX = dict(kind="container")
VERBS = [
    (
        "instance",
        dict(
            kind="container", flavor=CG1, owner="eve", ssh_public_key=KEY, image=IMAGE, instance="ml-9", state="present"
        ),
    ),
    *(("instance", dict(BOX, instance="ml-8", state=state)) for state in ("running", "stopped", "rebuilt", "absent")),
    ("instance", dict(BOX, instance="ml-8", state="extended", lease_hours=2.0)),
    ("host_info", {}),
    ("lxc_gpu_attach", dict(container="ml-8", state="detached")),
    ("lxc_gpu_attach", dict(container="ml-8", count=1)),
]


@pytest.fixture
def here(site, monkeypatch):
    """The host, where modules look for one; ml-8 runs there with two GPUs."""
    mine, find = partial(Host, places=Places(site.machine.paths, site.here)), discovery.find
    for module in (compute_host, host_info, host_reconcile, reap):
        monkeypatch.setattr(module, "Host", mine)
    monkeypatch.setattr(discovery, "find", lambda overrides=None, paths=None: find(overrides, site.machine.paths))
    begin = Site.__init__
    first, last = begin.__defaults__[:2], begin.__defaults__[4:]
    monkeypatch.setattr(begin, "__defaults__", (*first, site.machine.paths, site.here, *last))
    site.claim()
    site.up()
    return site


def allocations(site):
    with Store(site.database, create=False) as store:
        return store.allocations()


def not_set_up(monkeypatch, site, lxcpath):
    """As on a host that no role set up, whose defaults are this site's folders."""
    folders = {name: site.settings[name] for name in ("state_folder", "run_folder")}
    monkeypatch.setattr(config, "DEFAULTS", config.HostConfig(**folders, lxc=config.Section(lxcpath=lxcpath)))


def lose(site):
    for path in Path(site.database).parent.glob("host.db*"):
        path.unlink()


def go_the_printed_way(error):
    command = re.search(r"run on node \S+: (.+?) and then", str(error))[1]
    subprocess.run(["sh", "-ec", command], check=True)


def nobody_gets_anything(site, match=".*"):
    """Every verb refuses, those that only look too, and nothing is written down or copied."""
    for name, given in [*VERBS, ("gpu_reconcile", dict(repair=True))]:
        with pytest.raises(HeteroError, match=UNFINISHED) as error:
            module(site, name, **given)
        assert re.search(match, str(error.value))
        assert "hetero.compute.reconcile" in str(error.value)
    with pytest.raises(HeteroError, match=UNFINISHED):
        backup.main(["--config", str(site.config)])


def module(site, name, check=False, **given):
    found = importlib.import_module(MODULES + name)
    params = {option: spec.get("default") for option, spec in found.SPEC.options.items()}
    return found.work(dict(params, **given, config=str(site.config)), check)


def test_nothing_goes_on_without_it_and_the_printed_way_brings_it_back(here):
    """Lost: what ml-8 has, to the next who asks; and the word that anything is wrong."""
    path = here.database
    copy = backups.make(path)
    lose(here)
    for check in (True, False):
        for name, given in [*VERBS, ("host_reconcile", {}), ("gpu_reconcile", dict(repair=True))]:
            with pytest.raises(HeteroError, match=LOST) as error:
                module(here, name, check, **given)
            assert f"container {here.lxcpath / 'ml-8'}" in str(error.value), name
            assert f"cp -p {copy} {path} and then" in str(error.value), name
    for main in (backup.main, reap.main):
        with pytest.raises(HeteroError, match=LOST):
            main(["--config", str(here.config)])
    assert not Path(path).exists(), "an empty one would hide the loss"
    assert here.can_open() == OWN
    go_the_printed_way(error.value)
    assert UNFINISHED in module(here, "host_reconcile")["warnings"][0]
    assert [one["instance"] for one in module(here, "host_info")["instances"]] == ["ml-8"]
    assert "warnings" not in module(here, "host_reconcile")


def test_a_copy_that_is_older_gives_nobody_what_containers_have_since(here):
    """Lost: GPUs that were given since the copy: to the next who asks, or, of one that runs, to a repair."""
    path = here.database
    here.do(lifecycle.absent)
    backups.make(path)
    here.claim()
    here.up()
    module(here, "lxc_gpu_attach", container="ml-8", gpus=[ADDRESSES[2]], persistent=False)
    had = here.can_open()
    assert had == ADDRESSES[:3]
    lose(here)
    with pytest.raises(HeteroError, match=LOST) as error:
        module(here, "host_reconcile")
    go_the_printed_way(error.value)
    with pytest.raises(HeteroError, match=UNFINISHED):
        here.claim("ml-9", owner="eve")
    with pytest.raises(HeteroError, match=UNFINISHED):
        module(here, "gpu_reconcile", repair=True)
    assert UNFINISHED in module(here, "host_reconcile", check=True)["warnings"][0]
    module(here, "host_reconcile")
    assert module(here, "gpu_reconcile", repair=True)["findings"] == []
    assert here.can_open() == had
    assert [gpu["holder"] for gpu in here.info()["gpus"]] == ["ml-8", "ml-8", "ml-8", None]


@pytest.mark.parametrize("size", [1000, 0])
def test_a_copy_that_is_damaged_is_not_put_in_its_place(here, size):
    """Lost: an operator's evening: the same copy, put in place again and again, never brings the host back."""
    path = here.database
    whole = backups.make(path)
    with here.host() as host:
        host.store.event(None, "test", "so that the next copy differs")
    newest = backups.make(path)
    lose(here)
    os.truncate(newest, size)
    with pytest.raises(HeteroError, match=LOST) as error:
        module(here, "host_reconcile")
    assert f"cp -p {whole} {path} and then" in str(error.value)
    os.truncate(whole, size)
    with pytest.raises(HeteroError, match="none of its copies is whole") as error:
        module(here, "host_reconcile")
    go_the_printed_way(error.value)
    assert LOST in module(here, "host_reconcile")["warnings"][0]
    assert [gpu["holder"] for gpu in here.info()["gpus"]] == ["ml-8", "ml-8", None, None]
    assert len(list((Path(path).parent / "backups" / "aside").iterdir())) == 2, "no copy is deleted"


@pytest.mark.parametrize("runs", [True, False])
def test_without_a_copy_nobody_gets_what_a_container_has(here, runs):
    """Lost: GPUs under a running container, or of one that is down: closed by a repair, given to the next."""
    if not runs:
        here.do(lifecycle.stopped)
    lose(here)
    dry = module(here, "host_reconcile", check=True)
    assert LOST in dry["warnings"][0]
    assert not Path(here.database).exists()
    said = module(here, "host_reconcile")
    assert LOST in said["warnings"][0]
    assert said["changed"]
    (other,) = said["others"]
    assert "/ml-8 (by the record of its claim " in other
    assert "lxc-destroy" not in other, "it is somebody's"
    mended = module(here, "gpu_reconcile", repair=True)
    assert (mended["changed"], mended["findings"]) == (False, [])
    if runs:
        assert here.can_open() == OWN
    assert [gpu["holder"] for gpu in here.info()["gpus"]] == ["ml-8", "ml-8", None, None]
    with pytest.raises(NoneFree, match=r"no claim of it is in the database of .*by the record of its claim"):
        here.claim()
    (other,) = here.claim("ml-9", owner="eve")["instances"]
    assert other["ip"] == "10.0.81.11", "the first address is that of who runs there"
    assert [gpu["holder"] for gpu in here.info()["gpus"]] == ["ml-8", "ml-8", "ml-9", "ml-9"]
    with pytest.raises(NoneFree, match="allocated to ml-8"):
        here.claim("ml-7", owner="eve")
    assert "warnings" not in module(here, "host_reconcile")


def test_a_restart_of_the_host_starts_its_containers_and_says_so(here, capfd):
    """Lost: the GPUs of each container at the next boot; or the word that the database is gone, by an empty one."""
    lose(here)
    box = here.container()
    box.stop()
    before = persistence.read(box)
    assert gpu_restore.main(["--config", str(here.config)]) == 1
    said = capfd.readouterr()
    assert "ml-8: GPUs ready" in said.out
    assert LOST in said.err
    assert not Path(here.database).exists()
    assert persistence.read(box) == before
    box.start()
    assert here.can_open() == OWN


def killed(*_given, **_more):
    """A signal may be ignored where the tests run."""
    raise KeyboardInterrupt


def test_an_end_in_between_leaves_it_lost(here, monkeypatch):
    """Lost: all that reconcile was about to write down when it was killed: the tables were there, and empty."""
    here.do(lifecycle.stopped)
    lose(here)
    with monkeypatch.context() as patch:
        patch.setattr(reconciliation, "begin_anew", killed)
        with pytest.raises(KeyboardInterrupt):
            module(here, "host_reconcile")
    assert Path(here.database).stat().st_size, "the tables are there"
    nobody_gets_anything(here)
    assert UNFINISHED in module(here, "host_reconcile", check=True)["warnings"][0]
    nobody_gets_anything(here)
    assert UNFINISHED in module(here, "host_reconcile")["warnings"][0]
    assert [gpu["holder"] for gpu in here.info()["gpus"]] == ["ml-8", "ml-8", None, None]
    assert "warnings" not in module(here, "host_reconcile")


def test_what_is_odd_about_one_container_stops_no_other_and_is_not_forgotten(here):
    """Lost: the GPUs of all containers for the damaged file of one; or those of that one."""
    here.do(lifecycle.stopped)
    odd = here.lxcpath / "aa"
    (odd / "hetero.d").mkdir(parents=True)
    (odd / "config").write_text(f"lxc.uts.name = aa\n# hetero.compute: id {'a' * 32} of folder {odd.stat().st_ino}\n")
    file = odd / "hetero.d" / "devices.conf"
    file.write_text("{")
    lose(here)
    for _time in range(2):
        said = module(here, "host_reconcile")["warnings"]
        assert any(str(file) in text for text in said[1:])
        nobody_gets_anything(here, match=f"{file}: was not written by this version")
    assert [row.holder.partition("#")[0] for row in allocations(here)] == [str(here.lxcpath / "ml-8")] * 2
    file.unlink()
    assert len(module(here, "host_reconcile")["warnings"]) == 1
    assert [gpu["holder"] for gpu in here.info()["gpus"]] == ["ml-8", "ml-8", None, None]


def test_a_host_that_shows_no_gpu_is_not_done(here, monkeypatch):
    """Lost: who has which GPU, by a reconcile before the driver was loaded."""
    here.do(lifecycle.stopped)
    lose(here)
    found = Host.found
    with monkeypatch.context() as patch:
        patch.setattr(Host, "found", property(lambda self: replace(found.fget(self), gpus=[])))
        assert "this host shows no GPU" in module(here, "host_reconcile")["warnings"][1]
    nobody_gets_anything(here, match="load the driver")
    module(here, "host_reconcile")
    assert [gpu["holder"] for gpu in here.info()["gpus"]] == ["ml-8", "ml-8", None, None]


def test_containers_count_on_a_host_that_offers_guests_only_now(here):
    """Lost: the GPUs of containers from before a host was given another role."""
    here.do(lifecycle.stopped)
    lose(here)
    here.config.write_text(json.dumps(dict(here.settings, kvm={})))
    module(here, "host_reconcile")
    assert [row.address for row in allocations(here)] == OWN


def test_a_running_container_of_another_folder_counts(here):
    """Lost: the GPUs of a container in a folder that a caller named, or that was the host's before: it runs, and the
    next who asks gets them.
    """
    lose(here)
    here.config.write_text(json.dumps(dict(here.settings, lxcpath=str(here.folder / "other"))))
    for check in (True, False):
        for name, given in VERBS:
            with pytest.raises(HeteroError, match=LOST) as error:
                module(here, name, check, **given)
            assert f"container {here.lxcpath / 'ml-8'}" in str(error.value), name
    said = module(here, "host_reconcile")
    assert LOST in said["warnings"][0]
    assert [row.address for row in allocations(here)] == OWN
    assert module(here, "gpu_reconcile", repair=True)["findings"] == []
    assert here.can_open() == OWN
    assert [gpu["holder"] for gpu in here.info()["gpus"]] == ["ml-8", "ml-8", None, None]
    assert "warnings" not in module(here, "host_reconcile")


def test_who_names_a_folder_hears_of_those_there(here, monkeypatch):
    """Lost: the GPUs of a container that is down, in the folder that the caller names; or of those in the host's."""
    here.do(lifecycle.stopped)
    lose(here)
    not_set_up(monkeypatch, here, str(here.folder / "other"))
    here.config.rename(f"{here.config}.away")
    named = dict(lxcpath=str(here.lxcpath))
    with pytest.raises(HeteroError, match=LOST):
        module(here, "lxc_gpu_attach", container="ml-7", count=3, **named)
    assert LOST in module(here, "gpu_reconcile", repair=True, check=True, **named)["warnings"][0]
    not_set_up(monkeypatch, here, str(here.lxcpath))
    named = dict(lxcpath=str(here.folder / "other"))
    assert LOST in module(here, "gpu_reconcile", repair=True, **named)["warnings"][0]
    assert [row.address for row in allocations(here)] == OWN


def test_a_file_without_tables_is_no_database(here):
    """Lost: the word that it is gone, by a file that a process left which was killed while it made one."""
    here.do(lifecycle.stopped)
    lose(here)
    with closing(sqlite3.connect(here.database)) as db:
        db.execute("PRAGMA journal_mode = WAL")
    assert os.path.getsize(here.database) == 4096
    with pytest.raises(HeteroError, match=LOST):
        here.claim("ml-9", owner="eve")
    module(here, "host_reconcile")
    assert [gpu["holder"] for gpu in here.info()["gpus"]] == ["ml-8", "ml-8", None, None]


def test_a_repair_alone_begins_nothing_where_guests_may_be(here):
    """Lost: the cards of guests, which gpu_reconcile knows nothing of."""
    lose(here)
    with pytest.raises(HeteroError, match=LOST) as error:
        module(here, "gpu_reconcile", repair=True)
    assert "hetero.compute.reconcile makes it anew" in str(error.value)
    assert not Path(here.database).exists()
    assert LOST in module(here, "gpu_reconcile", repair=True, check=True)["warnings"][0]


def test_a_repair_begins_anew_on_a_host_that_no_role_has_set_up(here, monkeypatch):
    """Lost: the GPUs of containers that got them by lxc_gpu_attach alone: no other module begins anew there."""
    lose(here)
    not_set_up(monkeypatch, here, str(here.lxcpath))
    here.config.rename(f"{here.config}.away")
    with pytest.raises(HeteroError, match=LOST):
        module(here, "lxc_gpu_attach", container="ml-8", count=3)
    mended = module(here, "gpu_reconcile", repair=True)
    assert (LOST in mended["warnings"][0], mended["findings"]) == (True, [])
    assert here.can_open() == OWN
    assert [row.address for row in allocations(here)] == OWN
    assert "warnings" not in module(here, "gpu_reconcile", repair=True)


@pytest.mark.parametrize("way", ["plain", "by a link"])
def test_naming_the_hosts_own_database_does_not_go_past_it(here, way):
    """Lost: a container's file, and its GPUs, by an option that says what holds anyway."""
    here.do(lifecycle.stopped)
    lose(here)
    before = persistence.read(here.container())
    path = here.database
    if way == "by a link":
        (here.folder / "link").symlink_to(here.settings["state_folder"])
        path = str(here.folder / "link" / "host.db")
    for name, given in (("lxc_gpu_attach", dict(container="ml-8", count=1)), ("gpu_reconcile", dict(repair=True))):
        with pytest.raises(HeteroError, match=LOST):
            module(here, name, **given, state_db=path, lxcpath=str(here.lxcpath))
    assert not os.path.exists(path)
    assert persistence.read(here.container()) == before


def test_a_new_host_has_no_database_to_miss(site):
    """Lost: the first request on a host that was just set up, or where everything was given back."""
    with site.host() as host:
        assert host.store.claims() == []
    lose(site)
    site.claim(flavor=dict(CG1, memory_mb=64))
    site.do(lifecycle.absent)
    lose(site)
    assert site.claim(flavor=dict(CG1, memory_mb=64))["new"] == ["ml-8"]
