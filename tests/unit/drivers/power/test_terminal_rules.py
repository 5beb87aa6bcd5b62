# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a session with a PDU is opened and how its screens are taken apart, by rules alone: no PDU, no program."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import terminal
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.apc_menus import Menus
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.apc_screens import Row


def line(typed=None, echoes=False, password="secret"):
    one = terminal.Line.__new__(terminal.Line)
    one.name, one._password, one.screen, one.heard = "pdu-t", password, "", ""
    one._typed, one._echoes, one.marks = typed, echoes, dict(terminal.MARKS)
    return one


def options(argv):
    """What ssh is told by -o."""
    return {word.partition("=")[0]: word.partition("=")[2] for before, word in zip(argv, argv[1:]) if before == "-o"}


def test_telnet_has_no_key_that_leaves_it():
    assert terminal.argv("pdu-t", {"host": "10.0.100.2"}, "apc") == ["telnet", "-E", "10.0.100.2", "23"]
    assert terminal.argv("pdu-t", {"host": "h", "port": 2323, "transport": "telnet"}, "apc")[-1] == "2323"


def test_ssh_takes_no_setting_of_who_runs_it():
    """Lost: a play that works for one operator, or another host key taken by what stands in ~/.ssh/config."""
    argv = terminal.argv("pdu-t", {"host": "h", "transport": "ssh"}, "apc")
    assert argv[:9] == ["ssh", "-F", "/dev/null", "-e", "none", "-p", "22", "-l", "apc"]
    assert argv[-2:] == ["--", "h"]
    assert options(argv) == {
        "ControlPath": "none",
        "ConnectTimeout": "10",
        "CheckHostIP": "no",
        "PubkeyAuthentication": "no",
        "PreferredAuthentications": "password,keyboard-interactive",
        "NumberOfPasswordPrompts": "1",
        "StrictHostKeyChecking": "accept-new",
    }
    more = dict(transport="ssh", host="h", port=2222, known_hosts="/a b/known", legacy_ssh=True, host_key="ssh-rsa A")
    argv = terminal.argv("pdu-t", more, "apc")
    told = options(argv)
    assert (argv[6], told["StrictHostKeyChecking"], told["GlobalKnownHostsFile"]) == ("2222", "yes", "/dev/null")
    assert told["UserKnownHostsFile"] == '"/a b/known"'
    assert told["KexAlgorithms"].split(",")[1:] == ["diffie-hellman-group14-sha1", "diffie-hellman-group1-sha1"]
    assert told["KexAlgorithms"].startswith("+diffie-hellman-group-exchange-sha1,")
    assert told["HostKeyAlgorithms"] == "+ssh-?s?"
    assert told["Ciphers"] == "+aes256-cbc,aes192-cbc,aes128-cbc,3des-cbc"
    assert told["MACs"] == "+hmac-sha1,hmac-sha1-96,hmac-md5,hmac-md5-96"
    assert (told["IgnoreUnknown"], told["RequiredRSASize"]) == ("RequiredRSASize", "1024")


KEYS = "ssh-rsa AAAAB3Nza+/= me\necdsa-sha2-nistp256 AAAAE2Vj\n"


@pytest.mark.parametrize(
    ("settings", "where"),
    [({"host": "h"}, "h"), ({"host": "h", "port": 22}, "h"), ({"host": "h", "port": 2222}, "[h]:2222")],
)
def test_a_pinned_key_is_the_hosts(settings, where):
    """Lost: the pinned key of a PDU whose ssh has another port; ssh would know none, and refuse it."""
    text = terminal.known_hosts("pdu-t", dict(settings, host_key=KEYS))
    assert text == f"{where} ssh-rsa AAAAB3Nza+/= me\n{where} ecdsa-sha2-nistp256 AAAAE2Vj\n"


@pytest.mark.parametrize("key", ["ssh-rsa", "h ssh-rsa AAAA", "ssh-rsa BAAA", f"{KEYS}more", "ssh-rsa AAAA*"])
def test_what_is_no_key_is_not_pinned(key):
    with pytest.raises(BadInput, match="pdu-t: its host_key is no public key: give host_key as ssh-keyscan prints it"):
        terminal.known_hosts("pdu-t", {"host": "h", "host_key": key})


@pytest.mark.parametrize(
    ("mark", "screens", "others"),
    [
        (
            "user",
            ["User Name : ", "\nlogin:", "x\n  username: "],
            ["User Name : apc", "last login: monday", "a user :x"],
        ),
        (
            "password",
            ["Password  : ", "\napc@h's password: ", "(apc@h) Password: "],
            ["Password :x", "your old password: ", "Password\n"],
        ),
        (
            "menu",
            ["1- Device\n> ", "------- Title\nx\n > ", "still initializing.\n\n>"],
            ["> ", "1-Device\n> ", "1- Device\n>x", "no menu\n> "],
        ),
        ("cli", ["apc>", "\njackie@apc> ", "apc> apc>", f"{'a' * 40}>"], ["apc> x", "a b>", f"{'a' * 41}>", "> "]),
        (
            "more",
            ["1- x\n Press <ENTER> to continue...", "x\npress <enter> to continue"],
            ["Press <ENTER> to continue..."],
        ),
        ("confirm", ["Enter 'YES' to continue or <ENTER> to cancel : "], ["Enter 'YES' to continue : YES", "'YES':"]),
    ],
)
def test_what_ends_a_screen(mark, screens, others):
    """Lost: what is typed goes into a screen that was not whole, or the play waits for a prompt that is there."""
    assert [text for text in screens if line()._ending(text, [mark]) != mark] == []
    assert [text for text in others if line()._ending(text, [mark]) is not None] == []


@pytest.mark.parametrize(
    ("typed", "text", "fresh"),
    [
        (None, "1\nx", None),
        ("1", "1\nx", "\nx"),
        ("1", "\n> 1\nx", "\nx"),
        ("1", " 1 \nx", "\nx"),
        ("1", "menu\n> 1\nold\napc> 1\nnew", "\nnew"),
        ("1", "11\nx", None),
        ("1", "x 1\n", None),
        (".", "1\nx", None),
        ("1", "x\n> 1", ""),
    ],
)
def test_what_came_after_the_echo(typed, text, fresh):
    """Lost: which words are the PDU's; what is typed would be read as its answer."""
    assert line(typed)._fresh(text) == fresh


@pytest.mark.parametrize(
    ("typed", "echoes", "text", "fresh", "found", "seconds"),
    [
        ("1", True, "apc>", None, "cli", 0.5),
        ("1", False, "apc>", None, "cli", 0.05),
        ("apc", False, "User Name : ", None, "user", 0.5),
        (None, True, "apc>", None, "cli", 0.05),
        ("1", True, "1\napc>", "\napc>", "cli", 0),
        ("1", True, "1\n1- x\n>", "\n1- x\n>", "menu", 0.05),
        (None, False, "x\n <ESC>- Back, <ENTER>- Refresh\n> ", None, "menu", 0),
        (None, False, "x\nPress <ENTER> to continue...", None, "more", 0),
        (None, False, "Enter 'YES' to continue or <ENTER> to cancel : ", None, "confirm", 0),
    ],
)
def test_how_long_silence_ends_a_screen(typed, echoes, text, fresh, found, seconds):
    """Lost: half a second for each of a thousand screens, or the second half of one that paused."""
    assert line(typed, echoes)._silence(text, fresh, found) == seconds


def test_what_is_told_of_a_screen():
    """Lost: why a PDU failed; or its password, in a log that everybody reads."""
    one = line()
    assert (one.words, line(password="").masked("a secret")) == ("", "a secret")
    one.screen = "----\n  my secret is secret \n\n - - \nlast\n"
    assert one.words == "my ******** is ******** | last"
    assert (
        str(one.odd("odd")) == "pdu-t: odd: my ******** is ******** | last: operate it by hand and report this screen"
    )
    lost = one.lost("gone", ended=True)
    assert (lost.what, lost.ended) == ("gone; last seen: my ******** is ******** | last", True)
    assert lost.facts["screen"] == one.screen.replace("secret", "********")
    assert one.lost("gone").ended is False
    one.screen = "\n".join(f"{number:02}" + "x" * 98 for number in range(20))
    assert len(one.words) == 700
    one.screen = "\n".join(map(str, range(20)))
    assert one.words == " | ".join(map(str, range(8, 20)))
    one.screen = ""
    assert one.lost("gone").what == "gone; it had said nothing"
    assert one.unknown("menu").what == "its screen has no menu: an empty screen"
    for seconds, said in (
        (0.1, "its time was up before it could answer"),
        (0.2, "no answer within 0.0 s"),
        (9, "no answer"),
    ):
        assert one._no_answer(Deadline(seconds)).what.startswith(said)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("a\r\nb\rc\n\r\nd", "a\nb\nc\n\nd"),
        ("a\tb", "a b"),
        ("\x1b]0;title\x07x\x1b]0;t\x1b\\y", "xy"),
        ("\x1b[1;31mred\x1b[0m\x1b[2J\x1b(B\x1b=\x1bM.", "red."),
        ("\x00a\x07\x7f\x85b\xa0ä€", "ab\xa0ä€"),
    ],
)
def test_what_a_person_would_see(text, seen):
    assert terminal.plain(text) == seen


@pytest.mark.parametrize(
    ("text", "row", "said_before", "right"),
    [
        ("Immediate Off of outlet 2 named 'Lamp'", "Lamp", False, True),
        ("Immediate On of outlet 2 named 'Lamp'", "Lamp", False, False),
        ("Immediate Off of outlet 3 named 'Lamp'", "Lamp", True, False),
        # a name may look like a question for others
        ("Immediate Off of outlet 2 named Immediate On outlet 3", "Immediate On outlet 3", False, True),
        ("Immediate Off of outlet 2, 'Immediate On'", "Lamp", False, True),
        ('Immediate Off of outlet 2, "all outlets"', "Lamp", False, True),
        ("Immediate Off", "Lamp", True, True),
        ("Immediate Off", "Lamp", False, False),
        ("Immediate Off of all outlets", "Lamp", True, False),
        ("Immediate Off of all outlets", None, False, True),
        ("Immediate Off of outlet 2", None, True, False),
        ("Immediate Off", None, True, True),
        ("Immediate Off", None, False, False),
    ],
)
def test_who_gets_a_yes(text, row, said_before, right):
    """Lost: the power of another board, for one word typed at the wrong question."""
    menus = Menus(SimpleNamespace(screen="", unknown=lambda wanted: HeteroError(wanted, "pdu-t", "")))
    menus._named = said_before
    if right:
        menus._check_question(text, "off", row and Row("2", row, "on"))
    else:
        with pytest.raises(HeteroError, match=r"pdu-t: question for ('Immediate Off'|outlet 2|all outlets)"):
            menus._check_question(text, "off", row and Row("2", row, "on"))


@pytest.mark.parametrize(
    ("master", "is_list", "action", "did"),
    [
        ("9", False, "1", ["show 9", "act 1"]),
        # this account may not switch all at once
        ("9", True, "1", ["show 9", "back", "one 1", "one 2"]),
        ("9", False, None, ["show 9", "back", "one 1", "one 2"]),
        (None, True, "1", ["one 1", "one 2"]),
    ],
)
def test_all_outlets_are_switched_at_once_where_that_is_offered(monkeypatch, master, is_list, action, did):
    """Lost: seven screens for each outlet of a rack, or an order for all of them to one who named some."""
    done, menus = [], Menus(SimpleNamespace(screen=""))
    menus._at = SimpleNamespace(is_list=is_list)
    monkeypatch.setattr(menus, "together", lambda outlets: master)
    monkeypatch.setattr(menus, "_show", lambda text: done.append(f"show {text}"))
    monkeypatch.setattr(menus, "_action", lambda state, row: action)
    monkeypatch.setattr(menus, "_act", lambda action, state, row: done.append(f"act {action}") or "all")
    monkeypatch.setattr(menus, "_to_the_list", lambda back: done.append("back"))
    monkeypatch.setattr(menus, "_one", lambda outlet, state: done.append(f"one {outlet}") or "one")
    answer = "all" if did[-1].startswith("act") else "one"
    assert menus.switch(["1", "2"], "on") == {"1": answer, "2": answer}
    assert done == did
