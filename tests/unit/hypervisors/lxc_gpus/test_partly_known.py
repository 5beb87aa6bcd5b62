# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container with two GPUs, of which an older table knows one, in a copy of its folder in its place (on a bigger
disk). Its own file can be read, and names both. Lost: the other GPU for itself: the next who asks gets it, and with the
number written as printed both open it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.test_lost_table import lose

FIRST, SECOND = ADDRESSES[:2]


@pytest.mark.parametrize("copied", [True, False])
def test_the_other_one_is_given_to_nobody(host, copied):
    box = host.boxes.make(start=False)
    host.attach(box, gpus=[SECOND])
    shutil.copy(host.state_db, f"{host.folder}/older.db")
    host.attach(box, gpus=[FIRST])
    lose(host)
    shutil.copy(f"{host.folder}/older.db", host.state_db)
    assert host.table() == {SECOND: [box.name]}
    number = os.stat(box.folder).st_ino
    if copied:
        os.rename(box.folder, f"{host.boxes.top}/aside")
        shutil.copytree(f"{host.boxes.top}/aside", box.folder, symlinks=True)
    other = host.boxes.make(start=False)
    with pytest.raises(NoneFree, match=box.name):
        host.attach(other, gpus=[FIRST])
    config = Path(box.folder, "config")  # as printed
    config.write_text(config.read_text().replace(f"of folder {number}", f"of folder {os.stat(box.folder).st_ino}"))
    box.reload()
    host.reconcile(repair=True)
    assert host.table() == {FIRST: [box.name], SECOND: [box.name]}
    assert host.attach(other, gpus=ADDRESSES[2:3])["changed"]
