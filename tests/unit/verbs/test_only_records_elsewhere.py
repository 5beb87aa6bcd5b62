# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board's only record of its claim lies in another board's place, and the database is older than that claim. If these
fail, that record goes with what is done to the other board, and its tenant's instance can never be adopted again.
"""

from __future__ import annotations

import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.this_node import THIS_NODE
from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import found, reconcile, record
from ansible_collections.hetero.compute.tests.unit.verbs.test_contradictions import put_back
from ansible_collections.hetero.compute.tests.unit.verbs.test_maintenance import on


def carols(site):
    """Return the paths of the records of Carol's claim, wherever they lie."""
    return [path for path in (site.state / "claims").iterdir() if '"carol"' in path.read_text()]


def misfile(site, *before):
    """Carol on board 1; the database is a copy from before her claim; her record lies in board 0's place."""
    for name in before:
        assert not any(result.get("failed") for result in site.provision(name))
    with site.proxy() as proxy:
        for board in range(len(before), 10):
            proxy.store.power_seen(board, "off")
    copy = backups.make(site.params["state_db"])
    if not before:
        assert not any(result.get("failed") for result in site.provision("jackie"))
    assert not any(result.get("failed") for result in site.provision("carol"))
    if not before:
        site.terminate("jackie")
    put_back(site, copy)
    record(site, 1).rename(record(site, 0))


def comes_back(site):
    """Carol's one record is moved by the command that reconcile prints, and her claim adopted."""
    [left] = carols(site)
    command = next(text.split(f"run on {THIS_NODE}: ")[1] for text in said(site) if f"{left}: " in text)
    subprocess.run(["sh", "-ec", command.split(", or remove it")[0]], check=True, timeout=600)
    assert found(reconcile(site), 1)[0][1] == "adopted"


def said(site):
    result = reconcile(site)
    return [one["found"] for board in result["boards"] for one in board["found"]] + result["others"]


def test_a_rebuild_on_the_other_board_keeps_it(ten):
    """Lost: Carol's only record, by a rebuild that Jackie asked for (a lease without end)."""
    misfile(ten, "jackie")
    result = ten.module("instance", kind="board", instance="jackie", state="rebuilt", fresh=True, timeout=3)
    assert not result.get("failed"), result
    assert '"jackie"' in record(ten).read_text()
    comes_back(ten)


def test_what_is_printed_for_the_other_board_keeps_it(ten):
    """Lost: the same, by the modules that maintenance names for a board that nobody has; or what became of it."""
    misfile(ten)
    assert "modules tilera_boot with state=stopped, then board_image with state=absent" in on(ten)["msg"]
    for module, state in (("tilera_boot", "stopped"), ("board_image", "absent")):
        result = ten.module(module, boards=[0], state=state)
    assert result["boards"][0]["removed"] == ["the record of board1, which is kept under another name beside it"]
    comes_back(ten)


def test_no_word_has_a_person_remove_it_for_the_wrong_board(ten):
    """Lost: the same, by who knows that nobody has board 0, the only board that status and maintenance speak of."""
    misfile(ten)
    for text in (ten.module("board_info")["boards"][0]["note"], on(ten)["msg"]):
        assert "bring it to the place of board1" in text
        assert "remove it" not in text


@pytest.mark.parametrize("verb", ["rebuilt", "extended"])
def test_a_lease_beside_anothers_only_record_names_the_command_that_moves_it(ten, verb):
    """Lost: an operator's time: the word that was named is not taken, as the record may be the other's only one."""
    misfile(ten, "jackie")
    text = ten.lease(3)["lines"][0]["text"]
    if verb == "rebuilt":
        text = ten.module("instance", kind="board", instance="jackie", state="rebuilt", fresh=True, timeout=3)["msg"]
    assert "adopt=jackie" not in text
    assert f"run on {THIS_NODE}: mv --backup=numbered {record(ten, 0)} {record(ten, 1)}" in text
