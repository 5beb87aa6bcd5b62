# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose folder of locks it is, on a machine that is no proxy node. Two real accounts are in test_outlets.py."""

from __future__ import annotations

import os
import re
import tempfile

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.run_folder import own_run_folder

#: Who runs this, or where that is root somebody who has no account here.
ACCOUNT = os.geteuid() or 64003


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """Where the account's folder is, in a folder that everybody may write to; it is not there yet."""
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: ACCOUNT)
    return tmp_path / f"hetero-{ACCOUNT}"


def test_root_uses_the_one_of_the_proxy_node(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert own_run_folder() == "/run/hetero"


@pytest.mark.parametrize(("mode", "good"), [(0o700, True), (0o755, True), (0o720, False), (0o702, False)])
def test_nobody_else_may_write_to_it(folder, mode, good):
    """Lost: any file of whoever switches an outlet, to an account that put a link there."""
    folder.mkdir()
    folder.chmod(mode)
    os.chown(folder, ACCOUNT, -1)
    if good:
        assert own_run_folder() == str(folder)
    else:
        with pytest.raises(
            HeteroError, match=re.escape(f"{folder}: is there, and is no folder of user id {ACCOUNT} al")
        ):
            own_run_folder()


@pytest.mark.skipif(os.getuid() != 0, reason="needs another's folder: run as root")
def test_it_is_made_for_the_account_alone(folder):
    with pytest.raises(HeteroError, match="is no folder of user id"):
        own_run_folder()
    assert folder.stat().st_mode & 0o7777 == 0o700


def test_what_is_no_folder_is_not_used(folder):
    folder.write_text("")
    os.chown(folder, ACCOUNT, -1)
    folder.chmod(0o700)
    with pytest.raises(HeteroError, match="is no folder of user id"):
        own_run_folder()
