# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What plays say to who types them from the pages. If these fail, somebody is told nothing, or another's remedy."""

from __future__ import annotations

import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims import ended
from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR, Playbooks, Proxy, changed

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")
START = "ansible-playbook hetero.compute.start_instance -e instance=jackie brings it up"


@pytest.fixture
def alone(tmp_path):
    """(the only Proxy p1, the playbooks for it)."""
    tmp_path.chmod(0o755)
    proxy = Proxy(tmp_path / "p1", 1)
    try:
        yield proxy, Playbooks(tmp_path, ["p1"])
    finally:
        proxy.remove()


def said(plays, playbook, *flags, rc=0, **extra):
    """(what it said in one line, how many tasks changed something)."""
    ended_with, output = plays.play(playbook, *flags, **extra)
    assert ended_with == rc, output
    return " ".join(output.split()), changed(output)


def test_a_stop_that_has_nothing_to_do_says_how_it_stands(alone):
    """Lost: whether the instance is stopped, to who looks before."""
    _proxy, plays = alone
    said(plays, "provision_instance", instance="jackie", flavor=FLAVOR)
    text, many = said(plays, "stop_instance", "--check", instance="jackie")
    assert f"jackie would be stopped, and keeps board0: {START}" in text
    assert many == 1
    said(plays, "stop_instance", instance="jackie")
    for flags in ((), ("--check",)):
        text, many = said(plays, "stop_instance", *flags, instance="jackie")
        assert f"jackie is stopped and keeps board0: {START}" in text
        assert many == 0


def test_one_proxy_is_not_several(alone):
    """Lost: the time of who looks for the others. What was given is no board."""
    _proxy, plays = alone
    several = "Name boards as board3,board4"
    for playbook, words in (
        ("repair", "Name the board (-e node=board3)"), ("cabling", several), ("check", several)
    ):  # fmt: skip
        text, _many = said(plays, playbook, rc=2, node="bord3")
        assert f"node is bord3. {words}" in text
        assert "several" not in text
    text, _many = said(Playbooks(plays.folder, []), "repair", rc=2, node="board3")
    empty = "The inventory has no proxy node: group proxies is empty. Give the site's inventory (-i INVENTORY), or add "
    assert f"{empty}the nodes to it" in text


def test_a_forgotten_inventory_is_called_that(alone):
    """Lost: what to do next, to who typed a verb without -i: that groups are empty does not say whose."""
    _proxy, plays = alone
    for playbook in ("status", "reconcile"):
        text, _many = said(Playbooks(plays.folder, []), playbook, rc=2)
        assert "hypervisor_kvm are empty. Give the site's inventory (-i INVENTORY), or add the nodes to it" in text
    text, _many = said(Playbooks(plays.folder, []), "cabling", rc=2, learn="pdu-a:1-8")
    assert "; The inventory has no proxy node" not in text
    text, _many = said(Playbooks(plays.folder, []), "repair", rc=2, node="board3", proxy="p1")
    assert "proxy: the inventory has no proxy node: group proxies is empty. Give the site's inventory (-i INV" in text


@pytest.mark.parametrize("playbook", ["proxy", "gpu_host", "kvm_host"])
def test_a_set_up_of_nobody_fails(alone, playbook):
    """Lost: that no node was set up, to who gave another inventory than theirs and read a success."""
    _proxy, plays = alone
    text, _many = said(Playbooks(plays.folder, []), playbook, rc=2)
    assert "is empty. Give the site's inventory (-i INVENTORY), or add the nodes to it" in text


def test_a_board_is_named_by_node_and_by_board(alone):
    """Lost: another board than the one that was asked for, without a word."""
    _proxy, plays = alone
    for words in (dict(node="board1"), dict(node="1"), dict(board="board1"), dict(board="1")):
        text, _many = said(plays, "provision_instance", "--check", instance="jackie", flavor=FLAVOR, **words)
        assert "board1 chosen" in text, words
        text, _many = said(plays, "maintenance", "--check", state="on", reason="dust", **words)
        assert "board1 maintenance on: dust" in text, words
    text, _many = said(plays, "provision_instance", rc=2, instance="jackie", flavor=FLAVOR, node="gpu1")
    assert "node chooses a board here, such as -e node=board3" in text


@pytest.mark.parametrize(
    ("playbook", "says"),
    [
        ("cabling", "pdu-a outlet 2 would be switched on"),
        ("check", "board1"),
        ("console", "board1: has no console in the proxy's configuration"),
    ],
)
def test_either_word_names_a_board_to_operators_too(alone, playbook, says):
    """Lost: `board=board1`, or the board, to who works on it; both words together say the same."""
    _proxy, plays = alone
    for words in (dict(board="board1"), dict(board="1"), dict(board="board1", node="1")):
        rc, output = plays.play(playbook, "--check", all="true", **words)
        text = " ".join(output.split())
        assert says in text, (words, rc, output)
        assert "board0" not in text, (words, output)


@pytest.mark.parametrize("playbook", ["terminate_instance", "stop_instance", "rebuild_instance"])
def test_who_means_a_part_of_an_instance_is_not_given_all_of_it(alone, playbook):
    """Lost: jackie-2's root, by `terminate_instance -e instance=jackie -e count=1`."""
    _proxy, plays = alone
    words = dict(board="1", count="1", node="board1", proxy="p1")
    text, many = said(plays, playbook, rc=2, instance="jackie", boot_source="disk", **words)
    for name in words:
        assert f"{name} chooses nothing here: instance=NAME is that one" in text.replace("\\n", " ")
    assert ("boot_source stays as it is" in text) is (playbook != "terminate_instance")
    assert many == 0


def test_cabling_says_that_it_switched_outlets(alone):
    """Lost: that boards had power, to who reads changed=0; and in a dry run none has."""
    proxy, plays = alone
    text, many = said(plays, "cabling", "--check", node="board0")
    assert "pdu-a outlet 1 would be switched on until a board asks to boot, then off" in text
    assert many == 1
    with Store(proxy.state_db, create=False) as store:
        assert [event for event in store.events() if event.phase == "switch"] == []
    text, many = said(plays, "cabling", node="board0", seconds=60)
    assert "1 of 1 boards tested: all as the wiring says" in text
    assert many == 1


def test_a_board_that_was_mistyped_is_answered_with_those_that_there_are(proxies):
    """Lost: what to type instead, to a tenant who edits no boards file."""
    _folders, of_both = proxies
    text, many = said(of_both, "provision_instance", rc=2, instance="jackie", flavor=FLAVOR, board="77")
    assert "no node. " in text.replace("\\n", " ")
    assert "there is no board 77: p1 has 0, 1; p2 has 0, 1" in text
    one = Playbooks(of_both.folder, ["p1"])
    text, many = said(one, "provision_instance", rc=2, instance="jackie", flavor=FLAVOR, board="77")
    assert "board 77: no such board (known: 0, 1): give one of these, or have an operator add it to" in text
    assert many == 0


def test_the_console_of_what_ended_with_its_lease_says_why_in_the_error(alone):
    """Lost: the reason, to who reads the last line, or a job's error, only."""
    proxy, plays = alone
    with Store(proxy.state_db) as store:
        store.power_seen(0, "off")
        store.event(0, ended.REAP_PHASE, ended.told("jackie", "jo", "2 min", "board0 is free"), instance="jackie")
    text, _many = said(plays, "console", rc=2, instance="jackie")
    error = text.partition("[ERROR]")[2] or text.partition("fatal")[2]
    assert "There is no instance jackie to show (p1 ended jackie at " in error
    assert "as the lease was over: what it had is removed): ansible-playbook hetero.compute.status shows who" in error


def test_why_a_console_cannot_be_shown_is_said_without_ansibles_own_words(alone):
    """Lost: the reason, behind words that say nothing."""
    proxy, plays = alone
    with Store(proxy.state_db) as store:
        store.power_seen(0, "off")
    (proxy.folder / "etc" / "hetero" / "proxy.json").write_text("{")
    text, _many = said(plays, "console", rc=2, node="board0", all="true")
    assert '"msg": "p1: /etc/hetero/proxy.json' in text
    (proxy.folder / "down").touch()
    text, _many = said(plays, "console", rc=2, node="board0", all="true")
    assert '"msg": "p1: Failed to connect to p1: No route to host' in text
