# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is known of a PDU with two dialects. If these fail, one PDU is spoken to as another one understands it."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.apc import Apc
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.known_dialect import KnownDialect

PLACE = dict(host="10.0.0.5", port="", username="apc")


@pytest.fixture
def known(tmp_path):
    one = KnownDialect(str(tmp_path), "rack/3", PLACE)
    assert one.outlets is None
    one.note({"2", "1"})
    return one


def test_what_was_seen_is_known_until_it_is_forgotten(known):
    """Lost: the second login at each request, or the way back from a PDU that has changed."""
    assert known.outlets == {"1", "2"}
    known.forget()
    known.forget()
    assert known.outlets is None


@pytest.mark.parametrize("other", [dict(host="10.0.0.6"), dict(port="2323"), dict(username="jo")])
def test_of_another_device_or_account_nothing_is_known(known, other):
    """Lost: outlets of a PDU that has the name of one that was there before."""
    assert known._replace(place={**PLACE, **other}).outlets is None
    assert known._replace(name="rack_3").outlets is None, "whose file has the same name"


def test_a_pdu_at_another_address_is_another_one(tmp_path):
    """Lost: outlets of a PDU that is switched as the one whose name it got."""

    def at(**settings):
        driver = Apc("pdu-a", settings, {"username": "apc"}, Deadline(60))
        driver.run_folder = str(tmp_path)
        return driver._known

    at(host="10.0.0.5").note({"1"})
    assert at(host="10.0.0.5").outlets == {"1"}
    assert at(host="10.0.0.6").outlets is None
    assert at(host="10.0.0.5", port=2323).outlets is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"name": "rack/3", "place": null, "outlets": 7}', "\0"])
def test_a_file_that_is_damaged_is_none(known, tmp_path, text):
    """Lost: a session, to a hint."""
    (path,) = tmp_path.glob("*/*.json")
    path.write_text(text)
    assert known.outlets is None


def test_a_hint_that_cannot_be_kept_is_none(tmp_path):
    """Lost: power, on a full disk."""
    one = KnownDialect(str(tmp_path / "file" / "below"), "pdu-a", PLACE)
    (tmp_path / "file").write_text("")
    one.note({"1"})
    one.forget()
    assert one.outlets is None
