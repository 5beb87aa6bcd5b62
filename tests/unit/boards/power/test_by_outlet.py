# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards by their outlets. If these fail, what a PDU tells of a board is taken for another's, or lost."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power.by_outlet import ByOutlet


def place(name):
    return name[0], name[1]


def test_those_of_an_outlet_and_of_a_pdu():
    """Lost: the boards that share an outlet, or an order of boards."""
    found = ByOutlet(["a1 x", "a2", "a1 y", "b1"], place)
    assert list(found.of("a")) == ["a1 x", "a2", "a1 y"]
    assert list(found.of("a", "1")) == ["a1 x", "a1 y"]
    assert (list(found.of("b", "2")), list(found.of("c")), list(found.of("c", "1"))) == ([], [], [])


def test_whether_any_is_meant_is_found_from_where_it_was_found_last():
    """Lost: a PDU's session, while a board still needs it; or a look at all boards for each event of one."""
    looked, found = [], ByOutlet([f"a{number}" for number in range(5)], place)

    def meant(*names):
        return lambda one: looked.append(one) or one in names

    assert found.any("a", meant("a3"))
    assert looked == ["a0", "a1", "a2", "a3"]
    assert found.any("a", meant("a3"))
    assert looked[4:] == ["a3"]
    assert found.any("a", meant("a2"))
    assert not found.any("a", meant())
    assert not found.any("b", meant("a1"))
    assert list(found.of("a")) == ["a0", "a1", "a2", "a3", "a4"], "their order stays"
