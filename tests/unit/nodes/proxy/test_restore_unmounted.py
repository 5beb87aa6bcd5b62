# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds the boards' roots is not mounted when the NFS server is to start. If these fail, it starts without any
export, and boards that would have waited for their roots get errors instead; or nobody is told whose root is missing.
"""

from __future__ import annotations

import re
import shutil

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.restore import restore
from ansible_collections.hetero.compute.tests.unit.nodes.proxy.test_restore import (
    begun_anew,
    provisioned,
    restart,
    restored,
    start_text,
    wanted_text,
)

__all__ = ["provisioned"]


@pytest.fixture
def ran(site, provisioned):
    """Both instances ran; the machine was restarted."""
    for board in (0, 1):
        provisioned.store.move(board, "booting")
        provisioned.store.move(board, "running")
    restored(provisioned)
    restart(site)
    return provisioned


def away(site, name=""):
    """It lies in another place."""
    shutil.move(site.state / "board-roots" / name, site.folder / "not mounted")


def refused(proxy):
    """(the error, what was said)."""
    said = []
    with pytest.raises(HeteroError) as error:
        restore(proxy, said.append)
    return error.value, said


@pytest.mark.parametrize("damage", [None, begun_anew], ids=["its database is there", "it was begun anew"])
@pytest.mark.parametrize("there", [True, False], ids=["without roots", "none"])
def test_the_server_does_not_start_without_any_root(site, ran, damage, there):
    """Its way out for roots that are gone for good works as it is printed."""
    away(site)
    if there:
        (site.state / "board-roots").mkdir()
        (site.state / "board-roots" / ".lock").touch()  # of a request since
    with damage(site, ran) if damage else ran as proxy:
        error, said = refused(proxy)
        assert not (site.folder / "run" / "exports.conf").exists()
        left = [text for text in said if re.match(r"board\d.*is not exported: board\d: .*ran from", text)]
        assert (len(left), left) == (2, said)
        for word in ("no root of a board is there", "board0", "board1", "mount the file system"):
            assert word in str(error), str(error)
        folder = re.search(r"mkdir -p (\S+), ", str(error))[1]
        (site.folder / folder).mkdir(parents=True)
        assert restored(proxy) == ([], said)


def test_it_starts_with_all_once_that_is_mounted(site, ran):
    away(site)
    refused(ran)
    shutil.move(site.folder / "not mounted", site.state / "board-roots")
    assert restored(ran)[0] == [1, 2]
    assert start_text(site) == wanted_text(site, 0, 1)


@pytest.mark.parametrize("damage", [None, begun_anew], ids=["its database is there", "it was begun anew"])
def test_one_that_is_missing_is_said_and_costs_no_other(site, ran, damage):
    away(site, "fs_0")
    with damage(site, ran) if damage else ran as proxy:
        ids, said = restored(proxy)
    assert ids == [2], said
    assert "board0: " in said[0], said
    assert "ran from" in said[0], said


def test_what_never_ran_or_was_given_back_keeps_no_server_from_starting(site, provisioned):
    """Lost: every instance of a node whose only one was terminated, or was not provisioned to its end."""
    provisioned.store.move(1, "booting")
    provisioned.store.move(1, "running")
    kept = (site.state / "claims" / "board1.json").read_text()
    for state in ("shutting down", "power off"):
        provisioned.store.move(1, state)
    provisioned.store.release(1, provisioned.store.record(1).claim)
    (site.state / "claims" / "board1.json").write_text(kept)  # put back by hand
    restart(site)
    shutil.rmtree(site.state / "board-roots")
    assert restored(provisioned) == ([], [])
