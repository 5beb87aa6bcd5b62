# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A user's data for cloud-init in a root on a board's own disk. Lost if it fails: a sound board, which goes out of use;
or a first boot that does what another request asked for.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.image import board_images
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import ClaimTerms, Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots import cloud_init, disk_root
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.disk_files import DiskFiles
from ansible_collections.hetero.compute.tests.unit.drivers.boot.conftest import IMAGE, KEY

DATA = "#cloud-config\nwrite_files: [{path: /root/token, content: hunter2}]\n"
OTHER = "#!/bin/sh\necho hunter3\n"


@pytest.fixture
def ask(disks):
    """An image with what Debian's package brings, and board 0 made ready from it, as often as called; its lines."""
    root = disks.folder / "state" / "images" / IMAGE / "root"
    for folder in ("usr/bin", "etc/cloud/cloud.cfg.d", "var/lib"):
        (root / folder).mkdir(parents=True)
    (root / "usr" / "bin" / "cloud-init").write_text("#!/bin/sh\n")
    with disks.proxy() as proxy:
        proxy.store.claim("vm0", ["vm0"], ClaimTerms("jo", {"name": "tp64.8x8"}, "demo", KEY, "disk"), [0])

    def once(check=False, **given):
        with disks.proxy() as proxy:
            request = board_images.ImageRequest(**given)
            result = board_images.present(proxy, [0], request, Change(check), Deadline(60))
        assert not result.get("failed"), result
        assert "hunter" not in str(result), "what is in it is nobody else's"
        return [line["text"] for line in result["lines"]]

    return once


def booted(disks):
    """Board 0 boots from its disk; the data there, None where there are none."""
    result = disks.run("start", 0)
    assert (result["failed"], disks.record(0).state, disks.record(0).note) == (False, "running", "")
    seed = disks.root() / cloud_init.USER_DATA.lstrip("/")
    return seed.read_text() if seed.exists() else None


@pytest.mark.parametrize("data", [None, DATA], ids=["without", "with"])
def test_a_board_boots_with_what_was_asked(disks, ask, data):
    """Lost: a sound board, "its disk cannot be used: 113 names on the disk, not 111"."""
    ask(user_data=data)
    assert booted(disks) == data


def test_other_data_take_the_place_of_those_of_an_earlier_request(disks, ask):
    """Lost: a first boot that does what was asked before it was corrected."""
    ask(user_data=DATA)
    assert ask(user_data=DATA) == [], "they are there"
    assert ask() == [], "a start gives none, and takes none"
    assert ask(user_data=OTHER)[-1] == "user_data is there for cloud-init"
    assert booted(disks) == OTHER


def test_a_request_without_data_has_none_of_an_earlier_one(disks, ask):
    """Lost: a first boot that does what another try asked for, with its secrets."""
    ask(user_data=DATA)
    assert ask(user_data="", check=True)[-1] == "user_data of an earlier request would be taken out of its root"
    assert ask(user_data="")[-1] == "user_data of an earlier request was taken out of its root"
    assert ask(user_data="") == []
    assert booted(disks) is None


def test_what_a_system_may_have_seen_stays(disks, ask):
    """Lost: a tenant's disk; or the word that what was asked earlier may have been done."""
    ask(user_data=DATA)
    with disks.proxy() as proxy:
        proxy.store.event(0, "switch", "pdu-a outlet 1 is to be switched on", instance="vm0")
    assert ask(user_data="") == [cloud_init.LEFT]
    assert ask(user_data=OTHER) == [cloud_init.SEEDED]
    assert booted(disks) == DATA
    assert ask(user_data="") == [], "who asks again for what runs gives no data"
    assert ask(user_data=OTHER) == [cloud_init.SEEDED]
    assert ask(user_data=DATA) == [], "they are there"


def test_an_own_archive_that_is_gone_is_taken_for_nobodys_data(disks, ask):
    """Lost: a root on a disk, for what is no longer needed once it is there."""
    ask(user_data=DATA)
    assert booted(disks) == DATA
    (disks.folder / "state" / "disks" / "fs_0" / "own.tar").unlink()
    assert ask(user_data="") == []
    assert ask(user_data=DATA) == [cloud_init.SEEDED]


def test_what_lies_on_the_disk_stays_whatever_the_database_knows(disks, ask, monkeypatch):
    """Lost: a tenant's disk, laid anew, where an older copy of the database knows of no power."""
    ask(user_data=DATA)
    assert booted(disks) == DATA
    monkeypatch.setattr(disk_root, "may_have_booted", lambda proxy, claim: False)
    monkeypatch.setattr(Store, "has_run", lambda self, claim: False)
    with disks.proxy() as proxy:
        made = DiskFiles(proxy.folder("disks"), 0).made()
    assert made.unpacked is not None
    assert ask(user_data=OTHER) == [cloud_init.SEEDED]
    with disks.proxy() as proxy:
        assert DiskFiles(proxy.folder("disks"), 0).made() == made
