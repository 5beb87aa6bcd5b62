# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which of several records of a board knows most. What is said and typed of them is in verbs/test_stray_records.py."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records import record_order
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import Fed, Kept
from ansible_collections.hetero.compute.tests.unit.boards.nodes import HASH, claimed

OTHER = "cd" * 32


@pytest.fixture
def proxy(node):
    with node.proxy() as opened:
        yield opened


@pytest.fixture
def kept(node, proxy):
    """A record of jackie's claim of board 0, whose root is there."""
    (mine,) = claimed(proxy)
    node.root(0, mine)
    node.record(0).unlink()
    return Kept(replace(mine, expires=2e9, host_key="key", image_hash=HASH), "running", ran=True, fed=Fed("pdu-a", "1"))


def changed(kept, claim=None, **fields):
    return replace(kept, claim=replace(kept.claim, **(claim or {})), **fields)


LESS = [
    dict(claim=dict(expires=1e9)),
    dict(claim=dict(host_key=None)),
    dict(claim=dict(image_hash=None)),
    dict(ran=False),
    dict(fed=None),
]


@pytest.mark.parametrize("fields", LESS)
def test_what_a_record_lacks(proxy, kept, fields):
    """Lost: just that, by a record that is taken for one that knows as much."""
    less = changed(kept, **fields)
    assert record_order.knows_less(less, kept)
    assert not record_order.knows_less(kept, less)
    assert not record_order.knows_less(kept, changed(kept, state="error", note="x", anew=True))
    assert record_order.is_older(proxy, less, kept.claim) is ("claim" in fields)
    assert not record_order.is_older(proxy, kept, less.claim)


def test_no_end_is_later_than_any(kept):
    """Lost: an instance whose lease was taken away, at the end of the one before."""
    endless = changed(kept, claim=dict(expires=None))
    assert record_order.knows_less(kept, endless)
    assert not record_order.knows_less(endless, kept)


def test_when_the_database_knows_more(proxy, kept):
    """Lost: who has a board, or its root, by a record of before."""
    assert not record_order.is_older(proxy, kept, None)
    later = replace(kept.claim, instance="eve", created=kept.claim.created + 1)
    assert record_order.is_older(proxy, kept, later)
    assert not record_order.is_older(proxy, replace(kept, claim=later), kept.claim)
    another = changed(kept, claim=dict(image_hash=OTHER))
    assert record_order.is_older(proxy, another, kept.claim), "its root is of the other image"
    assert not record_order.is_older(proxy, kept, another.claim)
    del proxy.boards[0]
    assert not record_order.is_older(proxy, another, kept.claim)


ORDER = [
    dict(claim=dict(instance="eve", created=9e9, image_hash=OTHER)),
    dict(claim=dict(expires=1e9)),
    dict(claim=dict(host_key=None)),
    dict(fed=None),
    dict(anew=True),
]


@pytest.mark.parametrize("fields", ORDER)
@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_the_one_that_knows_most_is_the_first(node, proxy, kept, fields, names):
    """Lost: the newest word of a claim, for the file that was copied last."""
    for name, one, time in zip(names, (kept, changed(kept, **fields)), (1, 2)):
        path = node.record(0).with_name(name)
        path.write_text(json.dumps(asdict(one)))
        os.utime(path, (time, time))
    assert [os.path.basename(path) for path, _kept in record_order.elsewhere(proxy, 0)] == list(names)
    assert record_order.elsewhere(proxy, 1) == []


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_of_two_that_know_as_much_the_later_file_is_the_first(node, proxy, kept, names):
    """Lost: in which state the board was last."""
    for name, time in zip(names, (2, 1)):
        path = node.record(0).with_name(name)
        path.write_text(json.dumps(asdict(kept)))
        os.utime(path, (time, time))
    assert [os.path.basename(path) for path, _kept in record_order.elsewhere(proxy, 0)] == list(names)
    node.record(0).with_name(names[0]).unlink()
    assert record_order.written(str(node.record(0).with_name(names[0]))) == 0.0


@pytest.mark.parametrize(
    ("ended", "same", "credible"), [(True, False, False), (True, True, True), (False, False, True), (False, True, True)]
)
def test_a_claim_that_has_ended_is_believed_last(proxy, kept, monkeypatch, ended, same, credible):
    """Lost: the board of a claim whose row is gone, to a copy of what somebody gave back before."""
    monkeypatch.setattr(proxy.store, "has_ended", lambda claim: ended)
    one = kept if same else changed(kept, claim=dict(instance="eve", created=kept.claim.created + 1))
    assert record_order.rank(proxy, "elsewhere", one)[:2] == (False, credible)
