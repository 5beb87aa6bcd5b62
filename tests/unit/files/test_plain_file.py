# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, a pipe that somebody left among a node's files stops a verb or a set-up for ever."""

from __future__ import annotations

import os
import socket

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.plain_file import (
    read_at,
    read_plain,
)
from ansible_collections.hetero.compute.tests.in_time import in_time


def test_its_bytes_or_the_first_of_them(tmp_path):
    (tmp_path / "file").write_bytes(b"one\xff\n")
    assert read_plain(str(tmp_path / "file")) == b"one\xff\n"
    assert read_plain(str(tmp_path / "file"), 2) == b"on"
    assert read_plain(str(tmp_path / "none")) is None


@pytest.mark.parametrize("kind", ["pipe", "link to a pipe", "loop", "link to a file", "folder", "socket", "device"])
def test_what_is_no_plain_file_is_none_and_waited_for_by_nobody(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    if "pipe" in kind:
        os.mkfifo("pipe")
    if kind == "socket":
        socket.socket(socket.AF_UNIX).bind("socket")
    leads = {"link to a pipe": "pipe", "loop": "loop", "link to a file": "/etc/passwd", "device": "/dev/zero"}
    if kind in leads:
        os.symlink(leads[kind], kind)
    if kind == "folder":
        os.mkdir(kind)
    with in_time():
        assert read_plain(kind) is None


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_what_takes_its_place_meanwhile_is_not_waited_for(tmp_path, monkeypatch, kind):
    path, look = tmp_path / "file", os.lstat
    path.write_text("x")

    def replaced(name):
        seen = look(name)
        path.unlink()
        os.mkfifo(path) if kind == "pipe" else os.symlink("/etc/passwd", path)
        return seen

    with monkeypatch.context() as patched, in_time():
        patched.setattr(os, "lstat", replaced)
        assert read_plain(str(path)) is None


def test_a_part_of_what_a_path_leads_to(tmp_path):
    (tmp_path / "file").write_bytes(b"0123456789")
    (tmp_path / "link").symlink_to("file")
    assert read_at(str(tmp_path / "link"), 3, 4) == b"456"
    assert read_at(str(tmp_path / "file"), 100) == b"0123456789"
    with pytest.raises(FileNotFoundError):
        read_at(str(tmp_path / "none"), 3)


@pytest.mark.parametrize("device", [False, True])
@pytest.mark.parametrize("kind", ["pipe", "link to a pipe", "loop", "folder", "device"])
def test_what_is_no_file_with_parts_is_an_error_and_waited_for_by_nobody(tmp_path, monkeypatch, kind, device):
    monkeypatch.chdir(tmp_path)
    if "pipe" in kind:
        os.mkfifo("pipe")
    leads = {"link to a pipe": "pipe", "loop": "loop", "device": "/dev/zero"}
    if kind in leads:
        os.symlink(leads[kind], kind)
    if kind == "folder":
        os.mkdir(kind)
    with in_time(), pytest.raises(OSError, match=r"no plain file|symbolic links|directory"):
        read_at(kind, 3, device=device)


def test_a_pipe_that_takes_the_place_of_a_file_meanwhile_is_not_waited_for(tmp_path, monkeypatch):
    path, look = tmp_path / "file", os.stat
    path.write_text("x")

    def replaced(name):
        seen = look(name)
        path.unlink()
        os.mkfifo(path)
        return seen

    with monkeypatch.context() as patched, in_time():
        patched.setattr(os, "stat", replaced)
        with pytest.raises(OSError, match="no plain file"):
            read_at(str(path), 3)
