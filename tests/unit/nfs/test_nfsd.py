# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's NFS server as export back end, on real mounts and by its own command. If these failed, a proxy that has
it would lose boards' roots at the next `exportfs -r`, or leave one exported for the next tenant.

Tests nfs/exporter.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.this_node import THIS_NODE
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot import pxe
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.driver import System
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.choice import image_of
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nfs import nfsd
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nfs.exporter import Export
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.restore import restore
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.provision import leftovers, prepare, remove


@pytest.fixture
def server(site, tmp_path, monkeypatch):
    """A proxy whose NFS server is its kernel's: fake_exportfs.py, started as `exportfs`."""
    config = json.loads((tmp_path / "proxy.json").read_text())
    (tmp_path / "proxy.json").write_text(json.dumps(dict(config, exports="nfsd")))
    script = Path(__file__).with_name("fake_exportfs.py")
    (tmp_path / "bin" / "exportfs").write_text(f'#!/bin/sh\nexec {sys.executable} -ES {script} "$@"\n')
    (tmp_path / "bin" / "exportfs").chmod(0o755)
    threads, files = tmp_path / "threads", tmp_path / "exports.d"
    threads.write_text("8\n")
    monkeypatch.setenv("FAKE_ETAB", str(tmp_path / "etab"))
    monkeypatch.setenv("FAKE_EXPORTS_D", str(files))
    monkeypatch.setattr(nfsd, "FILES", str(files))
    monkeypatch.setattr(nfsd, "THREADS", str(threads))
    path = str(site.state / "board-roots" / "fs_0" / "root")
    return SimpleNamespace(
        nfsd=nfsd.Nfsd(str(tmp_path / "exports")),
        etab=lambda: (tmp_path / "etab").read_text() if (tmp_path / "etab").exists() else "",
        set_etab=(tmp_path / "etab").write_text,
        file=files / "hetero-fs_0.exports",
        threads=threads,
        path=path,
        line=f"{path} 10.0.2.1 rw,sync,no_root_squash,no_subtree_check,sec=sys,fsid=1\n",
    )


@pytest.fixture
def provision(server, site, proxy, report):
    """Prepare board 0 for its claim, as often as called; (result, Change)."""

    def once():
        claim = proxy.store.record(0).claim or site.claim(proxy)
        change = Change()
        return prepare(proxy, proxy.board(0), claim, image_of(proxy, claim), change, report.call), change

    return once


def reload_all():
    subprocess.run(["exportfs", "-r"], check=True)


def test_a_board_gets_its_root_and_nobody_else_does(server, provision, proxy):
    result = provision()[0]
    assert (result["export"], result["pseudo"], result["client"]) == (1, server.path, "10.0.2.1")
    assert server.etab() == server.line
    assert not provision()[1].changed
    assert server.nfsd.show() == {1: Export(1, server.path, server.path, ("10.0.2.1",))}


def test_the_boot_entry_names_what_the_server_exports(server, provision, proxy):
    """The kernel's server has no names of its own: /tftpboot/fs_0 would be refused."""
    provision()
    claim = proxy.store.record(0).claim
    entry = "".join(pxe.Pxe(proxy).entry(proxy.board(0), System(image_of(proxy, claim))).values())
    assert f"nfsroot=10.0.2.254:{server.path},vers=3,tcp,nolock" in entry


def test_everybodys_exportfs_r_keeps_it(server, provision):
    provision()
    reload_all()
    assert server.etab() == server.line


def gone(server):
    server.set_etab("")


def wrong_client(server):
    server.set_etab(server.line.replace("10.0.2.1 ", "10.0.2.9 "))


def one_client_more(server):
    server.set_etab(server.line + server.line.replace("10.0.2.1 ", "* "))


def no_file(server):
    server.file.unlink()


@pytest.mark.parametrize("damage", [gone, wrong_client, one_client_more, no_file])
def test_what_is_missing_or_wrong_is_put_right(server, provision, damage):
    provision()
    damage(server)
    assert provision()[0]["restored"] == ["export"]
    assert server.etab() == server.line
    assert server.file.exists()
    assert not provision()[1].changed


def test_exports_of_the_operator_stay(server, provision, proxy, report):
    others = "/srv/iso * ro,sync,fsid=root\n/srv/home 10.0.0.0/8 rw,sync\n"
    server.set_etab(others)
    server.file.parent.mkdir()
    (server.file.parent / "iso.exports").write_text("/srv/iso *(ro,sync,fsid=root)\n")
    provision()
    remove(proxy, proxy.board(0), Change(), report.call)
    restore(proxy, print)
    assert server.etab() == others
    assert os.listdir(server.file.parent) == ["iso.exports"]


def test_an_id_of_somebody_else_is_not_taken(server, provision):
    server.set_etab("/srv/home * rw,sync,fsid=1\n")
    with pytest.raises(HeteroError, match="board0: export id 1 is taken by /srv/home"):
        provision()


def test_all_of_it_goes(server, provision, proxy, report):
    provision()
    assert any(text.startswith(f"export 1 {server.path} to 10.0.2.1") for text in leftovers(proxy, proxy.board(0)))
    remove(proxy, proxy.board(0), Change(), report.call)
    assert (server.etab(), os.listdir(server.file.parent)) == ("", [])
    assert leftovers(proxy, proxy.board(0)) == []


def test_after_a_restart_the_files_say_just_what_is_mounted(server, provision, proxy, site):
    """Without: an empty folder as root, or the root of a board that was given back while the server was down."""
    provision()
    site.clean()
    server.set_etab("")
    (server.file.parent / "hetero-fs_3.exports").write_text(f"{server.path} 10.0.2.4(rw,fsid=4)\n")
    assert [export.id for export in restore(proxy, print)] == [1]
    reload_all()
    assert server.etab() == server.line
    assert (site.state / "board-roots" / "fs_0" / "root" / "etc" / "hostname").read_text() == "jackie\n"
    site.clean()
    (site.state / "board-roots" / "fs_0" / "made.json").unlink()
    assert restore(proxy, print) == []
    reload_all()
    assert server.etab() == ""


@pytest.mark.parametrize("threads", ["0\n", None])
def test_a_server_that_does_not_run_is_said(server, provision, threads):
    """Its table outlives it: without this look a board would be called exported. Whose it is, is said."""
    provision()
    server.threads.unlink() if threads is None else server.threads.write_text(threads)
    text = rf"{THIS_NODE}: the kernel's NFS server does not run: look at: systemctl status nfs-server"
    with pytest.raises(HeteroError, match=text):
        provision()


def test_what_exportfs_says_is_in_the_error(server):
    with pytest.raises(HeteroError, match=r"Failed to stat /nowhere: No such file"):
        server.nfsd.add(Export(1, "/nowhere", "/nowhere", ("10.0.2.1",)))
    with pytest.raises(BadInput, match="choose another state_folder"):
        server.nfsd.add(Export(1, "/no where", "/no where", ("10.0.2.1",)))
