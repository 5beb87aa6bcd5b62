# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a request must say. If these fail, something is claimed for a request that no node can serve, or a good one is
refused.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.record_files import MOST_OF_FLAVOR
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.servable import must_be_servable
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY

FLAVOR = dict(name="small", memory_mb=64, vcpus=1, local_gb=1)
GOOD = dict(owner="ann", flavor=FLAVOR, image="debian-12", ssh_public_key=KEY, count=3, numbers=(), lease_hours=None)


def look(**said):
    must_be_servable(SimpleNamespace(**dict(GOOD, **said)), 8, "ask for 1 to 8", "name one of `image`")


def test_what_can_be_served_passes():
    look()
    look(count=8, numbers=(1, 8), lease_hours=0.0)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (dict(owner=""), "^owner: "),
        (dict(image=" "), "^image: is empty: name one of `image`"),
        (dict(image="a b"), "image"),
        (dict(flavor=dict(FLAVOR, vcpus="many")), "^flavor small: "),
        (dict(flavor=dict(memory_mb=64)), "^flavor: has no name"),
        (dict(ssh_public_key="ssh-ed25519 AAAA"), "ssh_public_key|key"),
        (dict(count=0), "^count: is 0: ask for 1 to 8"),
        (dict(count=9), "^count: is 9: ask for 1 to 8"),
        (dict(numbers=(4,)), "^numbers: "),
        (dict(lease_hours=-1.0), "^lease_hours: "),
        (dict(lease_hours=float("nan")), "^lease_hours: "),
    ],
)
def test_what_cannot_be_served_is_named(said, words):
    """Lost: the word that is wrong, before anything is claimed."""
    with pytest.raises(BadInput, match=words):
        look(**said)


def test_a_flavor_that_fills_a_record_is_refused():
    """Lost: the claim's record, which no node reads again."""
    with pytest.raises(BadInput, match=f"has more than {MOST_OF_FLAVOR} letters"):
        look(flavor=dict(FLAVOR, extra_specs={"x": "y" * MOST_OF_FLAVOR}))
