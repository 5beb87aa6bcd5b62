# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine restarted while boards ran, and what holds the roots is not mounted (database and records are there).
If this fails, the NFS server starts without the exports of boards that wait for them, or nothing says why.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import mounts_below, unmount
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import restore
from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import found, reconcile


@pytest.mark.parametrize("what", ["board-roots", "board-roots/fs_0"])
def test_what_an_instance_ran_from_and_is_not_there_is_said(jackie, what):
    """Its way out: mount it, and reconcile exports it."""
    for point in reversed(mounts_below(str(jackie.state / "board-roots"))):
        unmount(point)
    (jackie.state / what).rename(jackie.folder / "not mounted")
    said = []
    with jackie.proxy() as proxy, pytest.raises(HeteroError, match=r"no root of a board is there.*board0 of jackie"):
        restore.restore(proxy, said.append)
    folder = jackie.state / "board-roots" / "fs_0"
    why = f"board0 of jackie is not exported: board0: jackie ran from {folder}, which is not there"
    assert [text.startswith(why) for text in said] == [True], said
    (jackie.folder / "not mounted").rename(jackie.state / what)
    (jackie.folder / "ganesha.json").write_text("{}")
    assert "put back" in str(found(reconcile(jackie)))
    assert jackie.exports()
