# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds the roots is not mounted. If this fails, a lease cannot be extended, its tenant is told that its end was
begun and to terminate it, and the reaper then gives her board away as cleaned.
"""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import mounts_below, unmount
from ansible_collections.hetero.compute.tests.unit.verbs.test_instance_on_boards import verb


def test_a_lease_is_extended_while_what_holds_the_roots_is_not_mounted(jackie):
    assert not jackie.lease(3).get("failed")
    assert not verb(jackie, "stopped").get("failed")
    for point in reversed(mounts_below(str(jackie.state / "board-roots"))):
        unmount(point)
    (jackie.state / "board-roots").rename(jackie.folder / "not mounted")
    assert "mount the file system that it is on" in verb(jackie)["msg"]
    result = jackie.lease(5)
    assert (result.get("failed"), result["changed"]) == (None, True)
