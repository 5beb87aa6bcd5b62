# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many tasks a request is. If this fails, each request of a site with one node waits for tasks that do nothing."""

from __future__ import annotations

import os
import re

import pytest

from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR, Playbooks

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")


def ran(output):
    """The tasks that a play ran; those that it skipped are not printed."""
    return re.findall(r"^TASK \[(.*)\]", output, re.MULTILINE)


def test_a_single_node_is_asked_once(proxies):
    """Two are skipped besides: for a request that is wrong, and for a site that keeps ways in."""
    _folders, plays = proxies
    request = dict(instance="jackie", flavor=FLAVOR, proxy="p1")
    rc, output = plays.play("provision_instance", **request)
    assert rc == 0, output
    assert {"Ask what there is", "Choose"} < set(ran(output))
    rc, output = Playbooks(plays.folder, ["p1"]).play("provision_instance", **request)
    assert rc == 0, output
    assert ran(output) == [
        "Claim what this node has, bring it up",
        "See whether that is all",
        "Stop where a node did not do its part",
        "Say how it stands",
    ]
    assert output.count("skipping: no hosts matched") == 6  # plays that are for several nodes
    assert "Could not match supplied host pattern" not in output
