# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What playbooks say at their end. If these fail, a verb ends without a word, or a node that is down hides all others.
"""

from __future__ import annotations

import os

import pytest

from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR, changed

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")
DOWN = "Failed to connect to p2: No route to host"


def said(output):
    return " ".join(output.split())


def test_a_node_that_is_down_is_told_once_by_us_and_hides_no_other(proxies):
    """Lost: which boards and images the other nodes have; or the one line that matters, among three of the same."""
    folders, plays = proxies
    (folders["p2"].folder / "down").touch()
    rc, output = plays.play("status")
    assert rc == 2, output
    assert "board1  board  TILEPro64  tp64.8x8  power off  -         -      10.0.1.2  -      -" in output
    assert "\np2      proxy  -          -         not asked  -         -      -         -      -\n" in output
    assert "No route to host (mend that, or leave it out: -e without=p2)" in said(output)
    of_us = output.partition("TASK [Put it together]")[2]
    assert said(of_us).count("No route to host") == 1
    assert "Could not be asked: p2. Why is said above" in output
    rc, output = plays.play("image")
    assert rc == 2, output
    assert "\np1:\n  debian " in output
    assert "\np2:\n" not in output
    assert f"p2: {DOWN}" in said(output.partition("TASK [Say which nodes did not do it]")[2])


def test_status_of_nobody_is_no_empty_table(proxies):
    """Lost: that nobody was asked, to a table without rows and a success."""
    _folders, plays = proxies
    for playbook in ("status", "reconcile"):
        rc, output = plays.play(playbook, without="p1,p2")
        assert rc == 2, output
        assert "Nobody is left to ask: p1, p2 left out by without" in said(output)
        assert "NODE" not in output


def test_verbs_say_what_is_so(proxies):
    """Lost: whether a reboot, a dry run of repair, or a second word on maintenance came to anything."""
    _folders, plays = proxies
    rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR)
    assert rc == 0, output
    rc, output = plays.play("reboot_instance", instance="jackie")
    assert rc == 0, output
    assert "\njackie is running on board0: ssh root@10.0.1.1\n" in output
    rc, output = plays.play("maintenance", node="board0", proxy="p1", state="off")
    assert (rc, changed(output)) == (0, 0), output
    assert "jackie  board0  maintenance off already: it is in state running, and jackie of jo has it" in output
    for line, changes in (("on: broken", 1), ("on already: broken", 0)):
        rc, output = plays.play("maintenance", node="board0", proxy="p2", state="on", reason="broken")
        assert (rc, changed(output)) == (0, changes), output
        assert f"-       board0  maintenance {line}" in output
    rc, output = plays.play("repair", "--check", node="board1", proxy="p2")
    assert rc == 0, output
    assert "\nboard1 would be free: off and clean, read back\n" in output
