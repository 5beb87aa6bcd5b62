# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbook watch. If it fails, who asked in AWX, or in another shell, does not see what becomes of an instance."""

from __future__ import annotations

import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR, changed

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")


def test_a_boot_that_another_began_is_followed_to_its_end(proxies):
    folders, plays = proxies
    rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR)
    assert rc == 0, output
    with Store(folders["p1"].state_db) as store:
        store.move(0, "booting")
        store.event(0, "power", "off → on")
        watch, said = plays.start("watch", instance="jackie"), []
        for line in watch.stdout:
            said.append(line)
            if line.startswith("jackie  board0  power "):  # it follows: now all else happens
                store.event(0, "tftp", "kernel fetched")
                store.move(0, "running")
        rc, output = watch.wait(60), "".join(said)
        assert (rc, changed(output)) == (0, 0), output
        assert output.index("off → on") < output.index("jackie  board0  tftp      kernel fetched"), output
        assert output.count("kernel fetched") == 1
        assert "\njackie is running on board0\n" in output
        store.move(0, "error", "stalled at tftp")
        rc, output = plays.play("watch", instance="jackie")
        assert rc == 2
        assert "jackie on board0: error: stalled at tftp" in output
