# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a claim whose end the database knows, back in its place, as after claims/ was put back from a backup.
If these fail, a free board is out of use for good; or the only record of a later claim is removed with it.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import found, reconcile, record
from ansible_collections.hetero.compute.tests.unit.verbs.test_contradictions import put_back

REMOVED = ("the record of alice's claim is here, and that claim has ended", "removed")


@pytest.fixture
def ended(site):
    """Alice's claim has ended, and her record is back."""
    assert not any(result.get("failed") for result in site.provision("alice"))
    before = record(site).read_text()
    assert not any(result.get("failed") for result in site.terminate("alice"))
    record(site).write_text(before)
    return site


def test_reconcile_removes_it(ended):
    """Nothing is left of the claim, and the board goes to who asks next."""
    dry = reconcile(ended, check=True)
    assert found(dry) == [(REMOVED[0], "would be removed")]
    assert record(ended).exists()
    assert found(reconcile(ended)) == [REMOVED]
    assert ended.what_is_there() == ended.clean()
    assert not any(result.get("failed") for result in ended.provision("bob"))
    assert ended.board_of("bob") == 0


def on(site):
    site.pdu(board0="on")


def root(site):
    """As put back from a backup of the roots."""
    (site.state / "board-roots" / "fs_0").mkdir()
    (site.state / "board-roots" / "fs_0" / "made.json").write_text("{}")


def by_word(site):
    """An operator's word ended the claim, and nobody looked what was on the board."""
    with site.proxy() as proxy:
        proxy.store._db.write("UPDATE events SET text = 'by a word' WHERE phase = 'release'")


@pytest.mark.parametrize("harm", [on, root, by_word])
def test_it_stays_where_anything_may_be_left(ended, harm):
    harm(ended)
    before = record(ended).read_text()
    assert [done for _found, done in found(reconcile(ended))] == [None]
    assert record(ended).read_text() == before


def test_that_of_a_later_claim_of_that_name_stays(site):
    """Lost: alice's second claim, of which a copy of the database does not know, by the end of her first one, which a
    clock that was ahead dated after it. What holds the roots is not mounted.
    """
    assert not any(result.get("failed") for result in [*site.provision("alice"), *site.terminate("alice")])
    with site.proxy() as proxy:
        proxy.store._db.write("UPDATE events SET time = time + 86400")
    copy = backups.make(site.params["state_db"])
    assert not any(result.get("failed") for result in site.provision("alice"))
    site.module("instance", kind="board", instance="alice", state="stopped", timeout=5)
    put_back(site, copy)
    mine = record(site).read_text()
    with site.proxy() as proxy:
        assert proxy.store.has_ended(proxy.store.kept(0).claim)
    site.tear_down()
    (site.state / "board-roots").rename(site.state / "away")
    (said,) = found(reconcile(site))
    assert said[0].startswith(f"is alice's by {record(site)}, but its root is not there")
    assert record(site).read_text() == mine
