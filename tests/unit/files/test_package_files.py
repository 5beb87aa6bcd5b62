# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which configuration files a package brought. If these fail, a set-up overwrites what a person wrote; or keeps a copy
of each file that a package brings, as if somebody had written it.
"""

from __future__ import annotations

import hashlib
import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.files import package_files
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.package_files import is_as_packaged


@pytest.fixture
def dpkg(tmp_path, monkeypatch):
    """A dpkg-query that knows one file of a package; returns that file's path."""
    path = tmp_path / "ganesha.conf"
    path.write_text("EXPORT {}\n")
    digest = hashlib.md5(b"EXPORT {}\n").hexdigest()
    programs = tmp_path / "bin"
    programs.mkdir()
    program = programs / "dpkg-query"
    program.write_text(f"#!/bin/sh\nprintf '\\n %s %s\\n /etc/other 0123 obsolete\\n\\n' {path} {digest}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    return path


def test_what_a_package_brought_is_told_from_what_somebody_changed(dpkg, tmp_path):
    assert is_as_packaged(str(dpkg))
    dpkg.write_text("EXPORT { Path = /srv; }\n")
    assert not is_as_packaged(str(dpkg))
    (tmp_path / "own.conf").write_text("EXPORT {}\n")
    assert not is_as_packaged(str(tmp_path / "own.conf"))


def test_where_there_is_no_dpkg_nothing_is_a_packages(dpkg, monkeypatch):
    """Lost: the set-up of a node with another distribution."""
    monkeypatch.setattr(package_files.shutil, "which", lambda name: None)
    assert not is_as_packaged(str(dpkg))
