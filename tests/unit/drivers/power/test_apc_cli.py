# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists of outlets as command lines print them: read whole, or not at all. Whole sessions are in test_apc.py."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.apc_cli import CommandLine
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.driver import Answer
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.terminal import MARKS, Line


class Printed(Line):
    """A line on which one answer was printed."""

    def __init__(self, answer, prompt):
        self.name, self.marks, self.screen = "pdu-t", dict(MARKS), f"Rack PDU APP\n\n{prompt}"
        self._password, self._answer = "On", f"{answer}\n{prompt}"

    def send(self, text, end="", secret=False):
        """It was printed before."""

    def read(self, *marks, within=None):
        assert self.marks["cli"].search(self._answer), "the prompt is not known again"
        self.screen = self._answer
        return "cli", self._answer


def status(*lines, prompt="apc>"):
    return CommandLine(Printed("\n".join(lines), prompt)).status()


@pytest.mark.parametrize("prompt", ["apc>", "APC>", "jackie@apc>", "rack-7>", "pdu(2)>"])
def test_rows(prompt):
    """Without it, a PDU that somebody gave a name, or whose outlets have odd ones, could not be used."""
    rows = [
        "E000: Success",
        "E001: state of the bank: On",
        " 1: Lamp: On",
        " 2: 4: x: Off*",
        " 3: apc>: Pending",
        " 4: E000: Success: On",
        " 9: : Off",
    ]
    assert status(*rows, prompt=prompt) == {"1": "on", "2": "off", "3": "pending", "4": "on", "9": "off"}


def test_a_list_that_began_anew():
    """Without it, a list that was printed twice would be refused, or the older of the two believed."""
    assert status(" 1: Lamp: On", "apc>E000: Success", " 1: Lamp: Off", "apc>", "apc>apc>") == {"1": "off"}


@pytest.mark.parametrize(
    "row",
    [
        " 2: Fan: Error",
        " 2: Fan",
        " 2",
        " 2:",
        " Fan: On",
        " 2: Fan: Off 3: Pump: On",
        " 2: Fan: O 3: Pump: On",
        " 2: Fan: Off 3: Pump: On\n 3: Pump: On",
        " 1: Lamp: On",
    ],
)
def test_a_list_with_anything_else_is_not_read(row):
    """Without it, half a row would be told as an outlet's state."""
    with pytest.raises(HeteroError, match="its list of outlets is not understood") as caught:
        status("E000: Success", " 1: Lamp: Off", row)
    assert "On" not in caught.value.facts["screen"], "the password is kept nowhere"


def test_a_list_of_nothing():
    """Without it, an account that may see nothing would make all outlets unknown."""
    with pytest.raises(HeteroError, match="no list of outlets"):
        status("E000: Success")


class Asked(Printed):
    """A line on which commands have answers, and where others are not known; `sent` is what was typed."""

    def __init__(self, prompt, **answers):
        super().__init__("", prompt)
        self.prompt, self.answers, self.sent = prompt, answers, []

    def send(self, text, end="", secret=False):
        self.sent.append(text)

    def read(self, *marks, within=None):
        assert "cli" in marks
        self.screen = f"{self.answers.get(self.sent[-1].split()[0], 'E101: Command Not Found')}\n{self.prompt}"
        return "cli", self.screen


@pytest.mark.parametrize(
    ("prompt", "knows", "sent"),
    [
        ("apc>", "new", ["olStatus all", "olOn 1,2", "olOff 2"]),
        ("rack-7>", "new", ["olStatus all", "olOn 1,2", "olOff 2"]),
        ("APC>", "old", ["status", "on 1,2", "off 2"]),
        # what one prompt does not know the other's words are tried for, and kept to
        ("apc>", "old", ["olStatus all", "status", "on 1,2", "off 2"]),
        ("APC>", "new", ["status", "olStatus all", "olOn 1,2", "olOff 2"]),
    ],
)
def test_what_the_two_command_lines_are_told(prompt, knows, sent):
    """Lost: each PDU of AOS 3, or of AOS 5: one knows no word of the other."""
    words = ("olStatus", "olOn", "olOff") if knows == "new" else ("status", "on", "off")
    line = Asked(prompt, **dict(zip(words, (" 1: Lamp: On\n 2: Fan: Off", "E000: Success", "\n OK \n"))))
    speaks = CommandLine(line)
    assert speaks.status() == {"1": "on", "2": "off"}
    assert speaks.switch(["1", "2"], "on") == dict.fromkeys(["1", "2"], Answer(True, "E000: Success"))
    assert speaks.switch(["2"], "off") == {"2": Answer(True, "OK")}
    assert line.sent == sent


@pytest.mark.parametrize(
    ("said", "accepted", "words"),
    [
        ("E001: Successfully Issued", True, "E001: Successfully Issued"),
        ("  Lamp\n\n  E000: Success", True, "Lamp E000: Success"),
        ("E002: Reboot required for change to take effect.", False, "E002: Reboot required for change to take effect."),
        ("E0001: Success", False, "E0001: Success"),
        ("it is OK not to", False, "it is OK not to"),
        ("E102: Parameter Error, that of", False, "E102: Parameter Error, that of"),
    ],
)
def test_whether_an_order_was_taken(said, accepted, words):
    """Lost: an outlet that was refused is waited for as one whose relay is slow."""
    assert CommandLine(Asked("apc>", olOn=said)).switch(["1"], "on") == {"1": Answer(accepted, words)}


def test_of_a_list_that_is_refused_each_is_asked_for():
    """Lost: all outlets that this account may switch, for one that it may not; or an order twice where there is one."""
    line = Asked("apc>", olOn="E104: User On is not allowed")
    refused = Answer(False, "E104: User ******** is not allowed")
    speaks = CommandLine(line)
    assert speaks.switch(["1", "2"], "on") == {"1": refused, "2": refused}
    assert line.sent == ["olOn 1,2", "olOn 1", "olOn 2"]
    del line.sent[:]
    assert speaks.switch(["1"], "on") == {"1": refused}
    assert line.sent == ["olOn 1"]


def test_only_its_own_prompt_ends_a_screen():
    """Lost: the half of a list, at the name of an outlet that looks like a prompt."""
    line = Printed("", "rack(7)>")
    CommandLine(line)
    assert [text for text in ("x\napc>", "x\nrack7>", "rack(7)> x") if line.marks["cli"].search(text)] == []
    assert all(map(line.marks["cli"].search, ("x\nrack(7)>", " rack(7)> ", "x\nrack(7)> rack(7)>")))
