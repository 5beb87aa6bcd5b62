# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds the state folder is not mounted, images were imported anew since, and a tenant's board is stopped. If this
fails, reconcile takes what TFTP has for the board as left by nobody, and wipes the disk that the tenant's root is on.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import reconciliation
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change


def reconciled(disks):
    with disks.proxy() as proxy:
        result = reconciliation.reconcile(proxy, None, Change(), 20)
    return [(one["found"], one["done"]) for board in result["boards"] for one in board["found"]]


def away(disks):
    state = disks.folder / "state"
    state.rename(disks.folder / "not mounted")
    state.mkdir()
    (disks.folder / "not mounted" / "images").rename(state / "images")
    for database in disks.folder.glob("state.db*"):
        database.rename(disks.folder / "not mounted" / database.name)


def secret(disks):
    return b"a tenant's secret" in disks.disk(0).read_bytes()


@pytest.mark.parametrize("boot_source", ["disk", "nfs"])
def test_a_stopped_tenants_disk_is_not_wiped(disks, boot_source):
    disks.ask(0, boot_source)
    disks.run("start", 0)
    disks.run("stop", 0)
    assert secret(disks)
    away(disks)
    found = reconciled(disks)
    assert secret(disks), found


def test_a_disk_of_before_is_not_wiped_for_a_left_file(disks):
    """Nobody ever had the board by this node: a file of hand-made scripts lies where its boot files would."""
    left = disks.folder / "tftpboot" / "10.0.2.1" / "vmlinux_0"
    left.parent.mkdir(parents=True, exist_ok=True)
    left.write_text("of a script")
    found = reconciled(disks)
    assert secret(disks), found
