# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is typed at the login of an APC PDU, and when its other dialect is used. Real sessions are in test_apc.py."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import (
    BadInput,
    Busy,
    HeteroError,
    Lost,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import apc
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.apc_cli import CommandLine
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.apc_menus import Menus
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.driver import Answer

AOS3 = "Network Management Card AOS v3.7.3"
#: A login by telnet that ends in menus, in a command line, and at the same prompt again.
MENUS, LINE, NO = ["user", "password", "menu"], ["user", "password", "cli"], ["user", "password", "user"]


@pytest.fixture
def pdu(monkeypatch):
    """A function: a PDU that shows these marks, a list for each session. `told` is what was done, in its order."""

    def make(*sessions, screen=AOS3, outlets=("1", "2"), master=None, secrets=None, **settings):
        told, left = [], list(sessions)

        class Line:
            def __init__(self, name, argv, password, deadline):
                told.append((name, argv[0], argv[-1], password))
                self.marks, self.screen, self.words, self.heard = left.pop(0), screen, screen, ""
                self.name, self.deadline = name, deadline

            def send(self, text, secret=False):
                told.append((text, secret) if secret else text)

            def read(self, *marks):
                mark = self.marks.pop(0)
                if isinstance(mark, Exception):
                    raise mark
                assert mark in marks
                return mark, screen

            def read_pages(self, *marks):
                told.append("pages")
                return self.read(*marks)

            def unknown(self, wanted):
                return HeteroError(f"no {wanted}", self.name, "report it")

            def hung_up(self, deadline):
                told.append("waits for the end")

            def close(self):
                told.append("closes")

        def dialect(kind):
            def switch(wanted, state):
                told.append(f"{kind}: {state} {','.join(wanted)}")
                return dict.fromkeys(wanted, Answer(True, kind))

            return lambda _line: SimpleNamespace(
                status=lambda: dict.fromkeys(outlets if kind == "cli" else ("1", "2"), "off"),
                listed={"1", "2"},
                together=lambda _wanted: master,
                switch=switch,
                logout=lambda farewell: told.append(f"{kind}: logs out"),
            )

        monkeypatch.setattr(apc.terminal, "Line", Line)
        monkeypatch.setattr(apc, "DIALECTS", {kind: dialect(kind) for kind in ("menu", "cli")})
        secrets = {"username": "jo", "password": "xyzzy"} if secrets is None else secrets
        one = apc.Apc("pdu-t", {"host": "10.0.100.2", **settings}, secrets, Deadline(60))
        one.told = told
        return one

    return make


OPENED = ("pdu-t", "telnet", "23", "xyzzy")
SECRET, SECRET_C = ("xyzzy", True), ("xyzzy -c", True)
END = ["waits for the end", "closes"]


@pytest.mark.parametrize(
    ("marks", "settings", "typed"),
    [
        (MENUS, {}, ["jo", SECRET]),
        (LINE, {"command_line": True}, ["jo", SECRET_C]),
        # the first line may be eaten by the set-up of telnet
        (["user", "user", "password", "menu"], {}, ["jo", "jo", SECRET]),
        (["password", "menu"], {"transport": "ssh", "host_key": "ssh-rsa AAAAB3"}, [SECRET]),
    ],
)
def test_what_is_typed_at_a_login(pdu, marks, settings, typed):
    """Lost: each login of a PDU; a password typed for a name is on the screen, and counts as a bad login."""
    one = pdu(list(marks), **settings)
    one.login()
    assert one.told[1:] == [*typed, "pages"]
    assert one.told[0][:2] == ("pdu-t", settings.get("transport", "telnet"))
    assert one.dialect == marks[-1]
    assert set(one.status()) == {"1", "2"}
    one.logout()
    assert one.told[-3:] == [f"{marks[-1]}: logs out", *END]


def test_an_account_without_a_password_types_none(pdu):
    one = pdu(list(MENUS), secrets={"username": "jo"})
    one.login()
    assert one.told == [("pdu-t", "telnet", "23", ""), "jo", ("", True), "pages"]


@pytest.mark.parametrize(("secrets", "words"), [({}, "no user name is known"), ({"username": "-x"}, "'-x' is no user")])
def test_a_name_that_is_none_is_typed_nowhere(pdu, secrets, words):
    """Lost: what is wrong; ssh would take the name for an option."""
    one = pdu(secrets=secrets)
    with pytest.raises(BadInput, match=words):
        one.login()
    assert one.told == []


@pytest.mark.parametrize(
    ("marks", "settings", "words"),
    [
        (NO, {}, r"refuses user 'jo' with the password given: correct the credential of pdu-t \(tftp.*$"),
        (NO, {"command_line": True}, r"correct the credential of pdu-t .*; or unset its command_line"),
        (["password", "password"], {"transport": "ssh", "host_key": "ssh-rsa AAAAB3"}, "refuses user 'jo'"),
        (["user", "password", Lost("it hung up", "pdu-t", "", ended=True, screen="")], {}, "after the password: see"),
        (["user", Lost("it hung up", "pdu-t", "", ended=True, screen="")], {}, "has no place for us"),
    ],
)
def test_a_login_that_fails_says_why(pdu, marks, settings, words):
    """Lost: whether the password is wrong, or somebody else has the PDU."""
    one = pdu(list(marks), screen="", **settings)
    with pytest.raises(HeteroError, match=words), one:
        pytest.fail("logged in")
    assert one.told[-1] == "closes"
    assert not any("logs out" in word for word in one.told)


@pytest.mark.parametrize(
    ("screen", "ours"),
    [
        ("Rack PDU APP v5", True),
        ("American Power Conversion", True),
        ("Welcome at apc.", True),
        ("Schneider Electric", True),
        ("Network Management Card", True),
        ("apcupsd on IOS", False),
        ("IOS", False),
    ],
)
def test_a_command_line_is_asked_whose_it_is(pdu, screen, ours):
    """Lost: what stands at that address; orders for outlets would be typed into a switch."""
    one = pdu(list(LINE), screen=screen)
    if ours:
        one.login()
    else:
        with pytest.raises(HeteroError, match="no command line of an APC"):
            one.login()


@pytest.mark.parametrize(
    ("settings", "screen", "master", "outlets", "goes"),
    [
        ({}, AOS3, None, ["1", "2"], True),
        ({"transport": "telnet"}, AOS3, None, ["1", "2"], True),
        ({}, AOS3, None, ["1"], False),
        ({}, AOS3, "9", ["1", "2"], False),
        ({}, "AOS v2.7", None, ["1", "2"], False),
        ({"command_line": False}, AOS3, None, ["1", "2"], False),
        ({"transport": "ssh", "host_key": "ssh-rsa AAAAB3"}, AOS3, None, ["1", "2"], False),
    ],
)
def test_who_goes_over_to_the_command_line(pdu, settings, screen, master, outlets, goes):
    """Lost: minutes for a rack whose menus are slow; or a bad login at each PDU that has no command line."""
    ways = [["password", "menu"]] if settings.get("transport") == "ssh" else [list(MENUS), list(LINE)]
    one = pdu(*ways, screen=screen, master=master, **settings)
    one.login()
    begun = len(one.told)
    answers = one.switch(iter(outlets), "on")
    kind = "cli" if goes else "menu"
    assert answers == dict.fromkeys(outlets, Answer(True, kind))
    over = ["menu: logs out", *END, OPENED, "jo", SECRET_C, "pages"] if goes else []
    assert one.told[begun:] == [*over, f"{kind}: on {','.join(outlets)}"]


def test_each_dialect_goes_by_its_name():
    """Lost: what a play tells of how a PDU was spoken to; and what speaks to it."""
    assert {"menu": Menus, "cli": CommandLine} == apc.DIALECTS


def test_who_has_gone_over_stays_there(pdu):
    """Lost: two logins for each order; the command line is not used where it shows other outlets than the menus."""
    one = pdu(list(MENUS), list(LINE))
    one.login()
    for state in ("on", "off"):
        one.switch(["1", "2"], state)
    assert one.told.count(OPENED) == 2
    assert one.told[-2:] == ["cli: on 1,2", "cli: off 1,2"]


@pytest.mark.parametrize(
    ("marks", "outlets"), [(LINE, ("1",)), (LINE, ("1", "2", "3")), (NO, ()), (["user", ValueError], ())]
)
def test_a_command_line_that_is_not_right_leaves_the_menus(pdu, marks, outlets):
    """Lost: the power of somebody else's board, at a PDU that numbers its outlets in two ways."""
    broken = [HeteroError("odd", "pdu-t", "") if mark is ValueError else mark for mark in marks]
    one = pdu(list(MENUS), broken, list(MENUS), list(MENUS), outlets=outlets)
    one.login()
    for state in ("on", "off"):
        assert one.switch(["1", "2"], state)["1"].words == "menu"
    assert one.told.count(OPENED) == 3, "it is tried once"
    assert one.told.count("closes") == 2
    assert one.told[-2:] == ["menu: on 1,2", "menu: off 1,2"]
    begun = len(one.told)
    one.logout()
    one.login()
    assert one.told[begun:] == ["menu: logs out", *END, OPENED, "jo", SECRET, "pages"]


def test_a_place_that_is_taken_on_the_way_over_is_waited_for(pdu):
    """Lost: a batch, for a colleague who logs in between our two sessions; or the way over, which is still to try."""
    one = pdu(list(MENUS), ["user", Lost("it hung up", "pdu-t", "", ended=True, screen="")], list(LINE))
    one.login()
    with pytest.raises(Busy):
        one.switch(["1", "2"], "on")
    one.logout()
    one.login()
    assert one.switch(["1", "2"], "on")["1"].words == "cli"


def test_a_pinned_key_is_there_for_the_session_and_no_longer(pdu, monkeypatch):
    """Lost: the proof that it is this PDU; or a folder for each session that there ever was."""
    one, seen = pdu(["password", "menu"], transport="ssh", host_key="ssh-rsa AAAAB3"), []
    argv = apc.terminal.argv
    monkeypatch.setattr(
        apc.terminal, "argv", lambda name, settings, user: seen.append(settings) or argv(name, settings, user)
    )
    one.login()
    path = seen[0]["known_hosts"]
    with open(path, encoding="utf-8") as file:
        assert file.read() == "10.0.100.2 ssh-rsa AAAAB3\n"
    assert os.path.basename(path) == "known_hosts"
    one.logout()
    assert not os.path.exists(os.path.dirname(path))


def test_a_key_that_is_shown_first_has_a_place(pdu, tmp_path):
    """Lost: that another key is noticed the next time; the keys of all PDUs but the last."""
    path = tmp_path / "state" / "known_hosts"
    for _login in range(2):
        pdu(["password", "menu"], transport="ssh", known_hosts=str(path)).login()
        assert path.parent.stat().st_mode & 0o777 == 0o700
        with path.open("a") as file:
            file.write("x")
    assert path.read_text() == "xx"
    pdu(["password", "menu"], transport="ssh").login()
    with pytest.raises(HeteroError, match=f"pdu-t: cannot keep its ssh host key .*: make {path}/known_hosts writable"):
        pdu(transport="ssh", known_hosts=f"{path}/known_hosts").login()


@pytest.mark.parametrize(("left", "farewell"), [(60, 3.0), (2, 2), (0, 1.0)])
def test_how_long_a_farewell_may_take(pdu, left, farewell):
    """Lost: the PDU's place, for minutes, where the time is up; or a play's time, at one that says no goodbye."""
    one = pdu(list(MENUS))
    one.login()
    times = []
    one._speak.logout = times.append
    one.deadline = Deadline(left)
    one.logout()
    assert farewell - 1 <= times[0].seconds <= farewell if left == 2 else times[0].seconds == farewell
