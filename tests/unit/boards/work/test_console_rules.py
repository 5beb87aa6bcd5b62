# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which part of a console's log is whose, and how much of it may be asked for. Whole modules: verbs/test_console.py.

Tests boards/work/console.py.
"""

from __future__ import annotations

import os
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import Claim
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import console
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.console_lines import ConsoleLine
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import Wire

BOARD = SimpleNamespace(id=0, name="board0")
BOOTS = "ansible-playbook hetero.compute.start_instance -e instance=eve-1 boots it"


class Claimed(SimpleNamespace):
    """A claim, as far as a console asks about it."""

    is_same = Claim.is_same


EVE = Claimed(instance="eve-1", request="eve", owner="jo", created=1.0)


class Node:
    """A proxy with one board; `said` are the events that were written."""

    def __init__(self, wiring, claim=EVE, mark=None):
        self.store, self.said, self.mark = self, [], mark
        self.claim = claim
        self.wired = Wire(**wiring)
        self.config = SimpleNamespace(server="10.0.2.254")

    def record(self, board):
        return SimpleNamespace(claim=self.claim)

    def board(self, number):
        return BOARD

    def wiring(self, board):
        return self.wired

    def first_since_claim(self, claim, phase):
        return self.mark if phase == console.PHASE else None

    def event(self, *event):
        self.said.append(event)


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "console.log"
    path.write_text("theirs\nours\n")
    return path


def marked(path, size, inode=None):
    inode = os.stat(path).st_ino if inode is None else inode
    return SimpleNamespace(text=console.BEGINS.format(file=path, inode=inode, size=size))


def shown(node, lines=9, instance=None, owner=None, everything=False):
    return console.console(node, 0, lines, instance, owner, everything)


def test_where_a_claims_part_begins_is_written_down_once(log):
    """Lost: a tenant's own console, or the last one's with it."""
    node = Node({"console": str(log)})
    console.begin(node, BOARD)
    (event,) = node.said
    assert event == (0, "console log", f"{log} (inode {os.stat(log).st_ino}), from byte 12")
    for quiet in (
        Node({"console": str(log)}, mark=SimpleNamespace(text=event[2])),
        Node({"console": str(log)}, claim=None),
        Node({}),
    ):
        console.begin(quiet, BOARD)
        assert quiet.said == []
    away = Node({"console": f"{log}.away"})
    console.begin(away, BOARD)
    assert away.said == [(0, "console log", f"{log}.away (inode 0), from byte 0")]


@pytest.mark.parametrize(
    ("size", "inode", "begun"), [(7, None, 7), (0, None, 0), (12, None, 12), (13, None, 0), (7, 1, 0)]
)
def test_the_byte_at_which_a_claims_part_begins(log, size, inode, begun):
    """Lost: what the last tenant's board printed, read by the next; or a log that was rotated, to its own tenant."""
    assert console.begins(Node({"console": str(log)}, mark=marked(log, size, inode)), BOARD) == begun


def test_where_nobody_wrote_it_down_nothing_is_the_claims(log):
    """Lost: the last tenant's console."""
    wired = {"console": str(log)}
    assert console.begins(Node(wired), BOARD) == 12
    assert console.begins(Node(wired, mark=SimpleNamespace(text="an older version's words")), BOARD) == 12
    assert console.begins(Node(wired, claim=None, mark=marked(log, 3)), BOARD) == 12
    assert console.begins(Node({}), BOARD) == 0


@pytest.mark.parametrize("lines", [0, -1, 10001])
def test_no_other_number_of_lines_than_is_named(log, lines):
    with pytest.raises(BadInput, match=f"lines: is {lines}: give 1 to 10000"):
        shown(Node({"console": str(log)}), lines)


@pytest.mark.parametrize(("lines", "seen"), [(1, ["ours"]), (2, ["theirs", "ours"]), (10000, ["theirs", "ours"])])
def test_as_many_lines_as_are_asked_for(log, lines, seen):
    """Lost: the numbers at the ends of what the refusal names."""
    assert shown(Node({"console": str(log)}), lines, everything=True)["console"] == seen


def test_what_is_said_of_a_log(log):
    """Lost: which file it is, whose it is, how to sit down at it, or where its tenant's part begins."""
    node = Node({"console": str(log), "console_command": "picocom"}, mark=marked(log, 7))
    said = dict(instance="eve-1", node="board0", phase="console", seconds=None)
    assert shown(node) == dict(
        board=0,
        name="board0",
        instance="eve-1",
        file=str(log),
        console=["ours"],
        command="picocom",
        follow="/usr/local/sbin/hetero console eve-1 --follow",
        lines=[dict(said, text=f"{log} (12 bytes, its own from byte 7)"), "  ours"],
    )
    assert shown(node, everything=True)["lines"] == [dict(said, text=f"{log} (12 bytes)"), "  theirs", "  ours"]
    node.mark = None
    assert shown(node)["lines"] == [
        dict(said, text=f"{log} (12 bytes, its own from byte 12)"),
        f"  {console.NONE_YET} ({BOOTS}); {console.OPERATORS}",
    ]
    node.wired = Wire(console_command="picocom")
    keys = ("file", "console", "command", "follow", "lines")
    assert [shown(node)[key] for key in keys] == [None, [], "picocom", None, []]


def test_an_operator_reads_what_was_set_aside(log):
    """Lost: what a board said before its last boot, to whoever looks why it ended."""
    wired = {"console": str(log), "console_from": ConsoleLine("tcp", {"host": "ts1", "port": 7001})}
    for number, whose in enumerate(("eve-1", "nobody"), 1):
        log.with_name(f"{log.name}-2026113{number}-120000.000000-{whose}").write_text(f"log {number}\nits end\n")
    node = Node(wired, mark=marked(log, 7))
    said = shown(node, everything=True)
    assert said["console"] == ["log 1", "its end", "log 2", "its end", "theirs", "ours"]
    assert said["lines"][0]["text"] == f"{log} (12 bytes, 2 logs before it)"
    assert shown(node, 3, everything=True)["console"] == ["its end", "theirs", "ours"]
    assert shown(node)["console"] == ["ours"]
    node.wired = Wire(console=str(log))  # another program's, whose files are of names that nobody here knows
    assert shown(node, everything=True)["console"] == ["theirs", "ours"]


def test_an_operator_waits_for_no_pipe_and_reads_no_other_file(log):
    """Lost: root's files, and who looks, to the account of conserver, whose folder it is."""
    log.with_name("secret").write_text("root's\n")
    log.with_name(f"{log.name}-20261131-120000.000000-eve-1").symlink_to("secret")
    pipe = log.with_name(f"{log.name}-20261132-120000.000000-eve-1")
    os.mkfifo(pipe)
    wired = {"console": str(log), "console_from": ConsoleLine("tcp", {"host": "ts1", "port": 7001})}
    with ThreadPoolExecutor(1) as thread:
        said = thread.submit(shown, Node(wired, mark=marked(log, 7)), everything=True)
        try:
            assert said.result(30)["console"] == [f"{pipe}: it is no plain file", "theirs", "ours"]
        finally:
            os.close(os.open(pipe, os.O_RDWR | os.O_NONBLOCK))


def test_whose_console_may_be_read(log):
    """Lost: what a board printed, passwords too, to whoever names it."""
    wired = {"console": str(log)}
    for node, given, word in (
        (Node(wired), dict(owner="mallory"), "is eve-1's, of jo: ask jo"),
        (Node(wired), dict(instance="bob"), "is not bob's any more"),
        (Node(wired, claim=None), {}, "nobody has it"),
    ):
        with pytest.raises(Refused, match=f"^board0: {word}"):
            shown(node, **given)
    assert shown(Node(wired), owner="jo", instance="eve")["instance"] == "eve-1"
    one, two = (unicodedata.normalize(form, "José") for form in ("NFC", "NFD"))
    assert shown(Node(wired, claim=Claimed(**dict(vars(EVE), owner=one))), owner=two)["instance"] == "eve-1"
    assert shown(Node(wired, claim=None), owner="jo", everything=True)["console"] == ["theirs", "ours"]
    assert shown(Node({"console_command": "x"}, claim=None))["command"] == "x"
    with pytest.raises(BadInput, match="has no console"):
        shown(Node({}))


@pytest.mark.parametrize(
    ("claim", "mark", "remedy"),
    [
        (EVE, None, f"it has had no power for its instance yet: {BOOTS}"),
        (EVE, SimpleNamespace(text=""), console.WRITER),
        (None, None, f"it may have had no power yet; if it had, {console.WRITER}"),
    ],
)
def test_a_board_that_has_said_nothing(log, claim, mark, remedy):
    """Lost: what to do about an empty screen: boot the board, or look why nothing writes down what it says."""
    with pytest.raises(BadInput) as caught:
        shown(Node({"console": f"{log}.away"}, claim, mark), everything=True)
    assert str(caught.value).startswith(f"board0: has said nothing: its log {log}.away is not there: {remedy}")
    log.write_text("")
    if mark or not claim:
        assert shown(Node({"console": str(log)}, claim, mark), everything=True)["lines"][1:] == [
            f"  nothing yet. If the board has booted: {console.WRITER}"
        ]


def test_where_to_look_when_conserver_is_silent(log):
    """Lost: why a console says nothing, its device gone or a login refused: conserver's journal has it."""
    log.write_text("")
    wired = {"console": str(log), "console_from": ConsoleLine("tcp", {"host": "ts1", "port": 7001})}
    said = shown(Node(wired, mark=SimpleNamespace(text="")))["lines"]
    assert said[1].startswith("  nothing yet. If the board has booted: see whether its console is reached: ")
    assert "journalctl -u hetero-consoles" in said[1]


@pytest.mark.parametrize("then", [None, Claimed(instance="eve-1", request="eve", owner="bob", created=2.0)])
def test_whose_claim_ends_while_its_log_is_read_sees_nothing(log, monkeypatch, then):
    """Lost: what a board says for the next tenant, to the last one, who asks for its console at that moment."""
    node = Node({"console": str(log)}, mark=marked(log, 7))
    read = console.console_tail

    def ends(*words):
        node.claim = then
        return read(*words)

    monkeypatch.setattr(console, "console_tail", ends)
    with pytest.raises(Refused, match="was given back meanwhile"):
        shown(node, owner="jo")
    node.claim = EVE
    assert shown(node, everything=True)["console"] == ["theirs", "ours"]
