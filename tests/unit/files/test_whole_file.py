# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that are replaced whole. If these fail, a crash leaves a user with half a file, or with litter beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.whole_file import as_before, write_whole

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
