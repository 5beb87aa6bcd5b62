# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds the state folder is not mounted, a tenant's board is stopped, and playbook repair is run on it. reconcile
and requests leave the board alone for its boot files; if this fails, repair cleans it and wipes the tenant's disk.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import board_releases
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.tests.unit.boards.disk.test_disks_without_state_folder import (
    away,
    reconciled,
    secret,
)


@pytest.mark.parametrize("boot_source", ["disk", "nfs"])
def test_its_first_look_refuses(disks, boot_source):
    """The playbook's first task is board_claim, state absent, in check mode."""
    disks.ask(0, boot_source)
    disks.run("start", 0)
    disks.run("stop", 0)
    away(disks)
    assert "is mounted" in str(reconciled(disks))
    with disks.proxy() as proxy, pytest.raises(Refused, match=r"made ready for somebody .* is mounted"):
        board_releases.make_free(proxy, proxy.board(0), Change(True), Deadline(60))
    assert secret(disks)


def test_it_goes_on_once_an_operator_has_cleaned_the_board(disks):
    """Lost: a board, to files that nobody wants: the way out that the refusal prints."""
    disks.ask(0, "nfs")
    disks.run("start", 0)
    disks.run("stop", 0)
    away(disks)
    disks.remove(0)
    with disks.proxy() as proxy:
        assert not board_releases.make_free(proxy, proxy.board(0), Change(True), Deadline(60)).get("failed")
