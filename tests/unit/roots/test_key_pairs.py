# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fresh pairs of keys. If these fail, two boards have one host key, or a claim names a key that no board has."""

from __future__ import annotations

import stat
import subprocess

from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.key_pairs import make_pair, without_comment


def test_a_pair_is_fresh_private_and_belongs_together(tmp_path):
    """Lost: whom ssh speaks to."""
    one = make_pair(str(tmp_path / "one"), "board1", "board1")
    two = make_pair(str(tmp_path / "two"), "board2", "board2")
    assert one.line != two.line
    assert one.public == f"{one.line} board1\n"
    assert one.line.startswith("ssh-ed25519 ")
    assert stat.S_IMODE((tmp_path / "one").stat().st_mode) == 0o600
    half = subprocess.run(["ssh-keygen", "-y", "-f", tmp_path / "one"], capture_output=True, text=True, check=True)
    assert without_comment(half.stdout) == one.line, "it opens without a passphrase"


def test_a_line_without_its_comment():
    """Lost: that two lines are one key."""
    assert without_comment("ssh-ed25519 AAAA jo doe@host\n") == "ssh-ed25519 AAAA"
