# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Instances of which something lies here and no claim is known. Whole nodes are in verbs/test_older_copies.py."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.evidence import unclaimed_instances
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import (
    ClaimRecords,
    Kept,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.tests.unit.boards.nodes import HASH, claimed


@pytest.fixture
def proxy(node):
    with node.proxy() as opened:
        yield opened


def forget(proxy):
    proxy.store._db._db.execute("DELETE FROM claims")


def write(node, claim, board, **more):
    ClaimRecords(str(node.state / "claims")).write(board, Kept(claim, "running", **more))


def names(proxy, request, **given):
    return [(one.instance, one.name, one.harmless) for one in unclaimed_instances.unclaimed(proxy, request, **given)]


def test_one_of_whom_the_record_and_the_root_are_here(node, proxy):
    """Lost: an instance that runs, of which each verb said that there is none."""
    (mine,) = claimed(proxy)
    root = node.root(0, mine)
    assert unclaimed_instances.unclaimed(proxy, "jackie") == []
    forget(proxy)
    (one,) = unclaimed_instances.unclaimed(proxy, "jackie")
    assert (one.instance, one.name, one.harmless) == ("jackie", "board0", False)
    record = f"the record of its claim {node.record(0)} (by it power off)"
    assert one.text == (
        f"{unclaimed_instances.NO_CLAIM}, and board0 has its root {root} and {record}: "
        f"{unclaimed_instances.ADOPT.format(name='jackie')}"
    )
    shutil.rmtree(root)
    assert unclaimed_instances.unclaimed(proxy, "jackie")[0].text == (
        f"{unclaimed_instances.NO_CLAIM}, and board0 has {record}: {unclaimed_instances.ADOPT.format(name='jackie')}"
    )
    node.root(0, mine)
    node.record(0).unlink()
    way = f"nothing is touched: {unclaimed_instances.PUT_BACK}"
    assert (
        unclaimed_instances.unclaimed(proxy, "jackie")[0].text
        == f"{unclaimed_instances.NO_CLAIM}, and board0 has its root {root}: {way}"
    )
    assert names(proxy, "bob") == []


def test_where_its_record_lies_elsewhere_the_way_back_is_said(node, proxy):
    """Lost: an instance whose record somebody moved, or whose board is in no boards file."""
    (mine,) = claimed(proxy)
    forget(proxy)
    stray = node.record(0).rename(node.state / "claims" / "board0.bak")
    (one,) = unclaimed_instances.unclaimed(proxy, "jackie")
    assert f"the record of its claim {stray} (by it power off): run on " in one.text
    assert f"mv --backup=numbered {stray} {node.record(0)}, or, where nobody has board0 any more, remove" in one.text
    assert ", remove it; then nothing is touched" in one.text
    stray.rename(node.record(0))
    del proxy.boards[0]
    (one,) = unclaimed_instances.unclaimed(proxy, "jackie")
    assert one.text.endswith(f": {unclaimed_instances.LEFT.format(name='jackie')}")
    node.record(0).unlink()
    node.root(0, mine)
    assert names(proxy, "jackie") == [], "of a board that is gone the root alone is unnamed.py's"


def test_each_of_a_request_is_found_and_no_other(node, proxy):
    """Lost: lab-2, where lab-1 is known; or somebody's name, refused for another's that is like it."""
    lab = claimed(proxy, "lab", (0, 1))
    claimed(proxy, "labour", [2])
    for board, claim in enumerate(lab):
        node.root(board, claim)
    proxy.store._db._db.execute("DELETE FROM claims WHERE instance != 'lab-1'")
    assert names(proxy, "lab") == [("lab-2", "board1", False)]
    forget(proxy)
    both = [("lab-1", "board0", False), ("lab-2", "board1", False)]
    assert names(proxy, "lab") == both
    for board in (0, 1):
        node.record(board).unlink()
    assert names(proxy, "lab") == both
    assert names(proxy, "lab-2") == both[1:]
    with pytest.raises(Refused) as error:
        unclaimed_instances.refuse_unclaimed(proxy, "lab")
    assert error.value.thing == "lab"
    assert error.value.what.count(unclaimed_instances.NO_CLAIM) == 2
    assert "; no claim" in error.value.what
    with pytest.raises(Refused):
        unclaimed_instances.refuse_unclaimed(proxy, "lab", {"lab-1", "lab-7"})
    assert unclaimed_instances.refuse_unclaimed(proxy, "lab", {"lab-7"}) == []


@pytest.mark.parametrize(
    ("changed", "found"),
    [(dict(created=5e9), True), (dict(created=1.0), False), (dict(image_hash=None), False), (dict(), False)],
)
def test_only_what_is_newer_than_the_claim_that_is_known(node, proxy, changed, found):
    """Lost: an instance, to what one of its name left before it; or a newer one, to an older copy of the database."""
    (mine,) = claimed(proxy)
    other = replace(mine, **changed)
    write(node, other, 0)
    node.record(0).rename(node.state / "claims" / "board0.bak")
    assert bool(names(proxy, "jackie")) == found
    (node.state / "claims" / "board0.bak").unlink()
    if other.image_hash:
        node.root(0, other)
        assert bool(names(proxy, "jackie")) == found


def test_what_an_ended_claim_left_elsewhere_is_nobodys(node, proxy):
    """Lost: a name, refused for a copy that a hand left of a record."""
    (mine,) = claimed(proxy)
    text = node.record(0).read_text()
    proxy.store.release(0, mine)
    (node.state / "claims" / "copy").write_text(text)
    assert names(proxy, "jackie") == []
    node.record(0).write_text(text)
    assert names(proxy, "jackie") == [("jackie", "board0", False)]


@pytest.mark.parametrize("what", ["record", "root"])
def test_what_nobody_can_tell_whose_it_is_may_be_its(node, proxy, what):
    """Lost: an instance of which a damaged file is all that tells; or each name, refused for one that says nothing."""
    if what == "root":
        folder = node.state / "board-roots" / "fs_1"
        folder.mkdir(parents=True)
        (folder / "made.json").write_text("{")
    else:
        (node.state / "claims").mkdir()
        node.record(1).write_text("{")
    (one,) = unclaimed_instances.unclaimed(proxy, "jackie")
    assert (one.instance, one.name, one.harmless) == ("jackie", "board1", False)
    assert (
        f"what lies there for board1 may be its: {unclaimed_instances.UNREADABLE if what == 'root' else node.record(1)}"
        in one.text
    )
    assert names(proxy, "jackie", sure=True) == []
    with pytest.raises(Refused, match="may be its"):
        unclaimed_instances.refuse_unclaimed(proxy, "jackie")
    assert unclaimed_instances.refuse_unclaimed(proxy, "jackie", {"jackie"}) == []
    proxy.store.power_seen(1, "on")
    assert names(proxy, "jackie") == [("jackie", "board1", False)]
    proxy.store.power_seen(1, "off")
    assert names(proxy, "jackie") == [("jackie", "board1", what == "record")]
    if what == "record":
        (line,) = unclaimed_instances.refuse_unclaimed(proxy, "jackie")
        (one,) = unclaimed_instances.unclaimed(proxy, "jackie")
        assert one.text.startswith(f"nothing else is there of board1, which is off: {node.record(1)}: ")
        assert line == dict(instance="jackie", node="board1", phase="claim", text=one.text, seconds=None)
        proxy.store.move(1, "maintenance", "fan")
        assert names(proxy, "jackie") == [("jackie", "board1", False)]
        proxy.store.move(1, "power off")
    claimed(proxy)
    assert names(proxy, "jackie") == [], "hers is known"
    claimed(proxy, "eve", [1])
    assert names(proxy, "bob") == [], "it is eve's board"


def test_a_copy_of_a_record_and_a_root_that_is_half_removed_are_nobodys(node, proxy):
    """Lost: each name, refused for what says nothing of anybody."""
    (eve,) = claimed(proxy, "eve", [2])
    node.record(1).write_text(node.record(2).read_text())
    (node.state / "board-roots" / "fs_0").mkdir(parents=True)
    assert names(proxy, "jackie") == []
    node.record(2).unlink()
    assert names(proxy, "jackie") == [("jackie", "board1", False)]
    write(node, replace(eve, board=7), 7)
    assert names(proxy, "jackie") == [("jackie", "board1", False)]
    assert eve.image_hash == HASH
