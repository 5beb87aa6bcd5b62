# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What any program in between says of a PDU, and what is kept of it; the program is played.

Tests drivers/power/program.py.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import (
    BadInput,
    HeteroError,
    Lost,
    TimedOut,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.output import MOST_OF_OTHERS, TooMuch
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import script
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.driver import Answer
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.program import KEPT
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.script import Script


@pytest.fixture
def pdu(monkeypatch, tmp_path):
    """Behind a script that ends so, one after the other: (exit code, output, errors) or an error."""
    path = tmp_path / "my_pdu"
    path.write_text("")
    path.chmod(0o755)

    def make(*ends, seconds=60.0, **secrets):
        settings = {"script": str(path), "host": "10.0.100.9", "outlets": ["5", 6]}
        one, left = Script("pdu-t", settings, secrets, Deadline(seconds)), list(ends)
        one.asked = []

        def ended(argv, thing, remedy, limits, said):
            one.asked.append((*argv[1:], said))
            assert (argv[0], thing, limits.most) == (str(path), "pdu-t", MOST_OF_OTHERS)
            assert 0 < limits.seconds <= 60
            end = left.pop(0)
            if isinstance(end, Exception):
                raise end
            return SimpleNamespace(returncode=end[0], stdout=end[1], stderr=end[2])

        monkeypatch.setattr(script, "ended", ended)
        one.login()
        return one

    return make


def test_what_a_script_is_asked(pdu):
    """Lost: the outlet or the order that was meant; or the credential, which no other way tells it."""
    one = pdu(
        *[(0, "is ON", "")] * 2, *[(0, "done", "")] * 3, (1, "", "stuck"), username="u", password="", community="c d"
    )
    assert one.status() == {"5": "on", "6": "on"}
    assert one.switch(["5", "6"], "on") == dict.fromkeys(["5", "6"], Answer(True, "done"))
    assert one.switch(["5", "6"], "off") == {"5": Answer(True, "done"), "6": Answer(False, "stuck")}
    modes = [("5", "9"), ("6", "9"), ("5", "1"), ("6", "1"), ("5", "2"), ("6", "2")]
    assert one.asked == [("10.0.100.9", *mode, "username=u\ncommunity=c d\n") for mode in modes]


@pytest.mark.parametrize(
    ("code", "said", "state"),
    [
        (0, "on", "on"),
        (0, "off", "off"),
        (2, "it is OFF", "off"),
        (2, "on", None),
        (1, "off", None),
        (1, "on", None),
        (0, "", None),
        (0, "on 5", None),
    ],
)
def test_only_what_is_said_clearly_is_a_state(pdu, code, said, state):
    """Lost: a board is taken for off that runs."""
    one = pdu((code, said, ""), (code, said, ""))
    if state:
        assert one.status() == {"5": state, "6": state}
    else:
        words = (
            rf"outlet 5 of pdu-t: the script ended with {code} and said: {said}.*let its last word be on or off for m"
        )
        with pytest.raises(HeteroError, match=words):
            one.status()


def test_what_was_heard_before_the_time_was_up_is_told(pdu):
    """Lost: what a program said before it hung, or the one before it; or the password, which it said, too."""
    late = TimedOut("too long", "pdu-t", "", said="\n  board xyzzy-1957 hangs\nmore\n")
    one = pdu((0, "on", ""), late, TimedOut("too long", "pdu-t", ""), password="xyzzy-1957")
    with pytest.raises(
        TimedOut, match=r"^pdu-t: its script did not end within \d+\.\d s; last heard: board \*{8} hangs: look"
    ):
        one.status()
    with pytest.raises(TimedOut, match=r"its script did not end within .*; last heard: board \*{8} hangs: ") as caught:
        one.switch(["5"], "on")
    assert caught.value.facts["said"] == ""
    one.deadline = Deadline(0)
    with pytest.raises(TimedOut, match=r"no time left to run its script; last heard: board \*{8} hangs: raise timeout"):
        one.status()
    assert len(one.asked) == 3
    with pytest.raises(
        TimedOut, match=r"^pdu-t: its script did not end within \d+\.\d s: look at its script, or raise ti"
    ):
        pdu(TimedOut("too long", "pdu-t", "")).status()


def test_what_a_program_without_end_said_is_kept_without_the_password(pdu):
    """Lost: what it prints without end; or the password in it."""
    much = TooMuch("printed more than 4096 KiB", "pdu-t", "look", said="password xyzzy-1957\n")
    with pytest.raises(TooMuch, match="pdu-t: printed more than 4096 KiB: look") as caught:
        pdu(much, password="xyzzy-1957").status()
    assert caught.value.facts["said"] == "password ********\n"


def test_which_error_a_hung_program_is(pdu):
    """Lost: that a fence agent without end is asked again, as a PDU that was lost is."""
    one = pdu(TimedOut("too long", "pdu-t", ""))
    one._hung = Lost
    with pytest.raises(Lost):
        one.status()


@pytest.mark.parametrize(
    ("settings", "keys", "words"),
    [
        ({"host": "h"}, ["script"], "'' is no script: give the path of its script"),
        ({"script": "my_pdu", "host": "-h"}, ["script", "host"], "'my_pdu' is no script"),
        ({"script": "/nowhere/x", "host": "h"}, ["script"], "program /nowhere/x is not installed: put it there on"),
        (
            {"script": __file__, "host": "h"},
            ["script"],
            "program .* cannot be run .Permission denied",
        ),
        ({"script": "/bin/true", "host": "-h"}, ["host"], "'-h' is no host"),
        ({"script": "/bin/true"}, [], "a script does not tell which outlets there are: name its outlets"),
        ({"script": "/bin/true", "host": 7}, [], "a script does not tell which outlets there are: name its outlets"),
    ],
)
def test_what_is_wrong_is_told_with_the_setting_that_it_is_of(settings, keys, words):
    """Lost: which setting of a PDU to correct."""
    assert [key for key, _error in Script.wrong("pdu-t", settings)] == keys
    with pytest.raises(HeteroError, match=f"pdu-t: {words}") as caught:
        Script("pdu-t", settings, {}, Deadline(1)).login()
    assert isinstance(caught.value, BadInput) == (" is no " in words or "does not tell" in words)


def test_of_a_program_that_says_much_only_the_beginning_is_kept(pdu):
    """Lost: the memory of the node, or a screen of text for each PDU; or the password in it."""
    much = TimedOut("too long", "pdu-t", "", said=f"xyzzy-1957 {'y' * 2 * KEPT}")
    with pytest.raises(TimedOut, match=r"^pdu-t: its script did not end within .*; last heard: \*{8} yyy") as caught:
        pdu(much, password="xyzzy-1957").status()
    said = caught.value.facts["said"]
    assert said.startswith("******** yyy")
    assert len(said) <= KEPT
