# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of files for ssh -F, looked at before anything is claimed. If these fail, an instance boots, and then its
play fails at the file of its way in; or a folder that would do is refused.

Tests plugin_utils/ways_in.py.
"""

from __future__ import annotations

import os
import pwd
import subprocess
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.plugin_utils import folders_of_others
from ansible_collections.hetero.compute.plugins.plugin_utils.ssh_folder import ssh_folder
from ansible_collections.hetero.compute.plugins.plugin_utils.ways_in import TEXT


def test_what_can_be_written_is_nothing_to_say_of(tmp_path, monkeypatch):
    (tmp_path / "jackie").write_text(TEXT.format(instance="jackie", ip="10.0.2.1", known_hosts="x"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for folder in (None, "", str(tmp_path), f"{tmp_path}/to/be/made", "~", "~/keys", "$HOME/keys", "keys", "."):
        assert ssh_folder(folder, ["jackie", "jackie-2"]) == ""
    assert os.listdir(tmp_path) == ["jackie"]


def test_what_is_in_the_way_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "loose").symlink_to("nowhere")
    (tmp_path / "config").write_text("Host *\n")
    (tmp_path / "jackie").mkdir()
    for name in ("file", "loose"):
        no_folder = f"hetero_ssh_folder is {tmp_path}/{name}, and {tmp_path}/{name} is no folder: move it away, or set"
        assert ssh_folder(f"{tmp_path}/{name}").startswith(no_folder)
    assert f", and {tmp_path}/file is no folder" in ssh_folder(f"{tmp_path}/file/keys")
    said = ssh_folder(str(tmp_path), ["config", "jackie"])
    assert said.startswith(f"{tmp_path}/config is no file of an instance: move it away, or set another hetero_ssh_fol")
    assert f"; {tmp_path}/jackie: Is a directory: move it away" in said
    for wrong in (5, ["keys"], {"a": 1}, True):
        assert ssh_folder(wrong) == f"hetero_ssh_folder is {wrong}: give the name of a folder"


@pytest.mark.skipif(os.geteuid() != 0, reason="a file system of one's own needs root: run as root")
def test_a_folder_of_a_file_system_that_is_read_only_is_named(tmp_path):
    """Root may write to any other one."""
    (tmp_path / "fs").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "keys", tmp_path / "fs"], check=True)
    try:
        for folder in (f"{tmp_path}/fs", f"{tmp_path}/fs/keys"):
            why = f"hetero_ssh_folder is {folder}, and {tmp_path}/fs cannot be written to: make it writable, or set ano"
            assert ssh_folder(folder).startswith(why)
    finally:
        subprocess.run(["umount", tmp_path / "fs"], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="a folder of another user needs root: run as root")
def test_a_folder_in_which_others_write_is_refused(tmp_path, monkeypatch):
    """Lost: the controller's account, to any other on that machine: ssh -F does what is in a file, whoever wrote it."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    keys = tmp_path / "keys"
    keys.mkdir()
    for mode, owner, why in (
        (0o1777, 0, "in which everybody may write"),
        (0o700, 1234, "which belongs to another user (1234)"),
        (0o775, 0, ""),
    ):
        keys.chmod(mode)
        os.chown(keys, owner, -1)
        said = f"hetero_ssh_folder is {keys}, {why}, and ssh would do what others put there: make it yours alone, or"
        assert ssh_folder(str(keys)).startswith(said) if why else ssh_folder(str(keys)) == ""
    os.chown(keys, 1234, -1)
    monkeypatch.setenv("SUDO_UID", "1234")
    assert ssh_folder(str(keys)) == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="a folder of another group needs root: run as root")
def test_a_folder_in_which_a_group_writes_is_refused_unless_that_is_ones_own(tmp_path, monkeypatch):
    """Lost: the same, to whoever is in that group. Debian makes a group for each account, and folders for it to write
    to.
    """
    daemon = pwd.getpwnam("daemon")
    monkeypatch.setenv("SUDO_UID", "0")
    keys = tmp_path / "keys"
    keys.mkdir()
    os.chown(keys, 0, daemon.pw_gid)
    keys.chmod(0o775)
    said = ssh_folder(str(keys))
    assert said.startswith(f"hetero_ssh_folder is {keys}, in which its group may write (")
    assert "daemon" in said
    keys.chmod(0o755)
    assert ssh_folder(str(keys)) == "", "they may only read"
    keys.chmod(0o775)
    monkeypatch.setenv("SUDO_UID", str(daemon.pw_uid))
    assert ssh_folder(str(keys)) == "", "the group of who called sudo"
    os.chown(keys, 0, 54321)
    assert ssh_folder(str(keys)) == "", "a group of nobody"
    monkeypatch.setenv("SUDO_UID", "0")
    group = SimpleNamespace(gr_mem=["left-us", "daemon"])
    monkeypatch.setattr(folders_of_others.grp, "getgrgid", lambda _number: group)
    assert "daemon" in ssh_folder(str(keys)), "also where an account before it was removed"


@pytest.mark.skipif(os.geteuid() != 0, reason="a link of another user needs root: run as root")
def test_a_link_of_another_user_leads_to_no_folder(tmp_path, monkeypatch):
    """Lost: the same, by a link in /tmp that leads to one's own folder when it is looked at, and elsewhere since."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    (tmp_path / "keys").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "keys")
    assert ssh_folder(str(link)) == ""
    os.lchown(link, 1234, -1)
    said = f"hetero_ssh_folder is {link}, to which a link of another user leads (1234), and ssh would do what others"
    assert ssh_folder(str(link)).startswith(said)
    monkeypatch.setenv("SUDO_UID", "1234")
    assert ssh_folder(str(link)) == ""
