# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that are replaced whole. If these fail, a crash leaves a user with half a file, or with litter beside it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.files import whole_file
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.whole_file import (
    as_before,
    remove_left,
    write_hint,
    write_whole,
)

WRITE_AND_DIE = """
import os, signal, sys
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.whole_file import write_whole
os.replace = lambda scratch, path: os.kill(os.getpid(), signal.SIGKILL)
write_whole(sys.argv[1], "half")
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file"


def test_text_and_bytes_with_their_mode(path):
    write_whole(path, "é\n")
    assert (path.read_bytes(), os.stat(path).st_mode & 0o7777) == ("é\n".encode(), 0o644)
    write_whole(path, b"\xff", 0o600)
    assert (path.read_bytes(), os.stat(path).st_mode & 0o7777) == (b"\xff", 0o600)


def test_mode_and_owner_stay_where_asked_for(path):
    write_whole(path, "one", 0o640, owner=(7, 8))
    write_whole(path, "two", **as_before(path, 0o600))
    seen = os.stat(path)
    assert (seen.st_mode & 0o7777, seen.st_uid, seen.st_gid) == (0o640, 7, 8)
    assert as_before(f"{path}2", 0o600) == {"mode": 0o600}


def test_what_cannot_be_written_leaves_the_old_file_and_nothing_else(path, tmp_path, monkeypatch):
    write_whole(path, "old")

    def refuse(scratch, path):
        assert Path(scratch).read_text() == "new"
        raise OSError("no")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="no"):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


@pytest.fixture
def full(tmp_path, monkeypatch):
    """A folder with the records of many boards, which lists how often it was listed."""
    monkeypatch.setattr(whole_file, "_listed", {})
    for number in range(whole_file.MANY):
        (tmp_path / f"board{number}.json").write_text("{}")
    listed, real = [], os.listdir
    monkeypatch.setattr(os, "listdir", lambda folder: listed.append(str(folder)) or real(folder))
    return tmp_path, listed


def test_a_folder_of_many_is_not_listed_for_each_of_them(full, monkeypatch):
    """Lost: a thousand boards in one request, whose time would grow with the square of their number."""
    folder, listed = full
    for number in range(10):
        write_whole(str(folder / f"board{number}.json"), "[]")
    assert listed == [str(folder)]
    monkeypatch.setattr(whole_file, "AGAIN", 0.0)
    write_whole(str(folder / "board0.json"), "[]")
    assert listed == [str(folder)] * 2


def test_what_a_killed_writer_left_among_many_goes_with_the_next(full):
    """Lost: a record's place, to what a thread of this number left that was killed since the folder was listed."""
    folder, _listed = full
    (folder / ".board1.json.999999999~").write_text("of a process that is gone")
    write_whole(str(folder / "board0.json"), "[]")
    write_whole(str(folder / "board1.json"), "[]")
    own = folder / f".board2.json.{threading.get_native_id()}~"
    later = folder / ".board3.json.999999999~"
    for left in (own, later):
        left.write_text("left since")
    write_whole(str(folder / "board2.json"), "[]")
    remove_left(str(folder / "board3.json"))  # as the record of a claim that ended is removed
    assert [name for name in os.listdir(folder) if name.endswith("~")] == []


@pytest.mark.parametrize("lasting", [True, False])
def test_only_what_is_to_last_waits_for_the_disk(path, monkeypatch, lasting):
    """Lost: a record, to a power cut; or a disk's time for marks that count in one boot of the machine."""
    synced = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.readlink(f"/proc/self/fd/{file}")))
    if lasting:
        write_whole(str(path), "a record")
        assert [os.path.dirname(synced[0]), synced[1]] == [str(path.parent)] * 2
    else:
        write_hint(str(path), "a mark")
        assert (path.read_text(), synced) == ("a mark", [])


def test_a_killed_writer_leaves_the_old_file_and_the_next_one_tidies_up(path, tmp_path):
    write_whole(path, "old")
    done = subprocess.run([sys.executable, "-c", WRITE_AND_DIE, path], check=False, timeout=600)
    assert done.returncode == -9
    assert path.read_text() == "old"
    assert len(os.listdir(tmp_path)) == 2
    write_whole(f"{path}2", "another file's writer leaves it alone")
    assert len(os.listdir(tmp_path)) == 3
    write_whole(path, "new")
    assert path.read_text() == "new"
    assert sorted(os.listdir(tmp_path)) == ["file", "file2"]


def test_writers_at_one_time_do_not_mix(path, tmp_path):
    texts = [letter * 200_000 for letter in "abcdefgh"]

    def write(text):
        for _turn in range(5):
            write_whole(path, text)
            assert path.read_text() in texts

    with ThreadPoolExecutor(len(texts)) as pool:
        list(pool.map(write, texts))
    assert os.listdir(tmp_path) == ["file"]


def test_nothing_is_written_through_a_link_that_lies_in_the_way(path, tmp_path):
    (tmp_path / "precious").write_text("keep")
    os.symlink(tmp_path / "precious", path)
    write_whole(path, "new")
    assert (tmp_path / "precious").read_text() == "keep"
    assert not path.is_symlink()
