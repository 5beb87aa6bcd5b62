# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said and done of an outlet that its device does not know, and of an order that a long look held up.

If these fail, a board is out of use for a wrong name of its outlet.
"""

from __future__ import annotations

import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Lost
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import outlets as outlets_file
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.driver import Answer
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.fake import Fake as Pdu
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.outlets import (
    OutletsFailed,
    session,
    set_outlets,
)
from ansible_collections.hetero.compute.tests.unit.boards.boot.test_spared_boards import _quick

__all__ = ["_quick"]

WORDS = "answers 404: Not Found"


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("verb", ["stop", "start"])
def test_a_board_whose_outlet_its_device_does_not_know_is_left_as_it_is(site, monkeypatch, verb, check):
    """Lost: a board, put out of use for a slip in its outlet's name; or the truth of a dry run."""
    monkeypatch.setattr(outlets_file, "WINDOW", 1.0)
    site.claim(0)
    if verb == "stop":
        site.run("start", 0)
    status = Pdu.status
    monkeypatch.setattr(Pdu, "status", lambda self: dict(status(self), **{"5": f"unknown ({WORDS})"}))
    monkeypatch.setattr(Pdu, "switch", lambda self, asked, state: {one: Answer(False, WORDS) for one in asked})
    before = site.record(0).state
    result = site.run(verb, 0, check=check, **(dict(keep=True) if verb == "stop" else {}))
    lines = [line["text"] for line in result["lines"]]
    assert (result["failed"], site.record(0).state) == (True, before), (lines, site.record(0).note)


def test_an_order_that_was_never_given_is_not_said_to_be_perhaps_carried_out(site, monkeypatch):
    """Lost: the truth: the last look took all the time, and the PDU was not asked."""
    site.claim(0)
    site.run("start", 0)
    asked = []
    monkeypatch.setattr(Pdu, "switch", lambda self, outlets, state: asked.append(state))
    with site.proxy() as proxy:
        settings, secrets = proxy.pdu("pdu-a")
        deadline = Deadline(3)
        with session("pdu-a", settings, secrets, deadline, proxy.config.run_folder) as pdu:

            def still(outlets):
                time.sleep(1.6)
                raise Lost("its session ended meanwhile", "pdu-a", "look")

            pdu.still = still
            with pytest.raises(OutletsFailed) as error:
                set_outlets(pdu, {"5": "off"}, deadline)
    assert asked == []
    assert "may have been carried out" not in str(error.value)
