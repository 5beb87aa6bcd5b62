# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A hand took the row of a board in use out of the node's boards file, or the file was cut off, and the proxy node was
started anew. If these fail, the NFS server starts without that board's root, which is there, and whose own export
(state/exports/fs_N.conf) names its address: the board, which would have waited for the server, gets errors instead.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import restore as restore_module
from ansible_collections.hetero.compute.tests.unit.nodes.proxy.test_restore import provisioned, restart
from ansible_collections.hetero.compute.tests.unit.nodes.proxy.test_restore_unmounted import ran

__all__ = ["provisioned", "ran"]


@pytest.fixture
def without(site, ran):
    """A function that restores without board 1's row: (ids of the exports and their clients, what was said)."""

    def restored():
        path = site.folder / "tilera_boards"
        path.write_text("".join(row for row in path.read_text().splitlines(True) if not row.startswith("1 ")))
        restart(site)
        files = dict(boards_file=str(path), config=str(site.folder / "proxy.json"), state_db=ran.store.path)
        said = []
        with restore_module._node(files) as (proxy, lost):
            exports = restore_module.restore(proxy, said.append, lost)
        return {export.id: export.clients for export in exports}, said

    return restored


def at_rest(proxy, board):
    for state in ("shutting down", "power off"):
        proxy.store.move(board, state)
    proxy.store.power_seen(board, "off")


@pytest.mark.parametrize("first", ["at work", "at rest"])
def test_a_board_in_use_is_served_where_it_was(ran, without, first):
    """Lost: what bob's board 1 runs from; jackie's board 0, which the file names, may even be off."""
    if first == "at rest":
        at_rest(ran, 0)
    exports, said = without()
    assert exports == {1: ("10.0.2.1",), 2: ("10.0.2.2",)}, said
    assert any(text.startswith("board1 of bob: exported to 10.0.2.2 as before; the boards file") for text in said)


def test_a_board_at_rest_waits_for_its_row(ran, without):
    """Lost: bob's root, to the board that has his address by now."""
    at_rest(ran, 1)
    exports, said = without()
    assert list(exports) == [1]
    assert any(text.startswith("board1 of bob is not exported: board 1: no such board") for text in said)


def test_so_does_one_whose_address_is_not_known(site, ran, without):
    for path in (site.state / "exports" / "fs_1.conf", *site.tftp.glob("10.0.2.2/*")):
        path.unlink()
    assert list(without()[0]) == [1]
