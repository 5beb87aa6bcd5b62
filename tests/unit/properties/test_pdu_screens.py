# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PDUs that say anything at all. If these failed, a firmware that nobody has seen, or a line of noise, would end a play
in a traceback, hold it for ever, or put the PDU's password on a screen.

The driver's own conversation is used, down to where it reads from a terminal: what comes from there is made here.
"""

from __future__ import annotations

import itertools
import json
from types import SimpleNamespace

import pexpect
import pytest
from hypothesis import strategies as st
from pexpect.spawnbase import SpawnBase

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.apc import Apc

PASSWORD = "Xq-secret-7"
#: More than any way through known menus takes; who sends more will never end.
MOST_SENT = 500
MAIN = "\r\n------- Control Console -----\r\n\r\n     1- Device Manager\r\n     4- Logout\r\n\r\n> "
DEVICE = "\r\n------- Device Manager -----\r\n\r\n     1- Phase Management\r\n     2- Outlet Management\r\n> "
LIST = (
    "\r\n------- Outlet Control/Configuration -----\r\n\r\n     1- Lamp          ON\r\n     2- Outlet 2  OFF*\r\n"
    "     3- Master Control/Configuration\r\n\r\n     <ESC>- Back\r\n> "
)
OUTLET = "\r\n------- Lamp -----\r\n\r\n        Name : Lamp\r\n        Outlet : 1\r\n        State : ON\r\n\r\n"
OUTLET += "     1- Control Outlet\r\n     2- Configure Outlet\r\n> "
CONTROL = "\r\n------- Control Outlet ---\r\n\r\n     1- Immediate On\r\n     2- Immediate Off\r\n     3- Cancel\r\n> "
SCREENS = [
    *(MAIN, DEVICE, LIST, OUTLET, CONTROL),
    "\r\n        Enter 'YES' to continue or <ENTER> to cancel : ",
    "\r\n        Command successfully issued.\r\n\r\n        Press <ENTER> to continue...",
    "\r\nE000: Success\r\n 1: Lamp: On\r\n 2: Outlet 2: Off*\r\napc>",
    "\r\nE000: Success\r\nowner@apc>",
    "\r\nE102: Parameter Error\r\napc>",
    "\r\nUser Name : ",
    "\r\nPassword  : ",
    "\r\nAnother user is logged in to this device.\r\n",
    "\r\nThe Switched Rack PDU is still initializing.\r\n> ",
    f"\r\n{PASSWORD}\r\n> ",
    f"\r\n 1- {PASSWORD} ON\r\n> ",
    "",
]
NOISE = st.binary(max_size=60) | st.text(max_size=30).map(str.encode)
NOISE |= st.sampled_from([b"\xff\xfb\x01", b"\x1b[2J", b" " * 3000, b"1- ON " * 300, b"\r\n" * 300, b">\r\n>", b"\x80"])


@st.composite
def screens(draw):
    """(screens in their order, whether they go round for ever, whether the PDU hangs up after the last)."""
    login = [b"\r\nUser Name : ", b"\r\nPassword  : "] if draw(st.integers(0, 9)) else []
    shown = []
    for screen in draw(st.lists(st.sampled_from(SCREENS), max_size=14)):
        data = screen.encode()
        if not draw(st.integers(0, 3)):
            at = draw(st.integers(0, len(data)))
            data = data[:at] + draw(NOISE) + data[at + draw(st.integers(0, 10)) :]
        shown.append(data)
    return login + shown, draw(st.booleans()), draw(st.booleans())


class Paper(SpawnBase):
    """A terminal behind which there is a list of screens: each line that is sent brings the next."""

    def __init__(self, shown, for_ever, hangs_up):
        super().__init__(encoding="utf-8", codec_errors="replace")
        self.delayafterread = None
        self.ptyproc = SimpleNamespace()
        self._screens = itertools.cycle(shown) if for_ever and shown else iter(shown)
        self._hangs_up = hangs_up
        self._coming = next(self._screens, b"")
        self.sent = []

    def send(self, text):
        self.sent.append(text)
        assert len(self.sent) < MOST_SENT, "it goes on for ever"
        self._coming += next(self._screens, b"")

    def read_nonblocking(self, size=1, timeout=None):
        if not self._coming and self._hangs_up:
            self.flag_eof = True
            raise pexpect.EOF("hung up")
        if not self._coming:
            raise pexpect.TIMEOUT("silent")
        data, self._coming = self._coming[:size], self._coming[size:]
        return self._decoder.decode(data, final=False)

    def close(self, force=True):
        """Nothing is open."""


@pytest.fixture
def converse(monkeypatch):
    """A function that has the driver read and switch at a PDU made of paper."""

    def run(paper):
        terminal = Paper(*paper)
        monkeypatch.setattr(pexpect, "spawn", lambda *args, **kwargs: terminal)
        session = Apc("pdu-t", {"host": "pdu"}, {"username": "apc", "password": PASSWORD}, Deadline(20))
        said = []
        try:
            with session:
                said.append(session.status())
                said.append({outlet: list(answer) for outlet, answer in session.switch(["1"], "off").items()})
                said.append(session.status())
        except HeteroError as error:
            said.append([str(error), error.failure])
        assert PASSWORD not in json.dumps(said)
        for status in said:
            if isinstance(status, dict):
                states = {state if isinstance(state, str) else "answer" for state in status.values()}
                assert states <= {"on", "off", "answer"}

    return run


def test_screens_in_any_order(try_all, converse):
    try_all(900, screens(), converse)


def test_noise(try_all, converse):
    noise = st.lists(NOISE, max_size=8)
    login = [b"login: ", b"password: "]
    shown = noise.map(lambda shown: (login + shown, False, True)) | noise.map(lambda shown: (shown, True, False))
    try_all(200, shown, converse)


@pytest.mark.parametrize("screen", [*SCREENS, "".join(SCREENS[4:7]), SCREENS[6] + SCREENS[0]])
def test_one_screen_for_ever(converse, screen):
    """A PDU gone wrong may show one and the same screen, or one page more, as often as it is asked."""
    login = [b"\r\nUser Name : ", b"\r\nPassword  : ", MAIN.encode()]
    converse((itertools.chain(login, itertools.repeat(screen.encode())), False, False))
