# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which connections to the NFS server are a board's. If this fails, one by IPv6 from an address whose last 32 bits are
a board's IPv4 address passes for the board, and one that hangs is spared its cut.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.phases import nfs_connected
from ansible_collections.hetero.compute.tests.unit.gaps_in_tables import with_gaps

ROW = "  0: {local}:0801 {remote}:D431 01 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0 0 10 0\n"
ANY = "0" * 32
#: fd00::a00:201 and ::ffff:10.0.2.1, as the kernel of a little-endian machine prints them.
TAIL, MAPPED = "000000FD" + "0" * 16 + "0102000A", "0" * 16 + "FFFF0000" + "0102000A"


@pytest.mark.parametrize(("remote", "is_its"), [(MAPPED, True), (TAIL, False)])
def test_only_the_boards_own_address_counts(tmp_path, remote, is_its):
    table = tmp_path / "tcp6"
    table.write_text("  sl  local_address remote_address st\n" + ROW.format(local=ANY, remote=remote))
    assert nfs_connected("10.0.2.1", [str(table)]) is is_its


def test_a_connection_is_not_passed_over_while_others_come_and_go(tmp_path, monkeypatch):
    """Lost: the power of a board at work, which by a table with a gap has nothing mounted."""
    table = tmp_path / "tcp6"
    table.write_text("  sl  local_address remote_address st\n" + ROW.format(local=ANY, remote=MAPPED))
    with_gaps(monkeypatch, str(table), MAPPED)
    assert nfs_connected("10.0.2.1", [str(table)])
