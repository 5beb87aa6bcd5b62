# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container that was made here, while database and records are older than it. Lost: the way back to it, by the way
that is printed to who asks for its name: "no instance: rename it"; its configuration still names the root in the
place that the next one gets. Each other verb says that nothing is to be touched.
"""

from __future__ import annotations

import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, NoneFree
from ansible_collections.hetero.compute.tests.unit.instances.test_apart import SMALL
from ansible_collections.hetero.compute.tests.unit.instances.test_older_copies_of_hosts import put_back


def test_one_that_was_made_here_is_not_to_be_renamed(site):
    site.claim("ml-7", flavor=SMALL)
    copy = backups.make(site.database)
    site.claim("bob", owner="jo", flavor=SMALL)
    site.up("bob")
    site.do(lifecycle.stopped, "bob")
    put_back(site, copy)
    with site.host() as host:
        os.unlink(host.store.records.path("bob"))
    with pytest.raises(HeteroError, match="nothing is touched: put a newer copy of it back"):
        site.do(lifecycle.absent, "bob")
    with pytest.raises(NoneFree, match="nothing is touched: put a newer copy of it back") as refused:
        site.claim("bob", owner="eve", flavor=SMALL)
    assert "rename it" not in str(refused.value)


def test_one_that_somebody_made_by_hand_may_be_renamed(site):
    folder = site.lxcpath / "bob"
    folder.mkdir(parents=True)
    (folder / "config").write_text("lxc.uts.name = bob\n")
    with pytest.raises(NoneFree, match="there is a container bob already that is no instance: rename it"):
        site.claim("bob", owner="eve", flavor=SMALL)
