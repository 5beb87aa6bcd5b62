# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A boards file from a second controller, which knows other boards of the proxy. If these fail, what the first one's
users have is taken for nobody's because a file does not name it.
"""

from __future__ import annotations

import pytest


def deploy(site, boards):
    """What another controller's set-up writes: a boards file with these boards, and the wiring of those alone."""
    path = site.folder / "tilera_boards"
    rows = path.read_text().splitlines(keepends=True)
    path.write_text("".join(row for row in rows if int(row.split()[0]) in boards))
    return lambda: path.write_text("".join(rows))


def there(site):
    """What is there; states are asked of the boards that the file names."""
    return {name: found for name, found in site.what_is_there().items() if name != "states"}


@pytest.fixture
def both(site):
    """Jackie on board 0, bob on board 1."""
    for name in ("jackie", "bob"):
        assert not any(result.get("failed") for result in site.provision(name))
    return site


def test_a_board_that_the_file_does_not_name_stays_its_tenants(both):
    """Jackie's board is gone from the file: neither reconcile, nor the reaper, nor the next request touches it."""
    before = there(both)
    put_back = deploy(both, {1})
    found = both.module("board_reconcile", timeout=5)
    assert any(text.startswith("claim of jackie (jackie) on board0: add it") for text in found["others"])
    asked = both.provision("eve")[-1]
    assert "board0" not in asked["msg"]
    assert asked["failed"]
    for name, given in (
        ("tilera_boot", dict(boards=[0], state="stopped", instance="jackie", timeout=2)),
        ("board_image", dict(boards=[0], state="absent", instance="jackie")),
        ("board_claim", dict(instance="jackie", owner="jackie", state="absent")),
        ("board_lease", dict(instance="jackie", hours=1)),
        ("board_rebuild", dict(instance="jackie", image="debian-13")),
    ):
        result = both.module(name, **given)
        assert result["failed"]
        assert "add it" in result["msg"], (name, result["msg"])
    both.expire("jackie")
    (turn,) = both.reap()
    assert "board0 is not in the boards file: add it" in turn["said"][0]
    assert there(both) == before
    put_back()
    assert both.what_is_there() == both.running("jackie", "bob")


def test_a_name_that_a_forgotten_board_has_is_given_to_nobody(both):
    """Lost: jackie's root, to her own next request, which would get an empty one on another board."""
    put_back = deploy(both, {1})
    assert not any(result.get("failed") for result in both.terminate("bob"))
    again = both.provision("jackie")[-1]
    assert again["failed"]
    assert "board 0: no such board (known: 1)" in again["msg"]
    assert "add it to the boards file" in again["msg"]
    put_back()
    assert not any(result.get("failed") for result in both.provision("jackie"))
    assert both.what_is_there() == both.running("jackie")
