# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boards file gives boards in use each other's numbers, or another address. If these fail, the root of a running
board is taken from under it and exported, to be written, to another tenant's machine, and its boot files are removed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import restore
from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import found, reconcile
from ansible_collections.hetero.compute.tests.unit.verbs.test_silenced_neighbours import hangs

JACKIES = "what jackie on board0 boots from lies for 10.0.2.1, and the boards file gives that board 10.0.2.2"
TYPO = "what jackie on board0 boots from lies for 10.0.2.1, and the boards file gives that board 10.0.2.9"
#: Modules that would switch, move, clean or free.
VERBS = {
    "start": ("tilera_boot", dict(boards=[0], timeout=2)),
    "reboot": ("tilera_boot", dict(boards=[0], state="rebooted", how="hard", timeout=2)),
    "stop": ("tilera_boot", dict(boards=[0], state="stopped", keep=True, timeout=2)),
    "prepare": ("board_image", dict(boards=[0])),
    "clean": ("board_image", dict(boards=[0], state="absent")),
    "rebuild": ("board_rebuild", dict(instance="jackie", image="debian-13")),
    "end": ("instance", dict(kind="board", instance="jackie", state="absent", timeout=2)),
}


def numbered_anew(site):
    """Rows 0 and 1 get each other's address."""
    path = Path(site.params["boards_file"])
    rows = [row.split(" ", 1)[1] for row in path.read_text().splitlines()]
    path.write_text(f"0 {rows[1]}\n1 {rows[0]}\n")


def mistyped(site, old="10.0.2.1", new="10.0.2.9"):
    path = Path(site.params["boards_file"])
    path.write_text(path.read_text().replace(f" {old} ", f" {new} "))


def clients(site):
    return {number: export["clients"] for number, export in site.exports().items()}


@pytest.fixture
def both(jackie):
    """Jackie on board 0 and bob on board 1, both running; nothing that answers there proves a key."""
    assert not any(result.get("failed") for result in jackie.provision("bob"))
    for board in (0, 1):
        hangs(jackie, board)
    return jackie


def test_reconcile_leaves_running_boards_where_they_are_served(both):
    before = both.what_is_there()
    numbered_anew(both)
    result = reconcile(both)
    assert both.what_is_there() == before
    (said,) = found(result)
    assert said[0].startswith(f"{JACKIES}: nothing is touched: correct the boards file; or, where it is right, put")
    assert "bob on board1 boots from lies for 10.0.2.2" in found(result, 1)[0][0]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("change", [numbered_anew, mistyped])
def test_no_verb_touches_either_board(both, verb, change):
    """Lost: jackie's root or bob's boot files, to whatever is done about jackie."""
    before = both.what_is_there()
    change(both)
    module, given = VERBS[verb]
    result = both.module(module, **given)
    assert result["failed"]
    assert (JACKIES if change == numbered_anew else TYPO) in result["msg"]
    assert both.what_is_there() == before


def test_a_lease_that_is_over_waits_for_the_boards_file(both):
    both.expire()
    before = both.what_is_there()
    numbered_anew(both)
    assert JACKIES in both.turn()["said"][0]
    assert both.what_is_there() == before


def test_a_board_that_got_the_address_of_one_in_use_is_given_to_nobody(jackie):
    """Lost: jackie's boot files, to who gets the board that now has her address, or to reconcile, which cleans it."""
    numbered_anew(jackie)
    hangs(jackie, 0)
    before = jackie.what_is_there()
    assert found(reconcile(jackie), 1)[0][0].startswith(JACKIES)
    result = jackie.provision("bob")[-1]
    assert result["failed"]
    assert JACKIES in result["msg"]
    assert jackie.what_is_there() == before


def test_nor_is_one_that_got_the_address_of_a_board_without_a_row(jackie):
    path = Path(jackie.params["boards_file"])
    path.write_text(path.read_text().splitlines()[1].replace(" 10.0.2.2 ", " 10.0.2.1 ") + "\n")
    before = jackie.what_is_there()["tftp"]
    said = found(reconcile(jackie))[0][0]
    assert "lies for 10.0.2.1, and the boards file does not name that board: nothing is touched" in said
    assert "reconcile -e forget=jackie" in said
    assert jackie.provision("bob")[-1]["failed"]
    assert jackie.what_is_there()["tftp"] == before


def test_the_server_goes_on_to_export_to_the_running_board(both):
    """Lost: her root, to the machine at the other address, whenever the NFS server starts again."""
    mistyped(both)
    with both.proxy() as proxy:
        exports = restore.restore(proxy, print)
    assert {export.pseudo: export.clients for export in exports} == {
        "/tftpboot/fs_0": ("10.0.2.1",),
        "/tftpboot/fs_1": ("10.0.2.2",),
    }


def test_what_is_said_goes_as_it_is_said(both):
    """The earlier rows back, both stopped, and the rows changed then: each starts at its new address."""
    path = Path(both.params["boards_file"])
    earlier = path.read_text()
    numbered_anew(both)
    assert reconcile(both)["boards"][0]["found"]
    path.write_text(earlier)
    for name in ("jackie", "bob"):
        given = dict(kind="board", instance=name, timeout=5)
        assert not both.module("instance", state="stopped", **given).get("failed")
    numbered_anew(both)
    for board, name in enumerate(("jackie", "bob")):
        both.wire(board, fake={"tftp": 0.0, "nfs": 0.0, "running": 0.0})
        result = both.module("instance", kind="board", instance=name, state="running", timeout=5)
        assert not result.get("failed"), result.get("msg")
    assert clients(both) == {"1": ["10.0.2.2"], "2": ["10.0.2.1"]}


@pytest.mark.parametrize("outlet", ["on", "off"])
def test_reconcile_follows_an_address_at_which_the_board_is_or_of_one_that_is_off(jackie, outlet):
    """It shows its own key there, or nobody is at work."""
    if outlet == "off":
        jackie.cut(0)
    mistyped(jackie)
    said = found(reconcile(jackie))
    assert any(done == "put back" for _found, done in said), said
    assert clients(jackie) == {"1": ["10.0.2.9"]}
