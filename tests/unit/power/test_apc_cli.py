# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists of outlets as command lines print them: read whole, or not at all. Whole sessions are in test_apc.py."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils.power.apc_cli import CommandLine
from ansible_collections.hetero.compute.plugins.module_utils.power.terminal import MARKS, Line


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
