# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with a flavor, at its edges. The files that flavors come from are in test_flavors_file.py.

Tests scheduling/extra_specs.py.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.extra_specs import defect, satisfies
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.flavor_check import (
    defects,
    table_defects,
    validate,
)


@pytest.mark.parametrize("amount", ["memory_mb", "vcpus", "local_gb"])
@pytest.mark.parametrize(("value", "wrong"), [(0, 0), (1, 0), (-1, 1), (True, 1), (1.0, 1)])
def test_nothing_may_be_asked_for_and_less_may_not(amount, value, wrong):
    """Lost: a flavor without a disk of its own, which local_gb: 0 says."""
    assert [one.path for one in defects({amount: value})] == [(amount,)] * wrong


def test_each_place_is_told_once_and_all_places_are():
    """Lost: the place of the second slip, to who mends the first; or time, over one that is told twice."""
    assert [one.path for one in defects({"name": 7}, "mine")] == [("name",)]
    assert [one.path for one in defects({"name": "other", "vcpus": -1}, "mine")] == [("vcpus",), ("name",)]
    assert defects({"name": "mine"}, "mine") == defects({"vcpus": 1}, "mine") == []
    wrong = {1: "x", "gpus": "two", "capabilities:gpus": "<= 2", "pci_passthrough:alias": "a1", "other": "= x"}
    assert [one.path[1:] for one in defects({"extra_specs": wrong})] == [(key,) for key in wrong]
    assert defects({"extra_specs": {"gpus": "= 2", "capabilities:gpus": 2, "pci_passthrough:alias": "a1:1"}}) == []


def test_an_id_that_is_none_is_nobodys():
    """Lost: which of two slips is to be mended: one without a right id takes none from another."""
    own = {"a": {"flavorid": [7]}, "b": {"flavorid": [7]}, "c": {"flavorid": 7}, "d": {"flavorid": "7"}}
    assert [(name, one.path, "already" in one.what) for name, one in table_defects(own, {})] == [
        ("a", ("flavorid",), False),
        ("b", ("flavorid",), False),
        ("d", ("flavorid",), True),
    ]
    # one of one's own takes the place of a default of its name, and its id
    defaults = {"x": {"flavorid": 1}, "y": {"flavorid": 2}, "odd": 5}
    assert table_defects({"x": {"flavorid": 3}, "z": {"flavorid": 1}}, defaults) == []
    assert [name for name, _one in table_defects({"z": {"flavorid": 2}}, defaults)] == ["z"]


@pytest.mark.parametrize(
    ("requirement", "sound"),
    [
        *[("=", False), ("= x", False), ("= 2", True), ("== 2.5", True), ("s==", False), ("s== x", True)],
        *[("<or>", False), ("<or> a", True), ("<in>", False), ("fermi", True), ("", True), (2, True), (None, False)],
    ],
)
def test_what_no_value_meets_is_a_slip(requirement, sound):
    """Lost: why no node fits, as the flavor asks for what none can have."""
    assert (defect(requirement) is None) is sound


def test_an_operator_takes_the_word_behind_it():
    """Lost: nodes that have what was asked for, and not a word that stands behind it by chance."""
    assert satisfies("sse4", "<in> sse4 aes") is True
    assert satisfies("aes", "<in> sse4 aes") is False
    assert satisfies("x", "s==") is False
    assert satisfies(2, "=") is False
    with pytest.raises(BadInput, match="requirement: '<or>' has nothing to compare with"):
        satisfies("x", "<or>")
    with pytest.raises(BadInput, match=r"compares texts, and .* is a list"):
        satisfies(["x"], "s< x")


def test_a_flavor_without_a_name_is_named_flavor():
    """Lost: which of several flavors is wrong, where it has a name."""
    for unnamed in ({"vcpus": -1}, {"vcpus": -1, "name": ""}):
        with pytest.raises(BadInput, match=r"^flavor: vcpus is -1"):
            validate(unnamed)
    with pytest.raises(BadInput, match=r"^flavor x: vcpus is -1"):
        validate({"name": "x", "vcpus": -1})
