# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The word that roots are gone for good, given once below a mount point, is no word at the next outage."""

from __future__ import annotations

import re
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.tests.unit.nodes.proxy.test_restore import provisioned, restored
from ansible_collections.hetero.compute.tests.unit.nodes.proxy.test_restore_unmounted import away, ran, refused

__all__ = ["provisioned", "ran"]


def test_the_next_outage_is_waited_for_again(site, ran):
    """Lost: boards, which get errors in place of a server that waits: an earlier outage was answered as printed."""
    away(site)
    error, _said = refused(ran)
    folder = re.search(r"mkdir -p (\S+), ", str(error))[1]
    (site.folder / folder).mkdir(parents=True)
    assert restored(ran)[0] == []
    # the disk was found after all, and is mounted over it; all goes on
    subprocess.run(["mount", "--bind", str(site.folder / "not mounted"), str(site.state / "board-roots")], check=True)
    try:
        assert restored(ran)[0] == [1, 2]
    finally:
        site.set_exports({})
        site.clean()
        subprocess.run(["umount", "-l", str(site.state / "board-roots")], check=False)
    # weeks later the machine starts, and that is not mounted
    with pytest.raises(HeteroError, match="no root of a board is there"):
        restored(ran)
