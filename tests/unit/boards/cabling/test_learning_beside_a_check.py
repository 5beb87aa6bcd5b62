# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""While one checks the wiring of a board (cabling node=…), another learns outlets, or checks another board, as two
operators or two jobs of AWX do. If this fails, each takes the other's boards for its own outlet's, and
prints them as lines to be pasted into tftp_proxy_boards.
"""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.cabling import (
    cabling,
    learning,
    outlet_tests,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.tests.unit.boards.cabling.test_learning import learn, one, quick

__all__ = ["quick"]


def check(lab, board):
    with lab.proxy() as proxy:
        return cabling.check(proxy, [board], cabling.Options(timeout=6))


def checked(lab, board, outlet):
    """A check of this board in another process, whose outlet is on by now; returns what reads its result."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reader)
            os.write(writer, json.dumps(check(lab, board), default=str).encode())
        finally:
            os._exit(0)
    os.close(writer)
    deadline = Deadline(30)
    while outlet not in lab.on and not deadline.passed:
        deadline.nap()

    def result():
        with open(reader, "rb") as answer:
            said = json.loads(answer.read())
        os.waitpid(child, 0)
        return said

    return result


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("learns", [False, True])
def test_neither_takes_the_others_board_for_its_own(lab, monkeypatch, right, learns):
    """Lost: a right wiring, for lines that name an outlet which feeds nothing; or two boards that are "several"."""
    monkeypatch.setattr(learning.Learning, "_listen", lambda self: None)
    monkeypatch.setattr(outlet_tests, "PDU", 60.0)
    # board 0 hangs on outlet 2 of pdu-a; of the wrong outlet nobody knows that it feeds nothing
    place = ("pdu-a", "2") if right else ("pdu-b", "7")
    lab.config["boards"]["0"].update(pdu=place[0], outlet=place[1])
    lab.config["boards"]["0"]["fake"] = {"tftp": 3.0, "nfs": 4.0, "running": 5.0} if right else {"feeds": []}
    if not learns:
        lab.config["boards"]["7"].update(pdu="pdu-a", outlet="1")
    lab.write()
    result = checked(lab, 0, place)
    if learns:
        assert one(learn(lab, "pdu-a:1", timeout=6))["found"] == [7]
    else:
        assert [found["verdict"] for found in check(lab, 7)["boards"]] == ["right"]
    (found,) = result()["boards"]
    assert (found["verdict"], found["found"]) == (("right", [0]) if right else ("nothing", [])), found
