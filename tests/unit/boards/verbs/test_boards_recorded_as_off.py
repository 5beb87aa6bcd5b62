# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What reconcile makes of a tenant's board that is recorded as off, and is on and silent.

Tests boards/verbs/reconciliation.py, boards/verbs/tenants_boards.py.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power.presence import ALIVE, SILENT
from ansible_collections.hetero.compute.tests.unit.boards.verbs.test_reconciling_boards import (
    judge,
    look_at,
    parts,
    proxy,
    running,
)

__all__ = ["parts", "proxy"]


@pytest.mark.parametrize("ssh", [ALIVE, SILENT])
@pytest.mark.parametrize("check", [True, False])
def test_one_where_its_tenant_may_be_at_work_is_recorded_as_running(node, proxy, ssh, check):
    """Lost: that he may be at work there, to all who read the record, which says that his board is off."""
    running(node, proxy, "booting", "running", "shutting down", "power off")
    look = look_at(proxy, ssh=ssh, check=check)
    look.work.driver.has_root = lambda board: True  # its NFS client is connected
    found = judge(proxy, look)
    assert found[0] == ("recorded as power off, it is on, and jackie may be at work", "recorded as running")
    assert (look.work.changed, look.work.change.diff[0]["after"]) == (True, {"state": "running"})
    assert proxy.store.record(0).state == ("power off" if check else "running")
