# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's copy of the collection. If these fail, a call or a timer runs from a copy that is half of one release, or
what somebody else keeps beside it is gone.

Tests nodes/call.py, plugin_utils/node_copy.py.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import (
    BadInput,
    HeteroError,
    TimedOut,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes import own_copy
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.call import BEGUN
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.tools import CALL, name_of
from ansible_collections.hetero.compute.plugins.modules import node_tools
from ansible_collections.hetero.compute.plugins.plugin_utils.node_copy import code
from ansible_collections.hetero.compute.plugins.plugin_utils.short_calls import PROFILE
from ansible_collections.hetero.compute.tests.unit.gpu_races.gpu_points import together

ONE = {"hetero/module_utils/_hetero/core/errors.py": b"1\n", "ansible/release.py": b"2\n"}
#: A module whose copy is removed before it ends.
LATE = """
import shutil
from ansible.module_utils.basic import AnsibleModule

def main():
    module = AnsibleModule(argument_spec=dict())
    shutil.rmtree({copy!r})
    module.{word})

if __name__ == "__main__":
    main()
"""
OTHER = dict(ONE, **{"ansible/release.py": b"3\n"})


def archive(folder, code):
    path = folder / f"{name_of(code)}.tar"
    with tarfile.open(path, "w") as tar:
        for name, data in code.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return str(path)


def kept(folder, code, check=False):
    """(the copy's path, whether anything was changed) of one run of module node_tools."""
    (folder / "lib").mkdir(exist_ok=True)
    change = Change(check)
    path = own_copy.keep_copy(str(folder / "lib"), archive(folder, code), change)
    own_copy.remove_others(str(folder / "lib"), path, change)
    return path, change.changed


def there(path):
    found = (os.path.join(base, name) for base, _folders, names in os.walk(path) for name in names)
    return {os.path.relpath(name, path): open(name, "rb").read() for name in found}


def test_it_is_made_once(tmp_path):
    path, changed = kept(tmp_path, ONE, check=True)
    assert changed
    assert not os.path.exists(path)
    assert kept(tmp_path, ONE) == (path, True)
    assert there(path) == ONE
    assert {os.stat(os.path.join(path, name)).st_mode & 0o777 for name in ONE} == {0o644}
    assert kept(tmp_path, ONE) == (path, False)


def test_a_dry_run_counts_its_files(tmp_path):
    """Lost: the rest of a dry run of the set-up, below 20,000 lines of the collection's own code."""
    (tmp_path / "lib").mkdir()
    change = Change(check=True)
    own_copy.keep_copy(str(tmp_path / "lib"), archive(tmp_path, dict(code())), change)
    (told,) = change.diff
    assert told["after"] == {"files": len(code()), "whole": True}


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_root_alone_writes_and_everybody_reads_whatever_the_umask(tmp_path, umask):
    """Lost: the node, to any account of it: what lies there runs as root; or the short calls of who is not root."""
    before = os.umask(umask)
    try:
        path, _changed = kept(tmp_path, ONE)
        assert os.umask(umask) == umask
    finally:
        os.umask(before)
    folders = [base for base, _folders, _names in os.walk(path)]
    assert len(folders) == 6
    assert {os.stat(folder).st_mode & 0o7777 for folder in folders} == {0o755}
    assert {os.stat(os.path.join(path, name)).st_mode & 0o7777 for name in ONE} == {0o644}


@pytest.mark.parametrize("wrong", [{"ansible/release.py": b"by hand\n"}, {"ansible/more.py": b""}])
def test_one_that_somebody_changed_is_made_anew(tmp_path, wrong):
    """Lost: what a fault of the disk, or a hand, did to it would run as root for ever."""
    path, _changed = kept(tmp_path, ONE)
    for name, data in wrong.items():
        with open(os.path.join(path, name), "wb") as file:
            file.write(data)
    assert kept(tmp_path, ONE) == (path, True)
    assert there(path) == ONE


def test_what_python_keeps_beside_it_is_no_change(tmp_path):
    path, _changed = kept(tmp_path, ONE)
    os.mkdir(os.path.join(path, "ansible", "__pycache__"))
    assert kept(tmp_path, ONE) == (path, False)


def test_an_upgrade_leaves_one_and_nothing_of_others(tmp_path):
    """Lost: room on the node with each upgrade; or a file of the site's own in that folder."""
    first, _changed = kept(tmp_path, ONE)
    there = ("hetero/node/tools.py", "0123456789abcdef~99/hetero/cut_off.py", "site/tools.py", "0123456789abcdef/data")
    for name in there:
        (tmp_path / "lib" / name).parent.mkdir(parents=True)
        (tmp_path / "lib" / name).write_text("")
    path, changed = kept(tmp_path, OTHER, check=True)
    assert changed
    assert os.path.exists(first)
    assert kept(tmp_path, OTHER) == (path, True)
    assert sorted(os.listdir(tmp_path / "lib")) == sorted([os.path.basename(path), "site", "0123456789abcdef"])


def test_one_that_is_being_written_is_not_there_yet(tmp_path, monkeypatch):
    """Lost: a call in the middle of a set-up runs from half a release; after a kill, all that come."""
    path = str(tmp_path / "lib" / name_of(ONE))

    def killed():
        assert not os.path.exists(path)
        raise KeyboardInterrupt

    monkeypatch.setattr(own_copy.os, "sync", killed)
    with pytest.raises(KeyboardInterrupt):
        kept(tmp_path, ONE)
    monkeypatch.undo()
    assert kept(tmp_path, ONE) == (path, True)
    assert os.listdir(tmp_path / "lib") == [os.path.basename(path)]


@pytest.mark.parametrize("codes", [[ONE, ONE], [ONE, OTHER]])
def test_two_set_ups_at_once_leave_one_copy(tmp_path, codes):
    """Lost: a node's timers and commands, which start from a copy that the other set-up removed; or a traceback."""
    (tmp_path / "lib").mkdir()
    command = tmp_path / "hetero"
    many = [dict(code, **{f"hetero/more{n}.py": b"" for n in range(200)}) for code in codes]
    archives = [archive(tmp_path, code) for code in many]

    def worker(path):
        asked = dict(folder=str(tmp_path / "lib"), archive=path, commands={str(command): "hetero"})
        return lambda: [node_tools.work(asked, False)["changed"] for _turn in range(3)]

    for _round in range(3):
        shutil.rmtree(tmp_path / "lib")
        for result in together([worker(path) for path in archives * 2]):
            assert isinstance(result, list), result
        (name,) = os.listdir(tmp_path / "lib")
        assert f"sys.path.insert(0, '{tmp_path}/lib/{name}')" in command.read_text()
        assert there(tmp_path / "lib" / name) in many


def test_nobody_else_keeps_a_set_up_from_its_folder(tmp_path, monkeypatch):
    """Lost: each set-up of a node, to an account of it that locks a folder which it may look into."""
    monkeypatch.setattr(own_copy, "PATIENCE", 0.0)
    held = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        with own_copy.in_turn(str(tmp_path)):
            why = rf"another set-up .pid {os.getpid()}. works in it since 0 s: wait for that"
            with pytest.raises(TimedOut, match=why), own_copy.in_turn(str(tmp_path)):
                pytest.fail("two work in it at once")
    finally:
        os.close(held)


@pytest.mark.parametrize("check", [True, False])
def test_a_script_in_the_place_of_a_command_stays_and_is_in_no_diff(tmp_path, check):
    """Lost: a site's own pdu_mgr; or its PDU's password, to who reads a log of the set-up."""
    theirs = tmp_path / "pdu_mgr"
    theirs.write_text("#!/usr/bin/expect\nset password hunter2\n")
    asked = dict(folder=str(tmp_path / "lib"), commands={str(theirs): "pdu_mgr"}, archive=archive(tmp_path, ONE))
    done = node_tools.work(asked, check)
    assert done["by_hand"] == [f"{theirs}.by-hand"]
    assert "hunter2" not in json.dumps(done)
    assert "hunter2" in (theirs if check else tmp_path / "pdu_mgr.by-hand").read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root: run as root")
def test_a_full_disk_is_told_and_not_filled_more(tmp_path):
    """Lost: the node's disk, by what each set-up leaves that finds it full; or the word that it is full."""
    lib = tmp_path / "lib"
    lib.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(lib)], check=True)
    try:
        large = dict(ONE, **{"hetero/large.py": bytes(1 << 20)})
        for _turn in range(2):
            with pytest.raises(HeteroError, match=r"cannot be written \(No space left on device\): free space"):
                kept(tmp_path, large)
            assert os.listdir(lib) == []
        assert kept(tmp_path, ONE)[1]
    finally:
        subprocess.run(["umount", str(lib)], check=True)


@pytest.mark.parametrize("odd", ["file", "link", "pipe", "a pipe in it", "dangling"])
def test_something_odd_in_its_place_is_replaced(tmp_path, odd):
    """Lost: all calls and timers of a node, for what a hand or a damaged disk left there; or a set-up, which hangs."""
    path = tmp_path / "lib" / name_of(ONE)
    (path if odd in ("a pipe in it", "dangling") else path.parent).mkdir(parents=True)
    (tmp_path / "other").mkdir()
    if odd == "file":
        path.write_text("")
    elif odd == "pipe":
        os.mkfifo(path)
    elif odd == "a pipe in it":
        os.mkfifo(path / "pipe")
    else:
        (path if odd == "link" else path / "ansible").symlink_to(tmp_path / ("other" if odd == "link" else "nowhere"))
    assert kept(tmp_path, ONE) == (str(path), True)
    assert there(path) == ONE
    assert (tmp_path / "other").is_dir()


@pytest.mark.parametrize("word", ["exit_json(changed=True", "fail_json(msg='no'"])
def test_a_copy_that_goes_while_a_module_runs_costs_no_result(tmp_path, word):
    """Lost: what a verb has done, in a traceback, by a set-up of another release that ended meanwhile."""
    given = {**code(), "hetero/modules/late.py": LATE.format(copy=str(tmp_path / "copy"), word=word).encode()}
    for name, data in given.items():
        (tmp_path / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "copy" / name).write_bytes(data)
    arguments = json.dumps({"ANSIBLE_MODULE_ARGS": {"_ansible_remote_tmp": str(tmp_path)}})
    request = json.dumps(dict(module="late", arguments=arguments, profile="".join(PROFILE)))
    argv = [sys.executable, "-I", str(tmp_path / "copy" / CALL)]
    done = subprocess.run(argv, input=request, capture_output=True, text=True, check=False)
    assert not (tmp_path / "copy").exists()
    result = json.loads(done.stdout.partition(f"{BEGUN}\n")[2] or "{}")
    assert result.get("failed", result.get("changed")) is True, done.stderr


def test_what_is_no_archive_is_told(tmp_path):
    (tmp_path / "code.tar").write_text("no tar")
    with pytest.raises(BadInput, match=r"code\.tar: cannot be unpacked"):
        own_copy.keep_copy(str(tmp_path / "lib"), str(tmp_path / "code.tar"), Change())
