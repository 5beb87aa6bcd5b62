# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way through APC's menus, screen by screen, at a PDU of paper. Emulated PDUs are in test_apc.py."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Busy, HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.apc_menus import Menus
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.driver import Answer
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.terminal import Line


def screen(title, *lines):
    return "\n".join((f"------- {title} -------", "", *lines, "> "))


MAIN = screen("Control Console", " 1- Device Manager", " 2- Network", " 4- Logout")
ROWS = " 1- Lamp          ON", " 2- Fan           OFF"
LIST = screen("Outlet Control/Configuration", *ROWS, " 3- Master Control/Configuration")
SHORT = screen("Outlet Control/Configuration", *ROWS)
ACTIONS = " 1- Immediate On", " 2- Delayed On", " 3- Immediate Off"
ONE = screen("Lamp", "  Outlet : 1", " 1- Control Outlet", " 2- Configure Outlet")
ONE_ACTIONS = screen("Control Outlet", "  Outlet : 1", *ACTIONS)
ALL = screen("Master Control/Configuration", " 1- Control all Outlets", " 2- Configure all Outlets")
ALL_ACTIONS = screen("Control of all outlets", *ACTIONS)
DONE = "Command successfully issued.\n\n Press <ENTER> to continue..."
ESC, CTRL_C = "\x1b", "\x03"
QUESTION = "{0}: this will act on {1}.\n\nEnter 'YES' to continue or <ENTER> to cancel : "
ASK_ONE, ASK_ALL = QUESTION.format("Immediate Off", "outlet 1"), QUESTION.format("Immediate Off", "all outlets")


class Paper(Line):
    """What it shows for each key in turn, which has its end of line: (key, screen, mark where that is no menu)."""

    def __init__(self, shown, *ways):
        self.name, self._password, self.screen, self.ways, self.mark = "pdu-t", "Fan", shown, list(ways), "menu"

    def send(self, text, end="\r", secret=False):
        key, self.screen, *mark = self.ways.pop(0)
        assert text + end == key
        self.mark = mark[0] if mark else "menu"

    def read(self, *marks, within=None):
        assert self.mark in marks, self.screen
        return self.mark, self.screen

    def read_pages(self, *marks):
        return self.read(*marks)


def paper(shown, *ways):
    """Menus at a PDU that shows this first."""
    one = Menus(Paper(shown, *ways))
    one.line = one._line
    return one


TO_ALL = [("3\r", ALL), ("1\r", ALL_ACTIONS), ("3\r", ASK_ALL, "confirm"), ("YES\r", DONE, "more")]
TO_ONE = [("1\r", ONE), ("1\r", ONE_ACTIONS), ("3\r", ASK_ONE, "confirm"), ("YES\r", DONE, "more")]
HOME = [("\r", ONE_ACTIONS), (ESC, ONE), (ESC, LIST)]
SAID = "Command successfully issued."


@pytest.mark.parametrize(
    ("first", "ways"),
    [
        (LIST, [("\r", LIST)]),
        (MAIN, [("1\r", LIST)]),
        (MAIN, [("1\r", screen("Device", " 1- Phase", " 2- Outlet Management")), ("2\r", LIST)]),
        # the nearest of several ways is taken
        (
            screen("Console", " 1- Device Manager", " 2- Outlet Management", " 3- Outlet Control/Configuration"),
            [("3\r", LIST)],
        ),
        (screen("Console", " 1- Device Manager", " 2- Outlet Management"), [("2\r", LIST)]),
        (screen("Console", " 1- outlet control: all"), [("1\r", LIST)]),
    ],
)
def test_the_way_to_the_list(first, ways):
    """Lost: the outlets of a firmware that has them elsewhere; or a number typed into a wrong menu."""
    one = paper(first, *ways)
    assert one.status() == {"1": "on", "2": "off"}
    assert one.line.ways == []
    assert one.listed == {"1", "2"}
    assert paper(MAIN).listed == set()


def test_a_way_that_leads_nowhere_is_given_up():
    """Lost: the play's time, in menus that lead to each other; or a key typed where no way is seen."""
    one = paper(MAIN, *[("1\r", MAIN)] * 12)
    with pytest.raises(HeteroError, match="no list of outlets"):
        one.status()
    assert one.line.ways == []
    with pytest.raises(HeteroError, match="no list of outlets"):
        paper(screen("Odd", " 1- Gadgets")).status()


@pytest.mark.parametrize(
    ("shown", "outlets", "entry"),
    [
        (LIST, ["2", "1"], "3"),
        (LIST, ["1"], None),
        (SHORT, ["1", "2"], None),
        (screen("Outlets", ROWS[0], " 2- Master Control"), ["1"], None),
    ],
)
def test_all_at_once_are_all_that_there_are(shown, outlets, entry):
    """Lost: the power of outlets that nobody named, by the entry for all of them."""
    assert paper(shown).together(outlets) == entry


def test_an_outlet_is_switched_and_the_list_is_where_it_ends():
    """Lost: what the PDU said to the order; or the next outlet's number is typed into this one's menu."""
    one = paper(LIST, *TO_ONE, *HOME)
    assert one.switch(["1"], "off") == {"1": Answer(True, SAID)}
    assert one.line.ways == []
    # the list at once, and one without a pause
    bare = screen("Lamp", "  Outlet : 1", " 1- Immediate Off")
    one = paper(SHORT, ("1\r", bare), ("1\r", ASK_ONE, "confirm"), ("YES\r", f"YES\nFan refused\n{SHORT}"))
    answer = one.switch(["1"], "off")["1"]
    assert answer.accepted is False
    assert answer.words.startswith("******** refused ---")
    assert not answer.words.endswith(">")


def test_all_are_switched_by_their_entry():
    one = paper(LIST, *TO_ALL, ("\r", ALL), (ESC, LIST))
    assert one.switch(["1", "2"], "off") == dict.fromkeys(["1", "2"], Answer(True, SAID))
    assert one.line.ways == []


def test_who_may_not_switch_all_at_once_switches_each():
    """Lost: all outlets of an account that has no entry for all, or whose entry has no such action."""
    second = screen("Fan", "  Outlet : 2", " 1- Immediate Off")
    ask = QUESTION.format("Immediate Off", "outlet 2")
    two = [("2\r", second), ("1\r", ask, "confirm"), ("YES\r", LIST)]
    for refused in ([("3\r", LIST)], [("3\r", screen("Master Control", " 1- Status")), (ESC, LIST)]):
        one = paper(LIST, *refused, *TO_ONE, *HOME, *two)
        assert set(one.switch(["1", "2"], "off")) == {"1", "2"}
        assert one.line.ways == []


@pytest.mark.parametrize(
    ("ways", "words"),
    [
        ([("1\r", screen("Fan", "  Outlet : 2", *ACTIONS))], "no outlet 1"),
        ([("1\r", LIST)], "no outlet 1"),
        ([("1\r", screen("Lamp", "  Outlet : 1", " 1- Configure"))], "no item 'Immediate Off'"),
        ([("1\r", ONE), ("1\r", screen("Fan", "  Outlet : 2", *ACTIONS))], "no outlet 1"),
        ([*TO_ONE[:2], ("3\r", MAIN)], "no question for YES"),
        ([*TO_ONE[:2], ("3\r", QUESTION.format("Immediate On", "outlet 1"), "confirm")], "no question for 'Immediate"),
        ([*TO_ONE[:2], ("3\r", QUESTION.format("Immediate Off", "outlet 2"), "confirm")], "no question for outlet 1"),
        ([*TO_ONE[:2], ("3\r", ASK_ALL, "confirm")], "no question for outlet 1"),
    ],
)
def test_a_screen_of_something_else_stops_it(ways, words):
    """Lost: the power of another board, by a number that is typed into what was not recognised."""
    one = paper(SHORT, *ways)
    with pytest.raises(HeteroError, match=words):
        one.switch(["1"], "off")
    assert one.line.ways == []


def test_an_outlet_that_is_not_on_the_list_is_not_chosen():
    with pytest.raises(HeteroError, match="no outlet 7"):
        paper(SHORT).switch(["7"], "off")


def test_an_entry_for_all_that_shows_one_outlet_is_none():
    """Lost: all outlets but one, which are told as switched."""
    one = paper(LIST, ("3\r", screen("Lamp", "  Outlet : 1", *ACTIONS)))
    with pytest.raises(HeteroError, match="no Master Control"):
        one.switch(["1", "2"], "off")


def test_a_list_that_is_not_understood_is_told_without_the_password():
    """Lost: the password, which may be an outlet's name; and why nothing is switched."""
    one = paper(screen("Outlets", " 1- Lamp          ON", " 2- Fan          REBOOT", " 3- Master Control"))
    with pytest.raises(HeteroError, match=r"nothing is switched by it \('2- \*{8} +REBOOT' has no state that is known"):
        one.switch(["1"], "off")


def test_a_pdu_that_starts_is_waited_for():
    with pytest.raises(Busy, match="pdu-t: is still initializing: wait until it has started"):
        paper(MAIN, ("1\r", "The system is still initializing\n> ")).status()


@pytest.mark.parametrize("item", ["Logout", "Log Out", "LOGOUT now"])
def test_the_way_out_is_an_item_of_the_main_menu(item):
    """Lost: the PDU's one place, until the session idles away."""
    one = paper(ONE_ACTIONS, (CTRL_C, screen("Console", " 1- Device", f" 9- {item}")), ("9\r", "Bye"))
    one.logout(Deadline(60))
    assert one.line.ways == []
    with pytest.raises(HeteroError, match="no item 'Logout'"):
        paper(LIST, (CTRL_C, screen("Console", " 1- Device"))).logout(Deadline(60))
