# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which test touches what a node keeps. If these fail, one writes into the database of the node that it is run on, and
nobody hears of it.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
from contextlib import closing

import pytest

from ansible_collections.hetero.compute.tests.machine import Watch


@pytest.fixture
def watch(tmp_path):
    (tmp_path / "there").mkdir()
    with closing(sqlite3.connect(tmp_path / "there" / "host.db")) as db:
        db.execute("CREATE TABLE one (id INTEGER)")
    return Watch((f"{tmp_path}/there", f"{tmp_path}/none"))


def opened(folder):
    with closing(sqlite3.connect(f"file:{folder}/there/host.db", uri=True)) as db:
        db.execute("INSERT INTO one VALUES (1)")
        db.commit()


@pytest.mark.parametrize(
    ("touch", "word"),
    [
        (lambda folder: (folder / "there" / "file").write_text(""), "open "),
        (lambda folder: (folder / "there" / "host.db").unlink(), "os.remove "),
        (lambda folder: (folder / "none").mkdir(), "os.mkdir "),
        (lambda folder: (folder / "there").rename(folder / "none"), "os.rename "),
        (opened, "sqlite3.connect "),
    ],
)
def test_what_a_test_did_is_said(tmp_path, watch, touch, word):
    watch.begin()
    touch(tmp_path)
    (said, *_more) = watch.touched()
    assert said.startswith(word)
    assert str(tmp_path) in said
    watch.begin()
    assert watch.touched() == []


def test_who_only_looks_and_what_others_do_is_no_fault(tmp_path, watch):
    """Lost: tests that are red on a machine which is a node, or beside another run."""
    watch.begin()
    (tmp_path / "there" / "host.db").read_bytes()
    os.listdir(tmp_path / "there")
    assert watch.touched() == []
    subprocess.run(["touch", tmp_path / "there" / "file"], check=True)
    assert watch.touched() == []
