# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of a site's own device in the inventory. If these fail, a slip in it is found when a board's power is cut
and its state reads as on.
"""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.own_tables import (
    wrong_keys,
    wrong_states,
)

USUAL = dict(is_on=["on", "1"], is_off=["off", "0"])


def test_a_key_that_nobody_reads_is_named():
    """Lost: a setting that seems to be there."""
    assert list(wrong_keys("http", {"on": 1, "onn": 2}, ["on", "off"])) == [
        ("its http has an unknown key onn", "write on")
    ]


def test_yamls_bare_word_is_explained():
    """Lost: an hour of a person who wrote `on:` and reads of `True`."""
    found = list(wrong_keys("http", {True: 1, "False": 2}, ["on", "off"]))
    assert found == [
        ("its http has a key True", "put on in quotes: YAML takes the bare word for that"),
        ("its http has a key False", "put off in quotes: YAML takes the bare word for that"),
    ]


def test_a_value_for_both_states_is_refused():
    """Lost: whether an outlet is on."""
    assert list(wrong_states("http", {}, USUAL)) == []
    assert list(wrong_states("http", {"is_on": ["off"]}, USUAL)) == [
        ('its http has "off" for on and for off', "give is_on and is_off, each with values of its own")
    ]
    assert list(wrong_states("http", {"is_on": [1], "is_off": [True]}, USUAL)) == [], "JSON tells these two apart"


def test_what_is_no_list_is_refused():
    """Lost: each letter of a word as a state of its own."""
    [(what, way)] = wrong_states("http", {"is_on": "on"}, USUAL)
    assert (what, way) == (
        "its http has no list for is_on",
        'give the values of the state, such as is_on: ["on", "1"]',
    )
    assert len(list(wrong_states("http", {"is_off": []}, USUAL))) == 1
