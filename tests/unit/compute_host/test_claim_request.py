# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a compute host may be asked for."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims import record_files
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.claim_request import ClaimRequest
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY

FLAVOR = {"name": "c1.tiny", "memory_mb": 64, "vcpus": 1, "local_gb": 1}


def test_an_owner_whom_one_can_name():
    ClaimRequest("ml-8", "Ann Ünal", FLAVOR, "debian", KEY).check()


def test_a_flavor_that_no_record_holds():
    """Lost: the claim's record, which nobody could read again."""
    more = dict(FLAVOR, extra_specs={"x": "y" * record_files.MOST_OF_FLAVOR})
    with pytest.raises(BadInput, match=r"^flavor: has more than 65536 letters"):
        ClaimRequest("ml-8", "ann", more, "debian", KEY).check()


@pytest.mark.parametrize(
    "owner", ["", " ", "ann\x1b[31m", "ann\nboard9  running", "ann\u202e", "ann\u3164", "ann ", "x" * 256]
)
def test_an_owner_whom_nobody_can_name(owner):
    """Lost: a container that nobody can end, or the terminal of whoever reads whose it is."""
    with pytest.raises(BadInput, match=r"^owner: "):
        ClaimRequest("ml-8", owner, FLAVOR, "debian", KEY).check()
