# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest that only the record of its claim knows: its folder is not mounted, and the database is older."""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.host_claims import present
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_older_copies_of_guests import SMALL, forgotten

__all__ = ["forgotten"]


@pytest.mark.parametrize("runs", [True, False])
def test_its_address_is_given_to_nobody(forgotten, runs):
    """Lost: jo's address, to the next guest, while jo's guest runs with it, or once it is started again."""
    record = json.loads((forgotten.folder / "var/lib/hetero/host.claims/ml-8.json").read_text())
    if not runs:
        forgotten.virt.domain("ml-8").stop()
    with forgotten.host() as host:
        (eves,) = present(host, forgotten.request("ml-9", owner="eve", flavor=SMALL), Change())["instances"]
    assert record["address"] not in (None, eves["ip"])
