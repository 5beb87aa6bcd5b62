# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of single values of an answer. If these fail, plays compute with what no node has."""

from __future__ import annotations

import math
import time

import pytest

from ansible_collections.hetero.compute.plugins.plugin_utils.answer_values import (
    MISSING,
    is_address,
    is_known_host,
    is_made,
    is_number,
    is_word,
    left_out,
    list_of,
    maybe,
    of,
    or_none,
    wrong,
)


@pytest.mark.parametrize(
    ("test", "right", "odd"),
    [
        (is_number, [0, -1.5, 10**20], [True, "1", math.inf, math.nan, 10**25]),
        (is_word, ["board0", "gpu1.site"], ["", "a b", "$(reboot)", "-x", 1]),
        (is_address, ["10.0.0.1", "fd00::1"], ["10.0.0", "10.0.0.1; reboot", None]),
        (is_made, [1.0, time.time()], [0, -1, time.time() + 10**6, None]),
        (is_known_host, ["ml-9 ssh-ed25519 AAAA"], ["ml-9 ssh-ed25519 AAAA; reboot", "ml-9", 1]),
    ],
)
def test_a_value_is_what_it_stands_for(test, right, odd):
    """Lost: a shell on the controller, to a node that names itself by a command; or a table, to a time without end."""
    assert [value for value in right if not test(value)] == []
    assert [value for value in odd if test(value)] == []


def test_what_may_be_missing_is_said_of_each_key():
    """Lost: an answer of a node that has nothing to say of a key; or one that says nothing at all counts."""
    shape = dict(name=is_word, ip=maybe(is_address), note=or_none(is_word), kind=left_out(is_word))
    assert wrong(dict(name="a", ip=None, note=None), shape) is None
    assert wrong(dict(name="a", note=None), shape) is None
    assert wrong(dict(name="a"), shape) == "note"
    assert wrong(dict(name="a", note=None, kind=None), shape) == "kind"
    assert wrong(dict(note=None), shape) == "name"
    assert [of(shape)(value) for value in ({}, [], MISSING, dict(name="a", note="b"))] == [False, False, False, True]
    assert [list_of(shape)(value) for value in ({}, [], [dict(name="a", note="b"), {}])] == [False, True, False]
