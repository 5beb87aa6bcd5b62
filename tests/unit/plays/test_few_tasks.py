# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many tasks a request is, and how many lines. If this fails, each request of a site with one node waits for tasks
that do nothing, or says that nothing was done in more words than what was.
"""

from __future__ import annotations

import os
import re

import pytest

from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR, Playbooks

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")


#: What the design promises of a board's provision: tasks, those that are skipped too. bench/verbs.py counts commands.
TASKS = 8
#: Most lines of a request that has nothing to do, or is refused, as `make` prints them.
LINES = 3


def ran(output):
    """The tasks that a play went through."""
    return re.findall(r"^TASK \[(.*)\]", output, re.MULTILINE)


def said(output):
    """The lines of a play but those that a slow machine adds."""
    return [line for line in output.splitlines() if not line.endswith(" so far")]


def test_a_single_node_is_asked_once(proxies):
    _folders, plays = proxies
    request = dict(instance="jackie", flavor=FLAVOR, proxy="p1")
    alone = Playbooks(plays.folder, ["p1"])
    alone.env["ANSIBLE_DISPLAY_SKIPPED_HOSTS"] = "yes"
    rc, output = alone.play("provision_instance", **request)
    assert rc == 0, output
    assert ran(output) == [
        "See whether the request is right",  # skipped, as this one is not
        "Claim what this node has, bring it up",
        "See whether that is all, and whose the name is",
        "Keep the way in, and say how it stands",
    ]
    assert output.count("skipping: no hosts matched") == 5  # plays that are for several nodes
    assert "Could not match supplied host pattern" not in output


def test_several_nodes_are_asked_twice(proxies):
    """Lost: a second of each request, and more at a site of many nodes, to tasks that do nothing for it."""
    _folders, plays = proxies
    ways = plays.folder / "ways"
    plays.env["ANSIBLE_DISPLAY_SKIPPED_HOSTS"] = "yes"
    rc, output = plays.play("provision_instance", instance="lab", flavor=FLAVOR, count=3, hetero_ssh_folder=ways)
    assert rc == 0, output
    assert ran(output) == [
        "See whether the request is right",  # skipped, as this one is not
        "Ask what there is",
        "Choose",
        "Claim what this node has, bring it up",
        "Ask what there is",
        "See whether that is all, and whose the name is",
        "Claim what this node has, bring it up",
        "Keep the way in, and say how it stands",
    ]
    assert len(ran(output)) <= TASKS
    # each task costs the controller time for each node that it does nothing for
    assert re.findall(r"^skipping: \[(.*)\]", output, re.MULTILINE) == ["localhost", "localhost"]
    assert sorted(path.name for path in ways.iterdir()) == ["lab-1", "lab-2", "lab-3"]
    assert output.count("is running on board") == 3


def test_what_is_said_is_a_few_lines(proxies):
    """Lost: the line that says how to log in, or what is wrong, among those that say that nothing was done."""
    _folders, plays = proxies
    request = dict(instance="jackie", flavor=FLAVOR, proxy="p1")
    rc, output = plays.play("provision_instance", **request)
    assert rc == 0, output
    assert {"Ask what there is", "Choose"} < set(ran(output))
    plays.env["ANSIBLE_STDOUT_CALLBACK"] = "hetero.compute.quiet"
    rc, output = plays.play("provision_instance", **request)
    assert rc == 0, output
    assert len(said(output)) <= LINES, output
    rc, output = plays.play("provision_instance", **dict(request, flavor="tp64.9x9"))
    assert rc != 0, output
    assert output.count("tp64.9x9 is no flavor") == 1, output
    assert len(said(output)) <= LINES, output
