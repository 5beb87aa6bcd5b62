# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All containers were moved to another folder, and lxcpath of the host's configuration names it. If this fails, none of
them starts or ends, and the way that is printed leads nowhere.
"""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import disks
from ansible_collections.hetero.compute.tests.unit.instances.test_apart import SMALL
from ansible_collections.hetero.compute.tests.unit.instances.test_own_roots import found_by_reconcile


@pytest.fixture
def moved(site):
    site.claim(flavor=SMALL)
    assert not site.up().get("failed")
    site.do(lifecycle.stopped)
    disks.unmount(site.container(), site.here.disks)
    new = site.folder / "srv"
    os.rename(site.lxcpath, new)
    site.lxcpath = new
    site.settings["lxcpath"] = str(new)
    site.config.write_text(json.dumps(site.settings))
    return site


@pytest.mark.parametrize("verb", [lifecycle.running, lifecycle.stopped, lifecycle.absent])
def test_verbs_go_on(moved, verb):
    done = moved.do(verb)
    assert not done.get("failed"), done.get("msg")


def test_reconcile_knows_it_there(moved):
    # its disk is not mounted, and the configuration names the former place
    assert found_by_reconcile(moved, "ml-8") == [f"missing or another: {what}" for what in ("disk", "configuration")]
    with moved.host() as host:
        assert host.store.claim_of("ml-8").container.startswith(str(moved.lxcpath))
