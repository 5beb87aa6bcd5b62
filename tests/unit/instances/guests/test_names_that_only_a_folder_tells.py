# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest that was made here and of which only its folder tells: database, records and libvirt's definitions are older.
Lost: its name, to the next tenant, who got a claim that could neither be made nor be ended.
"""

from __future__ import annotations

import os
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.this_node import THIS_NODE
from ansible_collections.hetero.compute.tests.unit.instances.guests.test_older_copies_of_guests import SMALL, put_back


@pytest.mark.parametrize("is_defined", [True, False])
@pytest.mark.parametrize("silent", [True, False])
def test_its_name_is_given_to_nobody(site, silent, is_defined):
    database = site.folder / "var/lib/hetero/host.db"
    site.provision("ml-7", flavor=SMALL)
    copy = backups.make(str(database))
    site.provision("ml-8", owner="jo", flavor=SMALL)
    site.do("stopped", "ml-8")
    if not silent:
        (site.folder / "guests-files/ml-8/console.log").write_text("login:")
    put_back(copy, database)
    os.unlink(database.parent / "host.claims/ml-8.json")
    if not is_defined:
        subprocess.run([site.virt.root / "programs/virsh", "undefine", "ml-8"], check=True)
    with pytest.raises(NoneFree, match=f"no claim of it is in the database of {THIS_NODE}") as refused:
        site.provision("ml-8", owner="eve", flavor=SMALL)
    assert "rename it" not in str(refused.value)
    assert [one["instance"] for one in site.info()["instances"]] == ["ml-7"]
