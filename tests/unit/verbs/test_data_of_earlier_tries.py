# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A request whose first try got as far as its root, and no further. Lost if it fails: a first boot that does what that
try asked for, and not what this one does; or the data of a try that is only started.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.image import board_images
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.store import ImageStore
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots import cloud_init
from ansible_collections.hetero.compute.tests.unit.images.packing import image_tar
from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import FLAVOR, KEY

DATA, OTHER = "#!/bin/sh\necho hunter2\n", "#!/bin/sh\necho hunter3\n"
ASKED = dict(owner="jackie", flavor=FLAVOR, ssh_public_key=KEY, image="cloud")
TAKEN = "user_data of an earlier request was taken out of its root"


@pytest.fixture
def tried(site):
    """Board 0 is jackie's, its root has data, and it never had power."""
    source = image_tar(site.folder / "cloud.tar", **{"root/usr/bin/cloud-init": "#!/bin/sh\n"})
    ImageStore(str(site.state / "images")).import_image(source, "cloud")
    assert not site.module("board_claim", instance="jackie", **ASKED).get("failed")
    with site.proxy() as proxy:
        board_images.present(proxy, [0], board_images.ImageRequest(user_data=DATA), Change(), Deadline(60))
    assert seed(site) == DATA
    return site


def seed(site):
    path = site.state / "board-roots" / "fs_0" / "root" / cloud_init.USER_DATA.lstrip("/")
    return path.read_text() if path.exists() else None


def run(site, **given):
    """The verb, which comes to its end with the board running; what it said."""
    result = site.module("instance", kind="board", instance="jackie", state="running", timeout=10, **given)
    assert (result.get("failed"), site.record(0).state) == (None, "running")
    return [line["text"] for line in result["lines"]]


def test_a_request_boots_with_what_it_gives(tried):
    assert TAKEN in run(tried, **ASKED)
    assert seed(tried) is None
    assert TAKEN not in run(tried, **ASKED), "it runs"


def test_a_request_with_other_data_boots_with_those(tried):
    assert "user_data is there for cloud-init" in run(tried, user_data=OTHER, **ASKED)
    assert seed(tried) == OTHER


def test_a_start_boots_with_what_is_there(tried):
    assert TAKEN not in run(tried, owner="jackie")
    assert seed(tried) == DATA
    run(tried, **ASKED)
    assert seed(tried) == DATA, "what ran is its tenant's"
