# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container's folder that was put back from a backup, or moved to a bigger disk. If these fail, its tenant does not
get it back, or it is taken for the one that was made without anybody's word.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.tests.unit.instances.test_own_roots import found_by_reconcile, top, two

__all__ = ["two"]
SAID = re.compile(r"none else is, write (\d+) in place of (\d+) into the line '# hetero.compute: id' of that file")


def test_a_copy_is_the_container_from_when_its_operator_says_so(two):
    folder = Path(two.container("a").folder)
    copy = two.folder / "backup"
    subprocess.run(["cp", "-a", folder, copy], check=True)
    folder.rename(two.folder / "lost")  # its inode is in use, as that of a folder on another disk may be
    shutil.move(copy, folder)
    result = two.do(lifecycle.running, "a")
    assert result["failed"]
    number, old = SAID.search(result["msg"]).groups()
    assert number == str(folder.stat().st_ino)
    assert SAID.search(" ".join(found_by_reconcile(two, "a")))
    assert two.do(lifecycle.absent, "a")["failed"]
    config = folder / "config"
    config.write_text(re.sub(rf"(# hetero.compute: id \w+ of folder ){old}", rf"\g<1>{number}", config.read_text()))
    assert not two.do(lifecycle.running, "a").get("failed")
    assert (top(two, "a") / "own").read_text() == "a's"
    assert not two.do(lifecycle.absent, "a").get("failed")
    assert not folder.exists()
