# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a session with a PDU ends. Whole sessions with emulated PDUs are in test_apc.py."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Lost
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.apc import Apc
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.apc_cli import CommandLine
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.terminal import MARKS


class Played:
    """A line and what speaks on it, of which one may find that the PDU is gone."""

    def __init__(self, fails=None):
        self.fails, self.said = fails, []

    def _says(self, word):
        self.said.append(word)
        if word == self.fails:
            raise Lost("it hung up", "pdu-t", "look at it")

    def logout(self, deadline):
        assert deadline.seconds >= 1
        self._says("logs out")

    def hung_up(self, deadline):
        self._says("waits for the end")

    def close(self):
        self._says("closes")


@pytest.mark.parametrize(
    ("fails", "said"),
    [
        (None, ["logs out", "waits for the end", "closes"]),
        ("logs out", ["logs out", "closes"]),
        ("waits for the end", ["logs out", "waits for the end", "closes"]),
    ],
)
def test_a_session_is_over_when_the_pdu_says_so(fails, said):
    """Lost: the one session of a PDU, for minutes, where the line is cut before it has read that we leave."""
    pdu, line = Apc("pdu-t", {}, {}, Deadline(0)), Played(fails)
    pdu._line = pdu._speak = line
    pdu.logout()
    assert line.said == said
    pdu.logout()
    assert line.said == said, "there is nothing more to leave"


def test_a_command_line_is_left_by_its_own_word():
    """Lost: the same, for a word that it does not know leaves us where we are."""
    sent = []
    CommandLine(SimpleNamespace(marks=dict(MARKS), screen="apc>", send=sent.append)).logout(Deadline(1))
    assert sent == ["exit"]
