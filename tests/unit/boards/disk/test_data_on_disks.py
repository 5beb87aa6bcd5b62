# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A user's data for cloud-init in a root on a board's own disk. Lost if it fails: a sound board, which goes out of use;
or a first boot that does what another request asked for.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.image import board_images
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import ClaimTerms
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots import cloud_init
from ansible_collections.hetero.compute.tests.unit.drivers.boot.conftest import IMAGE, KEY

DATA = "#cloud-config\nwrite_files: [{path: /root/token, content: hunter2}]\n"


@pytest.fixture
def ask(disks):
    """An image with what Debian's package brings, and board 0 made ready from it, as often as called; its lines."""
    root = disks.folder / "state" / "images" / IMAGE / "root"
    for folder in ("usr/bin", "etc/cloud/cloud.cfg.d", "var/lib"):
        (root / folder).mkdir(parents=True)
    (root / "usr" / "bin" / "cloud-init").write_text("#!/bin/sh\n")
    with disks.proxy() as proxy:
        proxy.store.claim("vm0", ["vm0"], ClaimTerms("jo", {"name": "tp64.8x8"}, "demo", KEY, "disk"), [0])

    def once(**given):
        with disks.proxy() as proxy:
            request = board_images.ImageRequest(**given)
            result = board_images.present(proxy, [0], request, Change(), Deadline(60))
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
