# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The NFS server that tests of verbs play: what strict and warnings would say of it at each of its thousands of starts
is looked at here once. If this fails, a slip in it is a verb's fault in a hundred tests."""

from __future__ import annotations

import subprocess

from ansible_collections.hetero.compute.tests.unit.images.nfs_server import BUSCTL


def told(path):
    """What perl says of a program, all of its warnings being errors."""
    argv = ["perl", "-Mstrict", "-Mwarnings=FATAL,all", "-c", path]
    return subprocess.run(argv, check=False, capture_output=True, text=True, timeout=600).stderr


def test_the_played_server_is_strict(tmp_path):
    assert told(BUSCTL) == f"{BUSCTL} syntax OK\n"
    (tmp_path / "slip.pl").write_text(BUSCTL.read_text() + "$exports[0] = $exprots[0];\n")
    assert "requires explicit package name" in told(tmp_path / "slip.pl")
