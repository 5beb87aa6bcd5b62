# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The conversation with a PDU's terminal, whatever else its process has open."""

from __future__ import annotations

import os
import re
import resource
import signal
from contextlib import ExitStack
from types import SimpleNamespace

import pexpect
import ptyprocess
import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Lost
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import terminal
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.terminal import Line


def test_a_session_beside_a_thousand_open_files():
    """Lost: a request for a thousand boards, whose locks are held while their PDU is spoken to."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
        for _file in range(1100):
            stack.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        line = Line("pdu-t", ["sh", "-c", "printf 'User Name : '; read name"], "secret", Deadline(60))
        stack.callback(line.close)
        assert line.read("user")[0] == "user"


def test_what_is_typed_is_on_the_screen_only_where_the_pdu_puts_it():
    """Lost: which words are the PDU's; what we type would be read as its answer."""
    asks = "printf 'User Name : '; read name; printf 'Password  : '; read word; printf 'User Name : '; read name"
    line = Line("pdu-t", ["sh", "-c", asks], "secret", Deadline(60))
    try:
        assert line.read("user") == ("user", "User Name : ")
        line.send("apc")
        assert line.read("password") == ("password", "Password  : ")
        line.send("secret", secret=True)
        assert line.read("user") == ("user", "User Name : ")
    finally:
        line.close()


def test_a_pdu_that_logs_us_off_amid_a_long_list_is_asked_again():
    """Lost: the rows of a list that were not shown; half of it would be taken for all outlets that there are."""
    asks = "printf '1- Outlet 1\\n----\\nPress <ENTER> to continue...'; read more; printf '\\nUser Name : '; read name"
    line = Line("pdu-t", ["sh", "-c", asks], "secret", Deadline(60))
    try:
        with pytest.raises(Lost, match=r"pdu-t: it logged us off; last seen: User Name :: look at the PDU"):
            line.read_pages("cli")
    finally:
        line.close()


def test_a_prompt_for_the_next_page_that_is_drawn_again_is_answered_once():
    """Lost: the screen that is spoken to; an ENTER too many draws a menu twice, and what follows is read one late."""
    more, menu = "printf '\\n    Press <ENTER> to continue...'", "printf '\\n 1- Outlet 1%s\\n> '"
    asks = f'printf Done.; {more}; read more; {more}; read -t 1 much; {menu} "${{much+ $?}}"; read at'
    line = Line("pdu-t", ["bash", "-c", asks], "secret", Deadline(60))
    try:
        assert line.read("more")[0] == "more"
        line.send("")
        words = line.read_pages("menu")[1].split()
        assert words == ["Press", "<ENTER>", "to", "continue...", "1-", "Outlet", "1", "142", ">"]
    finally:
        line.close()


def test_what_is_told_of_a_pdu_that_says_no_more():
    """Lost: what it last said, in words and without lines that only draw; and for how long it was waited for."""
    line = Line("pdu-t", ["cat"], "secret", Deadline(60))
    line.close()
    line.screen = "------ Outlets ------\n\n  1- secret  ON\n --- \n"
    told = "; last seen: ------ Outlets ------ | 1- ********  ON: look at the PDU, or raise timeout"
    assert str(line.lost("the session ended")) == f"pdu-t: the session ended{told}"
    late = str(line._no_answer(Deadline(60)))
    assert re.fullmatch(rf"pdu-t: no answer within \d+\.\d s{re.escape(told)}", late)
    assert str(line._no_answer(Deadline(0))) == f"pdu-t: its time was up before it could answer{told}"


def test_a_program_that_a_busy_kernel_has_not_ended_yet_is_waited_for(monkeypatch):
    """Lost: a PDU's answer, for a traceback: pexpect gives a killed program 20 ms, a busy machine takes longer."""

    def killed(child, force=False):
        child.kill(signal.SIGKILL)
        return False  # what pexpect says where the program is not gone in that time

    line = Line("pdu-t", ["sh", "-c", "trap '' HUP INT; echo; while :; do sleep 0.1; done"], "xyzzy", Deadline(60))
    monkeypatch.setattr(ptyprocess.PtyProcess, "terminate", killed)
    line._child.read_nonblocking(1, 30)
    line.close()
    assert not line._child.isalive()


def test_a_killed_program_is_waited_for_no_longer_than_it_takes(monkeypatch):
    """Lost: a second of each session with a PDU, on a machine that is busy."""
    spent = [0.0]  # seconds, by a clock that only its sleeps move

    def close(force):
        raise pexpect.ExceptionPexpect("not gone yet")

    def sleep(seconds):
        spent[0] += seconds

    line = Line("pdu-t", ["cat"], "secret", Deadline(60))
    line.close()
    monkeypatch.setattr(terminal, "time", SimpleNamespace(sleep=sleep))
    line._child = SimpleNamespace(close=close, isalive=lambda: spent[0] < 0.05)
    line.close()
    assert 0.05 <= spent[0] < 0.3
