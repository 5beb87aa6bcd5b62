# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, setting up a proxy node twice changes it twice, shows a password, leaves half a file, or leaves a
service running with yesterday's configuration."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import locks
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes import files
from ansible_collections.hetero.compute.plugins.modules import node_files
from ansible_collections.hetero.compute.tests.in_time import in_time


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "folder" / "file")


def keep(path, data, check=False, **more):
    change = Change(check)
    files.keep_folder(os.path.dirname(path), "0755", change)
    files.keep_file(path, data, more.pop("mode", "0640"), change, **more)
    return change


def test_a_file_is_written_once_with_its_mode(path):
    assert keep(path, b"one\n").changed
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o640
    assert not keep(path, b"one\n").changed
    os.chmod(path, 0o644)
    assert keep(path, b"one\n").changed
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o640


def test_check_mode_tells_the_lines_and_makes_nothing_even_without_the_folder(path):
    change = keep(path, b"one\ntwo\n", check=True)
    assert [entry["after_header"] for entry in change.diff] == [os.path.dirname(path), path]
    assert change.diff[1]["after"]["lines"] == ["one", "two", ""]
    assert not os.path.exists(os.path.dirname(path))


def test_a_secret_is_in_no_diff_before_or_after(path):
    first, second = keep(path, b"hunter1", secret=True), keep(path, b"hunter2", secret=True)
    assert first.changed
    assert second.changed
    assert "hunter" not in json.dumps([first.diff, second.diff])
    assert not keep(path, b"hunter2", secret=True).changed


def test_one_file_that_its_program_refuses_leaves_all_files_as_they_were(tmp_path):
    """Lost: a node with half of a set-up, which the result says has changed nothing."""
    folder = tmp_path / "folder"
    first, second = folder / "a.json", folder / "b.json"
    program = "sh -c 'grep -q } $0 || { echo $0 is wrong >&2; exit 1; }' %s"
    asks = dict(validate=program, variables=["my_list", "my_word"])

    def run(check=False, **texts):
        wanted = [dict(one(folder / f"{name}.json", None), content=text, **asks) for name, text in texts.items()]
        return node_files.work(dict(folders={str(folder): "0755"}, files=wanted, units={}, units_off=[]), check)

    with pytest.raises(HeteroError) as caught:
        run(a="{}", b="{")
    assert not folder.exists(), "nothing was made"
    assert caught.value.thing == str(second)
    assert caught.value.remedy == "correct my_list, my_word"
    assert f"said: {second} is wrong" in caught.value.what
    assert "hetero-files-" not in str(caught.value), "a file that is gone"
    assert run(check=True, a="{}", b="{")["changed"], "a dry run asks no program, which may be yet to be installed"
    assert run(a="{}", b="{}")["changed"]
    with pytest.raises(HeteroError):
        run(a="{1}", b="{")
    assert (first.read_text(), second.read_text()) == ("{}", "{}")
    assert sorted(os.listdir(folder)) == ["a.json", "b.json"]


def test_what_was_changed_before_an_error_is_said(tmp_path):
    """Lost: the restart of a service whose file is new, by handlers that were told of no change."""
    (tmp_path / "taken").mkdir()
    wanted = [dict(one(tmp_path / name, None), content="x") for name in ("new", "taken")]
    given = dict(folders={}, files=wanted, units={}, units_off=[])
    for changed in (True, False):
        result = node_files.work(given, False)
        assert (result["failed"], result["changed"]) == (True, changed)
        assert "is a folder, not a file" in result["msg"]
    wanted[1]["path"] = str(tmp_path / "none" / "file")
    assert "cannot be read or written" in node_files.work(given, False)["msg"]


def test_another_kind_of_thing_in_its_place_is_named(tmp_path):
    with pytest.raises(HeteroError, match="is a folder, not a file"):
        files.keep_file(str(tmp_path), b"", "0644", Change())


def test_a_link_in_its_place_is_replaced_and_what_it_leads_to_stays(path, tmp_path):
    (tmp_path / "other").write_text("theirs", encoding="utf-8")
    os.makedirs(os.path.dirname(path))
    os.symlink(tmp_path / "other", path)
    assert keep(path, b"ours").changed
    assert not os.path.islink(path)
    assert (tmp_path / "other").read_text(encoding="utf-8") == "theirs"


def test_a_source_that_a_package_will_bring_stops_only_the_real_run(tmp_path):
    assert files.source_bytes(str(tmp_path / "none"), Change(check=True)) is None
    with pytest.raises(BadInput, match="install its package"):
        files.source_bytes(str(tmp_path / "none"), Change())


def unit(started=0.0, load="loaded", active="active", state="enabled", reload="no"):
    """What `systemctl show` prints of one unit, in systemd's own order."""
    return (
        f"Id=x\nLoadState={load}\nActiveState={active}\nUnitFileState={state}\n"
        f"ActiveEnterTimestampMonotonic={int(started * 1e6)}\nNeedDaemonReload={reload}\n"
    )


@pytest.fixture
def systemd(tmp_path, monkeypatch):
    """A systemctl that prints what it is told."""

    def tell(*units):
        (tmp_path / "said").write_text("\n".join(units), encoding="utf-8")
        program = tmp_path / "bin" / "systemctl"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f'#!/bin/sh\n[ "$1" = show ] && exec cat {tmp_path}/said\n', encoding="utf-8")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")

    return tell


def test_a_service_older_than_its_file_is_restarted_though_this_run_wrote_nothing(systemd, tmp_path):
    (tmp_path / "conf").write_text("x", encoding="utf-8")
    written = time.time() - 60
    os.utime(tmp_path / "conf", (written, written))
    now = time.monotonic()
    systemd(unit(now - 90), unit(now - 30))
    todo = files.units_to_do({"old": [str(tmp_path / "conf")], "new": [str(tmp_path / "conf")]}, [], [])
    assert todo == dict(restart=["old"], start=[], stop=[], reload=False)


def test_check_mode_foresees_the_restart(systemd):
    systemd(unit(time.monotonic()))
    assert files.units_to_do({"x": ["/etc/x"]}, [], ["/etc/x"])["restart"] == ["x"]


def test_a_dead_or_disabled_service_is_started_and_an_unwanted_one_stopped(systemd):
    now = time.monotonic()
    systemd(
        unit(active="failed"),
        unit(now, state="disabled", reload="yes"),
        unit(now, state="generated"),
        unit(now, state="static"),
        unit(active="inactive", state="generated"),
        unit(active="inactive", load="masked"),
        unit(now, load="masked"),
    )
    on = {"dead": [], "disabled": [], "fine": [], "pulled in": []}
    todo = files.units_to_do(on, ["unwanted", "masked", "runs"], [])
    assert todo == dict(restart=[], start=["dead", "disabled"], stop=["unwanted", "runs"], reload=True)


def test_two_roles_keep_keys_of_one_file_in_any_order(tmp_path):
    """A host with containers and guests lost the one when the other's role was run again."""
    path, parts = tmp_path / "host.json", {"lxc": {"bridge": "hetero0"}, "kvm": {"bridge": "hetero1", "vcpus": None}}

    def run(check=False, **keys):
        return node_files.work(dict(folders={}, files=[one(path, keys)], units={}, units_off=[]), check)["changed"]

    for order in (("lxc", "kvm"), ("kvm", "lxc")):
        assert [run(**{kind: parts[kind]}) for kind in order * 2] == [True, True, False, False]
        assert json.loads(path.read_text()) == parts
        assert run(check=True, lxc=None)
        assert json.loads(path.read_text()) == parts
        assert [run(lxc=None), run(lxc=None)] == [True, False]
        assert json.loads(path.read_text()) == {"kvm": parts["kvm"]}
        assert [run(kvm=None), run(kvm=None)] == [True, False]
        assert not path.exists()
    path.write_text("{")
    with pytest.raises(BadInput, match=r"host\.json: is not JSON"):
        run(lxc=parts["lxc"])
    assert path.read_text() == "{"


def one(path, keys):
    given = {name: option.get("default") for name, option in node_files.FILE.options.items()}
    return dict(given, path=str(path), keys=keys)


@pytest.fixture
def first_set_up(tmp_path):
    """Write two files and the one that tells of it, as a role does."""
    wanted = [dict(one(tmp_path / name, None), content=f"{name} of hetero.compute\n") for name in ("a", "b", "first")]
    wanted[0]["content"] = "no name in it\n"
    given = dict(folders={}, files=wanted, units={}, units_off=[], first=str(tmp_path / "first"))
    return lambda check=False: node_files.work(given, check)


def test_what_was_there_before_the_first_set_up_stays_under_another_name(tmp_path, first_set_up):
    """Lost: a site's own file (tilera_boards, a boot loader), to the set-up of the proxy node in its place."""
    (tmp_path / "a").write_text("theirs\n")
    (tmp_path / "a").chmod(0o640)
    os.symlink("/etc/passwd", tmp_path / "b")
    kept = [str(tmp_path / "a.by-hand"), str(tmp_path / "b.by-hand")]
    dry = first_set_up(check=True)
    assert (dry["by_hand"], sorted(os.listdir(tmp_path))) == (kept, ["a", "b"])
    assert kept[0] in dry["paths"]
    assert first_set_up()["by_hand"] == kept
    assert (tmp_path / "a.by-hand").read_text() == "theirs\n"
    assert stat.S_IMODE((tmp_path / "a.by-hand").stat().st_mode) == 0o640
    assert os.readlink(tmp_path / "b.by-hand") == "/etc/passwd"
    assert (tmp_path / "a").read_text() == "no name in it\n"
    assert (first_set_up()["by_hand"], first_set_up()["changed"]) == ([], False)


@pytest.mark.parametrize("kind", ["pipe", "link to a pipe"])
def test_what_is_no_plain_file_stays_too_and_nobody_waits_for_it(tmp_path, first_set_up, kind):
    """Lost: the set-up of a node, to a pipe in the place of one of its files."""
    os.mkfifo(tmp_path / ("a" if kind == "pipe" else "pipe"))
    if kind != "pipe":
        (tmp_path / "a").symlink_to("pipe")
    with in_time():
        assert first_set_up()["by_hand"] == [str(tmp_path / "a.by-hand")]
    assert (tmp_path / "a").read_text() == "no name in it\n"


def test_what_a_set_up_wrote_is_nobody_elses(tmp_path, first_set_up):
    """Lost: a clean folder, to one copy more at each set-up that changes a file; and what an earlier copy holds."""
    first_set_up()
    (tmp_path / "a").write_text("as an older release had it\n")
    assert first_set_up()["by_hand"] == [], "it was set up before"
    (tmp_path / "first").unlink()
    (tmp_path / "b").write_text("b of hetero.compute, older\n")
    assert first_set_up()["by_hand"] == [], "the name of the collection is in it"
    (tmp_path / "first").unlink()
    (tmp_path / "a.by-hand").write_text("of long ago\n")
    (tmp_path / "a").write_text("theirs\n")
    assert first_set_up()["by_hand"] == [str(tmp_path / "a.by-hand-2")]
    assert (tmp_path / "a.by-hand").read_text() == "of long ago\n"


def test_what_a_package_brought_is_nobodys(tmp_path, first_set_up, monkeypatch):
    """Lost: a first set-up whose lines are about what somebody wrote, under those about files of packages."""
    (tmp_path / "a").write_text("as the package has it\n")
    (tmp_path / "b").write_text("theirs\n")
    monkeypatch.setattr(files, "is_as_packaged", lambda path: path.endswith("/a"))
    assert first_set_up()["by_hand"] == [str(tmp_path / "b.by-hand")]


@pytest.mark.parametrize("left", range(6))
def test_a_first_set_up_that_was_cut_off_loses_nothing_when_it_is_run_again(tmp_path, monkeypatch, left):
    """Lost: a site's own files, to the second run of a set-up that an ssh that broke, or an error, had ended."""
    theirs = {name: f"{name} of theirs\n" for name in ("a", "b")}
    for name, text in theirs.items():
        (tmp_path / name).write_text(text)
    wanted = [dict(one(tmp_path / name, None), content="no name in it\n") for name in ("first", "a", "b")]
    given = dict(folders={}, files=wanted, units={}, units_off=[], first=str(tmp_path / "first"))
    steps = []

    def cut_off(step):
        def run(path, *args, **more):
            steps.append(path)
            if len(steps) > left:
                raise KeyboardInterrupt
            return step(path, *args, **more)

        return run

    with monkeypatch.context() as patched:
        for name in ("keep_by_hand", "keep_file"):
            patched.setattr(node_files, name, cut_off(getattr(node_files, name)))
        with pytest.raises(KeyboardInterrupt):
            node_files.work(given, False)
    node_files.work(given, False)
    assert {name: (tmp_path / f"{name}.by-hand").read_text() for name in theirs} == theirs
    assert sorted(os.listdir(tmp_path)) == ["a", "a.by-hand", "b", "b.by-hand", "first"]


@pytest.mark.parametrize("check", [True, False])
def test_what_somebody_wrote_is_in_no_diff(tmp_path, first_set_up, check):
    """Lost: the PDU's password in a site's own script, to who reads a log of the set-up."""
    for name in ("a", "b"):
        (tmp_path / name).write_text("set password hunter2\n")
    done = first_set_up(check)
    assert "hunter2" not in json.dumps(done)
    shown = {entry["after_header"]: entry for entry in done["diff"]}[str(tmp_path / "a")]
    assert "content: not ours, 21 bytes\n" in shown["before"]
    assert shown["after"].endswith("\nno name in it\n")


def test_what_lies_in_the_place_of_a_file_that_a_later_release_brings_is_in_no_diff(path):
    """Lost: the same, where the set-up is not the first one."""
    keep(path, b"set password hunter2\n")
    assert "hunter2" not in json.dumps(keep(path, b"# Written by hetero.compute\n").diff)
    lines = keep(path, b"# Written by hetero.compute\nnew\n").diff[0]["before"]["lines"]
    assert lines == ["# Written by hetero.compute", ""], "of ours, what changes is shown"


def of_one_role(path, section):
    keys = {section: {"name": section}}
    more = dict(content=None, source=None, secret=None, uboot_script=None, mode="0644", validate="", variables=[])
    written = [dict(path=path, keys=keys, **more)]
    return dict(folders={os.path.dirname(path): "0755"}, files=written, units={}, units_off=[])


def test_two_set_ups_at_once_each_keep_their_part_of_a_file(path, monkeypatch):
    """Lost: the guests of a host, to who sets up its containers in the same second; each said that all is well."""
    check, done = node_files.check_file, []

    def meanwhile(*words):
        check(*words)
        if not done:
            done.append(True)
            assert node_files.work(of_one_role(path, "kvm"), False)["changed"]

    monkeypatch.setattr(node_files, "check_file", meanwhile)
    assert node_files.work(of_one_role(path, "lxc"), False)["changed"]
    with open(path, encoding="utf-8") as file:
        assert sorted(json.load(file)) == ["kvm", "lxc"]


def test_a_part_is_written_while_nobody_else_writes_one(path, monkeypatch):
    """Lost: the same, to who looks while the other writes."""
    keep_file, tried = node_files.keep_file, []

    def held(*words, **more):
        turn = locks.open_turn("part", os.path.dirname(path))
        assert not locks.is_taken(turn)
        os.close(turn)
        tried.append(True)
        keep_file(*words, **more)

    monkeypatch.setattr(node_files, "keep_file", held)
    node_files.work(of_one_role(path, "lxc"), False)
    assert tried
    with files.alone_in(os.path.dirname(path)):
        pass
    with files.alone_in(os.path.join(path, "no folder")):
        pass


def test_nobody_else_keeps_a_part_from_being_written(path):
    """Lost: each set-up of a node, for ever, to an account of it that locks a folder which it may look into."""
    os.mkdir(os.path.dirname(path))
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        with in_time():
            node_files.work(of_one_role(path, "lxc"), False)
    finally:
        os.close(folder)
