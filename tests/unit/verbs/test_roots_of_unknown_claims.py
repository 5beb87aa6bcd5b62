# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file with another's root lies in an instance's folder, made.json is lost, and nobody on this node knows the other
(an older database, or a file of another proxy node). If this fails, that root goes with the end of an instance, though
its UUID is that of another claim, and the only file that another tenant has is lost.
"""

from __future__ import annotations

import shutil

from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import record
from ansible_collections.hetero.compute.tests.unit.verbs.test_roots_in_others_places import folder, is_refused, two

__all__ = ["two"]


def test_a_root_of_who_is_not_known_does_not_go_with_anothers_end(two):
    (folder(two, 0) / "root.ext4").rename(two.folder / "jackies")
    (folder(two, 1) / "root.ext4").rename(folder(two, 0) / "root.ext4")
    (folder(two, 0) / "made.json").unlink()
    shutil.rmtree(folder(two, 1))
    record(two, 1).unlink()
    with two.proxy() as proxy:
        proxy.store._db.write("DELETE FROM claims WHERE board = 1")
    start = two.module("instance", kind="board", instance="jackie", state="running", timeout=3)
    assert "is the root of another instance, not of jackie" in start["msg"]
    results = two.terminate("jackie")
    assert (folder(two, 0) / "root.ext4").exists(), [result["lines"] for result in results]
    assert is_refused(results)
