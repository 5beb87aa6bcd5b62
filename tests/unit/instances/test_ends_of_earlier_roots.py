# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end, or the rebuild, of a container whose root is a plain folder (an earlier release made it) is cut off while
the folder is removed: by its time limit, as with a million files, or by kill -9. The removal moves folders of the root
up into the container's own folder, as .removed-1 and so on, before they go (files/removal.py). If this fails, the next
run says that they were not made for the container, and refuses: the end is stuck, and nobody gets its GPUs, address and
name.
"""

from __future__ import annotations

import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files import removal
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY
from ansible_collections.hetero.compute.tests.unit.instances.test_moved_while_it_runs import ONE, as_earlier


@pytest.mark.parametrize(("verb", "options"), [(lifecycle.absent, {}), (lifecycle.rebuilt, {"fresh": True})])
def test_the_next_run_ends_it(site, monkeypatch, verb, options):
    site.claim("a", flavor=ONE, owner="jo", key=KEY)
    assert not site.up("a").get("failed")
    as_earlier(site)
    folder, remove = site.container("a").folder, removal._Emptying._remove_folder

    def in_time(self, name):
        if self.path == folder and any(entry.startswith(".removed-") for entry in os.listdir(folder)):
            raise TimedOut("was not removed in time", self.path, "run this again, which goes on with it")
        return remove(self, name)

    with monkeypatch.context() as patch:
        patch.setattr(removal._Emptying, "_remove_folder", in_time)
        assert "was not removed in time" in site.do(verb, "a", **options)["msg"]
    done = site.do(verb, "a", **options)
    assert not done.get("failed"), done["msg"]
