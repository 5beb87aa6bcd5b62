# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events that say whose a moved container was. If this fails, that is lost with its age.

Tests compute_host/moved_instances.py.
"""

from __future__ import annotations

import time

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Store as Hosts
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.moved_instances import LEFT, PHASE
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import retention

NOW, DAY = 1.8e9, 86400.0


def test_whose_a_container_was_that_was_moved_away_is_known_after_a_quarter(tmp_path, monkeypatch):
    """Lost: whose the root in a folder is that was moved away before its instance was made anew."""
    monkeypatch.setattr(retention, "EVENTS_NEWEST", 4)
    monkeypatch.setattr(retention, "REST", 0.0)
    with Hosts(str(tmp_path / "host.db")) as store:
        monkeypatch.setattr(time, "time", lambda: NOW - 91 * DAY)
        store.event("web", PHASE, LEFT.format(id="abcdef0123456789"))
        monkeypatch.setattr(time, "time", lambda: NOW)
        for number in range(9):
            store.event("other", "note", f"{number}")
        store.prune(90, NOW)
        assert store.newest_event_about("#abcdef0123456789") is not None
