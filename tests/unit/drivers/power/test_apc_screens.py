# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists of outlets as menus draw them: read whole, or not at all."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.apc_screens import Screen, Unread
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.terminal import plain

MASTER = "Master Control/Configuration"


def drawn(*rows, title="Outlet Control/Configuration"):
    """A screen with these lines, each behind its number where it has none of its own."""
    return Screen(f"3\n\n------- {title} -------\n\n" + "\n".join(rows) + "\n\n     <ESC>- Back, <ENTER>- Refresh\n> ")


def row(number, name, state):
    return f"{number:6}- {name:<32} {state}"


TWO = row(1, "Lamp", "ON"), row(2, "Fan", "OFF")


def test_rows_and_the_entry_that_follows_them():
    """Without it, nobody could say which number stands for which outlet, and which for all of them."""
    rows, master = drawn(*TWO, row(3, "Pump", "PENDING"), row(4, "a -> b (old)", "OFF*"), f"     5- {MASTER}").read()
    assert [(one.number, one.name, one.state) for one in rows] == [
        ("1", "Lamp", "on"),
        ("2", "Fan", "off"),
        ("3", "Pump", "pending"),
        ("4", "a -> b (old)", "off"),
    ]
    assert master == "5"
    assert drawn(*TWO).read()[1] is None


@pytest.mark.parametrize("state", ["*ON", "*OFF", "ON*", "OFF *"])
def test_a_star_is_beside_the_column_of_states(state):
    """Without it, the list of a firmware that marks the outlets it is about to switch could not be read."""
    star = f"     3- {'Pump':<31} {state}" if state[0] == "*" else row(3, "Pump", state)
    assert drawn(*TWO, star).read()[0][2].state == state.strip(" *").lower()


@pytest.mark.parametrize(
    "name",
    [
        MASTER,
        f"3- {MASTER}",
        "Logout",
        "Control Outlet",
        "1- Immediate Off",
        "> ",
        "---- x ----",
        "Outlet : 2",
        "Lamp ON",
    ],
)
def test_names_are_names(name):
    """Without it, whoever may name an outlet could make it the way to all of them."""
    screen = drawn(row(1, "Lamp", "ON"), row(2, name, "OFF"), f"     3- {MASTER}")
    rows, master = screen.read()
    assert [(one.number, one.name) for one in rows] == [("1", "Lamp"), ("2", name.strip())]
    assert master == "3"
    assert screen.find("logout|control|immediate|master") is None


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ((TWO[0], row(2, "Fan", "REBOOT"), f"     3- {MASTER}"), "no state that is known"),
        ((TWO[0], "     2- Fan", f"     3- {MASTER}"), "no state that is known"),
        ((TWO[0], f"     9- {MASTER}"), "where 2 was expected"),
        ((TWO[0], f"     2- {MASTER}", row(3, "Fan", "ON")), "follows the entry for all"),
        ((TWO[0], row(3, "Fan", "OFF")), "where 2 was expected"),
        ((*TWO, TWO[1]), "where 3 was expected"),
        ((TWO[1], TWO[0]), "where 1 was expected"),
        ((TWO[0], "        Fan                 OFF", f"     2- {MASTER}"), "is no row"),
        ((TWO[0], row(2, "Fan", "OFF") + row(3, "Pump", "ON")), "may be two rows"),
        ((*TWO, "     3- Lamp ON", f"     4- {MASTER}"), "may have no state"),
        ((*TWO, row(3, "Pump", "ON"), "     4- Lamp   OFF", f"     5- {MASTER}"), "may have no state"),
        ((f"     1- {MASTER}",), "no state that is known"),
    ],
)
def test_a_list_with_anything_else_is_not_read(rows, why):
    """Without it, a row that was not understood would leave the entry for all outlets to a user of a few of them."""
    with pytest.raises(Unread, match=why):
        drawn(*rows).read()


def test_pages_are_one_screen():
    """Without it, the second page of a list, with a title of its own, would begin at outlet 23."""
    title, more = "------- Outlet Control/Configuration -------", "        Press <ENTER> to continue..."
    pages = f"{title}\n\n{TWO[0]}\n{more}\n\n{title}\n\n{TWO[1]}\n     3- {MASTER}\n> "
    assert len(Screen(pages).read()[0]) == 2
    assert Screen(f"{title}\n{TWO[0]}\n> \n{title}\n{TWO[0]}\n{TWO[1]}\n> ").read()[0][1].name == "Fan"


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("a\r\nb\rc\nd\r\r\ne", "a\nb\nc\nd\ne"),
        ("\x1b]0;apc> \aapc>", "apc>"),
        ("\x1b]2;apc> \x1b\\apc>", "apc>"),
        ("\x1b[2J\x1b[1;31mON\x1b[0m\a\x00", "ON"),
        ("\x1b(B\x1b>x\x1b\r\n> ", "x\n> "),
        ("a\tb ü 😀", "a b ü 😀"),
    ],
)
def test_what_a_person_sees(text, seen):
    """Without it, a prompt in a window's title would be answered, and a bare return would make two rows one."""
    assert plain(text) == seen


def test_whose_screen_it_is():
    """Lost: the proof that an order goes to the outlet that was chosen, or to all of them and none other."""
    one = Screen("---- Lamp ----\n\n  Outlet : 12\n\n 1- Immediate On\n> ")
    assert (one.outlets, one.title, one.is_list) == ({"12"}, "Lamp", False)
    assert Screen("---- a ----\n Outlet: 1\n Outlet :2\n Outlet : 3x\nno Outlet : 4\n> ").outlets == {"1", "2"}
    assert Screen("> ").outlets == set()


@pytest.mark.parametrize(
    ("items", "title", "number"),
    [
        (["1- Device Manager", "2- Logout"], r"^log ?out\b", "2"),
        (["1- Device Manager", "2- LOGOUT now"], r"^log ?out\b", "2"),
        (["1- Logout", "2- Logout"], "logout", None),
        (["1- Logout", "1- Device"], "logout", None),
        (["1- Device"], "logout", None),
        (["1- Lamp     ON", "2- Logout"], "logout", None),
        (["1- Logout", "2- Master Control"], "logout", None),
    ],
)
def test_an_item_is_found_where_there_is_one(items, title, number):
    """Lost: the way; or an item of another name, or one of two, is chosen."""
    assert Screen("---- Menu ----\n" + "\n".join(items) + "\n> ").find(title) == number
