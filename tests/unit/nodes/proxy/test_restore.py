# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`hetero restore` on real mounts. If these failed, boards would find their root stale, empty or another's after a
restart of their proxy.

Tests nfs/ganesha.py.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.proxy import Proxy
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.locks import lock
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.file_system import mount_file
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import mount_overlay, mounts_below
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.choice import image_of
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nfs.exporter import Export
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nfs.ganesha import Ganesha
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import restore as restore_module
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.restore import restore
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots import roots
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.provision import prepare
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.roots import Root
from ansible_collections.hetero.compute.plugins.modules import node_tools
from ansible_collections.hetero.compute.plugins.plugin_utils.node_copy import packed

AT_FDCWD = -100


@pytest.fixture
def provisioned(site, proxy, report):
    """Boards 0 and 1 with all they boot from."""
    for board, name in ((0, "jackie"), (1, "bob")):
        claim = site.claim(proxy, name, board)
        prepare(proxy, proxy.board(board), claim, image_of(proxy, claim), Change(), report.call)
    return proxy


def restart(site):
    """The proxy was restarted: mounts, exports and locks are gone, files are there."""
    site.set_exports({})
    site.clean()
    shutil.rmtree(site.folder / "run", ignore_errors=True)


def root(site, board):
    return site.state / "board-roots" / f"fs_{board}" / "root"


def start_text(site):
    """What the server is given to start with."""
    return (site.folder / "run" / "exports.conf").read_text()


def wanted_text(site, *boards):
    """The exports as they were made when the boards were provisioned."""
    return "".join((site.state / "exports" / f"fs_{board}.conf").read_text() for board in boards)


def restored(proxy):
    """(ids of what is to be exported, what was said)."""
    said = []
    return [export.id for export in restore(proxy, said.append)], said


class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint), ("type", ctypes.c_int), ("data", ctypes.c_ubyte * 128)]


def file_handle(path):
    """What a file server names a file by: name_to_handle_at(2)."""
    libc = ctypes.CDLL(None, use_errno=True)
    handle, mount = Handle(bytes=128), ctypes.c_int()
    done = libc.name_to_handle_at(AT_FDCWD, os.fsencode(path), ctypes.byref(handle), ctypes.byref(mount), 0)
    assert done == 0, os.strerror(ctypes.get_errno())
    return handle


def read_by_handle(point, handle):
    libc = ctypes.CDLL(None, use_errno=True)
    folder = os.open(point, os.O_RDONLY | os.O_DIRECTORY)
    try:
        file = libc.open_by_handle_at(folder, ctypes.byref(handle), os.O_RDONLY)
        assert file >= 0, os.strerror(ctypes.get_errno())
    finally:
        os.close(folder)
    with open(file, encoding="utf-8") as opened:
        return opened.read()


def test_after_a_restart_all_is_there_before_the_server_starts(site, provisioned):
    (root(site, 0) / "work").write_text("of jackie\n")
    restart(site)
    ids, said = restored(provisioned)
    assert ids == [1, 2], said
    assert said == ["board0 of jackie: root mounted", "board1 of bob: root mounted"]
    assert (root(site, 0) / "work").read_text() == "of jackie\n"
    assert (root(site, 1) / "etc" / "hostname").read_text() == "bob\n"
    assert start_text(site) == wanted_text(site, 0, 1)
    assert site.exports() == {}, "the server is not asked: it does not run yet"


def test_the_server_alone_was_restarted(site, provisioned):
    before = mounts_below(str(site.state))
    assert restored(provisioned) == ([1, 2], [])
    assert mounts_below(str(site.state)) == before
    assert start_text(site) == wanted_text(site, 0, 1)


def test_what_older_exports_allow_ends_with_the_servers_start(site, provisioned):
    """Lost: everybody's files, to a tenant who opens its own by NFSv4 until the server has no descriptor left; or the
    word that nothing changes, where each later request puts an older file right."""
    files = [site.state / "exports" / f"fs_{board}.conf" for board in (0, 1)]
    wanted = wanted_text(site, 0, 1)
    assert wanted.count("Protocols = 3;") == 2
    for file in files:
        file.write_text(file.read_text().replace("Protocols = 3;", "Protocols = 3, 4;"))
    assert restored(provisioned) == ([1, 2], [])
    assert start_text(site) == wanted
    assert wanted_text(site, 0, 1) == wanted


def test_what_a_board_has_open_it_finds_again(site, provisioned):
    """A board knows a file by file system id and handle: either one changed, and it reads "stale file handle"."""
    changed, untouched = root(site, 0) / "etc" / "hostname", root(site, 0) / "bin" / "sh"
    untouched = untouched if untouched.is_file() else next(path for path in root(site, 0).rglob("*") if path.is_file())
    known = [(os.statvfs(path).f_fsid, file_handle(path), path.read_text()) for path in (changed, untouched)]
    ids = {os.statvfs(root(site, board)).f_fsid for board in (0, 1)}
    assert len(ids) == 2
    restart(site)
    # other mounts come first after a start: what is numbered in their order changes
    with_other_number = site.folder / "other"
    with_other_number.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", str(with_other_number)], check=True)
    restored(provisioned)
    for fsid, handle, text in known:
        assert os.statvfs(root(site, 0)).f_fsid == fsid
        assert read_by_handle(root(site, 0), handle) == text


def unfinished(site, proxy):
    made = site.state / "board-roots" / "fs_0" / "made.json"
    made.write_text(made.read_text().replace('"whole": true', '"whole": false'))


def never_provisioned(site, proxy):
    shutil.rmtree(site.state / "board-roots" / "fs_0")


def released(site, proxy):
    """Its claim ended by a word, which touches nothing of the board."""
    proxy.store.release(0, proxy.store.record(0).claim)


def of_another_claim(site, proxy):
    proxy.store.release(0, proxy.store.record(0).claim)
    site.claim(proxy, "jackie", 0)


def without_its_image(site, proxy):
    other = Root(str(site.state), 0).made().image[::-1]
    made = site.state / "board-roots" / "fs_0" / "made.json"
    made.write_text(made.read_text().replace(other[::-1], other))


def of_wrong_types(site, proxy):
    made = site.state / "board-roots" / "fs_0" / "made.json"
    made.write_text('{"claim": "jackie 1.0", "image": null, "whole": true}')


def nested_deep(site, proxy):
    (site.state / "board-roots" / "fs_0" / "made.json").write_text("[" * 100000)


def not_a_board_any_more(site, proxy):
    del proxy.boards[0]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (unfinished, None),
        (of_wrong_types, "board0 of jackie is not exported: board0: its root is there, and what made.json says"),
        (nested_deep, "board0 of jackie is not exported: board0: its root is there, and what made.json says"),
        (never_provisioned, None),
        (released, "board0 is not exported: board0: its root is that of jackie, and neither the database nor a record"),
        (of_another_claim, "board0 of jackie is not exported: board0: its root was made for another claim of jackie"),
        (without_its_image, "no such image in the store"),
        (not_a_board_any_more, "board0 of jackie is not exported: board 0: no such board"),
    ],
)
def test_one_that_cannot_be_is_said_and_costs_no_other(site, provisioned, damage, words):
    restart(site)
    damage(site, provisioned)
    ids, said = restored(provisioned)
    assert ids == [2], said
    assert start_text(site) == wanted_text(site, 1)
    assert str(root(site, 0)) not in mounts_below(str(site.state))
    assert len(said) == (2 if words else 1)
    assert (words or "") in said[0]


def test_a_root_is_not_mounted_under_a_verb_that_works_on_it(site, provisioned):
    restart(site)
    with lock(str(site.folder / "run"), "board0", "image", "somebody", Deadline(1)):
        ids, said = restored(provisioned)
    assert ids == [2], said
    assert "still held by image (somebody" in said[0]


# ---- a database that is lost, older, or cannot be read


BY_RECORD = (
    "exported by the record of its claim, of which the database does not tell: ansible-playbook "
    "hetero.compute.reconcile adopts it"
)


def begun_anew(site, proxy):
    """As reconcile leaves it that was cut off: there, and empty."""
    for path in site.state.glob("state.db*"):
        path.unlink()
    return Proxy(site.params, lost=True)


def older(site, proxy):
    """Of before jackie and bob, when eve had board 0."""
    began = begun_anew(site, proxy)
    folder = site.state / "claims"
    folder.rename(site.state / "kept")
    site.claim(began, "eve", 0)
    began.store._db.write("UPDATE claims SET created = 1.0")
    shutil.rmtree(folder)
    (site.state / "kept").rename(folder)
    return began


@pytest.mark.parametrize("damage", [begun_anew, older])
def test_roots_that_only_their_records_and_they_themselves_tell_of(site, provisioned, damage):
    """Lost: the roots of all that run, at the next boot after the database was lost, until an operator guesses why."""
    restart(site)
    records = [path.read_text() for path in sorted((site.state / "claims").iterdir())]
    with damage(site, provisioned) as proxy:
        claims = proxy.store.claims()
        ids, said = restored(proxy)
        assert ids == [1, 2], said
        assert proxy.store.claims() == claims, "nothing is adopted by it"
    assert said == [
        text
        for name in ("board0 of jackie", "board1 of bob")
        for text in (f"{name}: root mounted", f"{name}: {BY_RECORD}")
    ]
    assert start_text(site) == wanted_text(site, 0, 1)
    assert "Clients = 10.0.2.1;" in start_text(site).split("EXPORT {")[1], "to her own board's address only"
    assert (root(site, 1) / "etc" / "hostname").read_text() == "bob\n"
    assert [path.read_text() for path in sorted((site.state / "claims").iterdir())] == records


def newer_claim(site, proxy):
    site.claim(proxy, "eve", 0)


def record_lost(site, proxy):
    (site.state / "claims" / "board0.json").unlink()


def record_damaged(site, proxy):
    (site.state / "claims" / "board0.json").write_text("{")


def record_of_board_1(site, proxy):
    shutil.copy(site.state / "claims" / "board1.json", site.state / "claims" / "board0.json")


def record_of_eve(site, proxy):
    path = site.state / "claims" / "board0.json"
    path.write_text(path.read_text().replace('"jackie"', '"eve"'))


def record_of_another_image(site, proxy):
    path = site.state / "claims" / "board0.json"
    path.write_text(path.read_text().replace(Root(str(site.state), 0).made().image, "0" * 64))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (newer_claim, "board0 of eve is not exported: board0: its root is that of jackie, not of eve"),
        (record_lost, "its root is that of jackie, and neither the database nor a record has a claim of the board"),
        (record_damaged, "board0.json: what it says of a claim cannot be read"),
        (record_of_board_1, "board0.json: that is a record of board1, not of board0"),
        (record_of_eve, "board0.json is the record of another claim (eve's)"),
        (record_of_another_image, "its root is of another image than the record of jackie's claim names"),
        (of_wrong_types, "its root is there, and what made.json says of whom it was made for cannot be read"),
        (not_a_board_any_more, "board0 of jackie is not exported: board 0: no such board"),
        (unfinished, None),
        (never_provisioned, None),
    ],
)
def test_what_record_and_root_do_not_agree_on_is_said_and_costs_no_other(site, provisioned, damage, words):
    """Lost: another's files, to a board that is given them by a record alone; or the others' roots, for one's fault."""
    restart(site)
    with begun_anew(site, provisioned) as proxy:
        damage(site, proxy)
        ids, said = restored(proxy)
    assert ids == [2], said
    assert start_text(site) == wanted_text(site, 1)
    assert str(root(site, 0)) not in mounts_below(str(site.state))
    assert said[-2:] == ["board1 of bob: root mounted", f"board1 of bob: {BY_RECORD}"]
    assert len(said) == (3 if words else 2), said
    assert (words or "") in said[0]
    if words and damage is not not_a_board_any_more:
        assert "ansible-playbook hetero.compute.reconcile" in said[0]


def gone(site):
    for path in site.state.glob("state.db*"):
        path.unlink()


def rubbish(site):
    gone(site)
    (site.state / "state.db").write_bytes(b"rubbish" * 1000)


def damaged_row(site):
    with Proxy(site.params) as proxy:
        proxy.store._db.write("UPDATE claims SET flavor = '['")


DAMAGES = pytest.mark.parametrize(
    ("damage", "said"), [(gone, "is not there, and instances were"), (rubbish, "SQLite"), (damaged_row, "is damaged")]
)


@DAMAGES
def test_without_its_database_it_goes_by_the_records(site, provisioned, capfd, damage, said):
    """Lost: the roots of all that run, for as long as nobody puts a copy of the database back."""
    provisioned.store.close()
    restart(site)
    shutil.copy(site.params["boards_file"], site.tftp / "tilera_boards")
    damage(site)
    before = {path.name: path.read_bytes() for path in site.state.glob("state.db*")}
    assert restore_module.main(["--config", site.params["config"]]) == 0
    out, err = capfd.readouterr()
    assert out == "to be exported: /tftpboot/fs_0, /tftpboot/fs_1\n"
    first, *others = err.splitlines()
    assert said in first
    assert first.endswith("; until then roots are exported by the records of their claims")
    assert f"board1 of bob: {BY_RECORD}" in others
    assert start_text(site) == wanted_text(site, 0, 1)
    assert {path.name: path.read_bytes() for path in site.state.glob("state.db*")} == before


@DAMAGES
def test_without_its_claims_the_server_does_not_start(site, provisioned, damage, said):
    """Lost: boards that would have waited for the server, to one that begins with no export."""
    restored(provisioned)
    before = start_text(site)
    provisioned.store.close()
    shutil.copy(site.params["boards_file"], site.tftp / "tilera_boards")
    damage(site)
    shutil.rmtree(site.state / "claims")
    with pytest.raises(HeteroError, match=said):
        restore_module.main(["--config", site.params["config"]])
    assert start_text(site) == before


def test_roots_can_be_told_apart_also_where_an_overlay_has_no_id_of_its_own(site, proxy, report, monkeypatch):
    """Before Linux 6.6 (here: option uuid=null) an overlay shows the id of its upper's file system, and nfs-ganesha
    takes all mounts that show one id for one: it exports the first board's root and refuses the second's."""

    def as_before(source, point, options):
        return mount_overlay(source, point, f"{options},uuid=null")

    monkeypatch.setattr(roots, "mount_overlay", as_before)
    for board, name in ((0, "jackie"), (1, "bob")):
        claim = site.claim(proxy, name, board)
        prepare(proxy, proxy.board(board), claim, image_of(proxy, claim), Change(), report.call)
    shown = [os.statvfs(point).f_fsid for point in mounts_below(str(site.state))]
    assert len(shown) == 3, "the image and two roots; what is below a root is mounted nowhere"
    assert len(set(shown)) == 3


def test_a_mount_that_was_killed_half_way_is_made_anew(site, provisioned):
    """Lost: a board's root, until somebody unmounts by hand what a killed verb left."""
    restart(site)
    made = Root(str(site.state), 0)
    mount_file(made.file, made.layers)
    assert restored(provisioned)[0] == [1, 2]
    assert made.layers not in made.mounts()


def test_the_installed_command_does_it_without_ansible(site, provisioned):
    """As systemd starts it: from the installed files, with nothing of the user's environment."""
    restart(site)
    shutil.copy(site.params["boards_file"], site.tftp / "tilera_boards")
    folder, command, archive = site.folder / "lib", site.folder / "hetero", site.folder / "code.tar"
    archive.write_bytes(packed())
    arguments = {"folder": str(folder), "commands": {str(command): "hetero"}, "archive": str(archive)}
    command.write_text("#!/bin/sh\n# a site's own\n")
    kept = [f"{command}.by-hand"]
    dry = node_tools.work(arguments, check=True)
    assert (dry["changed"], dry["by_hand"]) == (True, kept)
    assert not folder.exists()
    done = node_tools.work(arguments, check=False)
    assert (str(command) in done["paths"], done["by_hand"]) == (True, kept)
    assert "a site's own" in (site.folder / "hetero.by-hand").read_text()
    assert not node_tools.work(arguments, check=False)["changed"]

    def hetero(*words):
        argv = [sys.executable, "-I", command, *words]
        return subprocess.run(argv, check=False, cwd="/", env={}, capture_output=True, text=True, timeout=600)

    done = hetero("restore", "--config", site.params["config"])
    assert (done.returncode, done.stdout) == (0, "to be exported: /tftpboot/fs_0, /tftpboot/fs_1\n"), done.stderr
    assert start_text(site) == wanted_text(site, 0, 1)
    missing = hetero("restore", "--config", "/nowhere/proxy.json")
    assert missing.returncode == 1
    assert missing.stderr.startswith("hetero: /nowhere/proxy.json: cannot be read")
    assert "known: " in hetero("restart").stderr
    with pytest.raises(BadInput, match="no such command"):
        node_tools.work(dict(arguments, commands={"/nowhere": "het"}), check=True)


def test_an_export_that_would_come_back_otherwise_is_not_restorable(tmp_path):
    """After a restart a board's root would be given to the address that had it before."""
    server = Ganesha(str(tmp_path))
    one, other = (Export(1, "/a/fs_0/root", "/tftpboot/fs_0", (client,)) for client in ("10.0.2.1", "10.0.2.2"))
    assert not server.restorable(one)
    (tmp_path / "fs_0.conf").write_text(server.text_of(other))
    assert not server.restorable(one)
    assert server.restorable(other)
