# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`hetero console` at a real conserver: who attaches to an instance, or follows it, hears it and nobody after it.

Tests nodes/proxy/console.py.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import ExitStack, contextmanager

import pexpect
import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.evidence.free_boards import give_back
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records import console_logs
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import console
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import console as verb
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.instance import valid_instance
from ansible_collections.hetero.compute.tests.unit.nodes.proxy.played_consoles import conserver, eventually

__all__ = ["conserver"]

RUNS = (
    "import sys; from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.console import main; "
    "sys.exit(main(sys.argv[1:]))"
)


@pytest.fixture
def jackie(conserver):
    """jackie has board0, whose console conserver serves; her claim."""
    claim = conserver.site.claim(conserver.proxy)
    console.begin_anew(conserver.proxy, conserver.board)
    console.begin(conserver.proxy, conserver.board)
    return claim


@contextmanager
def typed(conserver, *words):
    """`hetero console` at a terminal."""
    argv = ["-c", RUNS, "--config", str(conserver.config), *words]
    child = pexpect.spawn(sys.executable, argv, timeout=30, encoding="utf-8", env=dict(os.environ, TERM="dumb"))
    try:
        yield child
    finally:
        child.close(force=True)


def ends(conserver, claim):
    """The claim ends, and the board speaks for the next one."""
    conserver.proxy.store.power_seen(conserver.board.id, "off")
    give_back(conserver.proxy, conserver.board, claim, "jackie", "look")
    conserver.say("the next tenant's secret")


def test_who_attached_to_an_instance_is_cut_off_with_its_claim(conserver, jackie):
    """Lost: what the next tenant's board says and is told, to the last one, who left a window open."""
    with ExitStack() as terminals:
        hers = terminals.enter_context(typed(conserver, "jackie"))
        hers.expect("board0: Ctrl-e c . leaves. If nothing comes of it: journalctl -u hetero-consoles")
        hers.expect(r"\[Enter")
        operators = terminals.enter_context(typed(conserver, "board0"))
        operators.expect("jackie@localhost is attached")
        hers.send("ls\r")
        eventually(conserver.serial.heard, lambda text: "ls" in text)
        conserver.serial.say("hers\r\n")
        hers.expect("hers")
        ends(conserver, jackie)
        hers.expect("jackie's claim of board0 is over")
        hers.expect(pexpect.EOF)
        assert "secret" not in hers.before
        operators.expect("the next tenant's secret")


def test_conserver_cuts_off_before_the_end_is_said(conserver, jackie):
    """Lost: the next tenant's first words, to a terminal that nobody ends, as its `hetero console` was killed."""
    with conserver.attached("jackie") as hers, conserver.attached(verb.OPERATOR) as operators:
        hers.expect("spy|attached|Enter")
        operators.expect("spy|attached|Enter")
        ends(conserver, jackie)
        hers.expect(pexpect.EOF)
        assert "Disconnected by admin" in hers.before
        assert "secret" not in hers.before
        operators.expect("the next tenant's secret")


def test_no_instance_is_called_as_who_attached_to_a_board(conserver):
    """Lost: the console of whoever looks after a board, at the end of an instance that its tenant called `operator`."""
    name = verb.OPERATOR.lower()
    with pytest.raises(BadInput):
        valid_instance(verb.OPERATOR)
    claim = conserver.site.claim(conserver.proxy, name)
    with typed(conserver, "board0") as operators, conserver.attached(name) as tenants:
        for one in (operators, tenants):
            one.expect("spy|attached|Enter")
        conserver.proxy.store.power_seen(conserver.board.id, "off")
        give_back(conserver.proxy, conserver.board, claim, name, "look")
        tenants.expect("Disconnected by admin")
        conserver.say("the board goes on")
        operators.expect("the board goes on")


def test_who_attached_is_cut_off_also_where_conserver_does_not_obey(conserver, jackie, monkeypatch):
    """Lost: the same, where conserver took longer than an end waits for it."""
    monkeypatch.setattr(console_logs, "ATTACHING", "/nowhere/console")
    with typed(conserver, "jackie", "--read") as hers:
        hers.expect("spy")
        conserver.proxy.store.power_seen(conserver.board.id, "off")
        give_back(conserver.proxy, conserver.board, jackie, "jackie", "look")
        hers.expect("jackie's claim of board0 is over")
        hers.expect(pexpect.EOF)
        assert "Disconnected" not in hers.before


def test_who_follows_an_instance_hears_it_and_nobody_else(conserver, jackie):
    """Lost: what a board says while one looks on; or what it says for the next tenant."""
    with typed(conserver, "jackie", "--follow") as hers:
        conserver.serial.say("first\x1b[2J\r\n")
        hers.expect(r"first\\x1b\[2J")
        console.begin_anew(conserver.proxy, conserver.board)
        conserver.serial.say("second boot\r\n")
        hers.expect("second boot")
        ends(conserver, jackie)
        hers.expect("jackie's claim of board0 is over")
        assert "secret" not in hers.before
        hers.expect(pexpect.EOF)
    with typed(conserver, "board0", "--follow") as operators:
        operators.expect("the next tenant's secret")
        operators.sendintr()
        operators.expect(pexpect.EOF)
        assert "Traceback" not in operators.before


def test_a_reader_that_closes_is_no_error(conserver, jackie):
    """Lost: a traceback behind each `hetero console jackie --follow | head -1`."""
    conserver.say("one")
    argv = [sys.executable, "-c", RUNS, "--config", str(conserver.config), "jackie", "--follow"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert "one" in process.stdout.readline()
        process.stdout.close()
        conserver.say("two")
        assert process.stderr.read() == ""
        assert process.wait(20) == 0


def test_the_commands_are_said(conserver, jackie):
    """Lost: how to sit down at an instance, and be cut off with it."""
    shown = console.console(conserver.proxy, conserver.board.id, 20, "jackie", None, False)
    assert shown["command"] == "/usr/local/sbin/hetero console jackie"
    assert shown["follow"] == "/usr/local/sbin/hetero console jackie --follow"
    shown = console.console(conserver.proxy, conserver.board.id, 20, None, None, True)
    assert shown["command"].endswith(" jackie")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nobody"], "nobody: is no board, and no instance on a board of this proxy: name one"),
        (["board1"], "board1: has no console that conserver serves: name console_from in its wiring"),
        (["board1", "--follow"], "board1: has no log of its console: name console_from or console in its wiring"),
    ],
)
def test_what_has_no_console_is_said(conserver, words, said):
    """Lost: the reason."""
    with pytest.raises(BadInput, match=re.escape(said)):
        verb.main(["--config", str(conserver.config), *words])
