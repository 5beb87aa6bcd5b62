# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plug that its device does not know, on the wire. If this fails, a board is out of use for a wrong name of it."""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.tests.unit.boards.boot.test_spared_boards import _quick
from ansible_collections.hetero.compute.tests.unit.drivers.power.http_devices import TOKEN, Device

__all__ = ["_quick"]


@pytest.fixture
def home(site):
    device = Device("home_assistant", {"switch.b0": True, "switch.b1": True})
    site.config["pdus"]["pdu-a"] = dict(driver="http", api="home_assistant", host="127.0.0.1", port=device.port)
    for number in (0, 1):
        site.config["boards"][str(number)]["outlet"] = f"switch.b{number}"
    (site.folder / "credentials.json").write_text(json.dumps({"pdu-a": {"password": TOKEN}}))
    (site.folder / "credentials.json").chmod(0o600)
    site.write()
    yield device
    device.close()


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("verb", ["start", "stop"])
@pytest.mark.parametrize("how", ["no such entity", "unavailable"])
def test_an_outlet_without_a_state_ends_in_words_and_leaves_its_board(site, home, verb, check, how):
    """Lost: a board, put out of use as its plug's name is wrong or its plug is offline; or words, to a traceback."""
    site.claim(0)
    if how == "no such entity":
        home.outlets.pop("switch.b0")
    else:
        home.faults.update(body=json.dumps({"entity_id": "switch.b0", "state": "unavailable"}))
    before = site.record(0).state
    result = site.run(verb, 0, check=check, **(dict(keep=True) if verb == "stop" else {}))  # a ValueError is none
    lines = [line["text"] for line in result["lines"]]
    assert site.record(0).state == before, (lines, site.record(0).note)
    assert result["failed"], lines
