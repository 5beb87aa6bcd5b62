# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What plays say of leases. If these fail, somebody believes that an instance stays, and its node removes it."""

from __future__ import annotations

import json
import os
import re

import pytest

from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR, Playbooks, changed
from ansible_collections.hetero.compute.tests.unit.plays.test_both_kinds import claim
from ansible_collections.hetero.compute.tests.unit.plays.test_guests_by_name import KG0, kvm1

__all__ = ["kvm1"]

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")
#: Of an hour that was given just now, or some minutes ago.
LEFT = r"until [0-9-]+ [0-9:]+ \S+, (?:1 h|[0-9]+ min) left"


def way(instance, hours):
    """The command line that is named for a longer lease."""
    return f"ansible-playbook hetero.compute.extend_instance -e instance={instance} -e hours={hours}"


def test_an_instance_that_is_there_keeps_its_lease_and_says_so(proxies):
    """Lost: the root of who asks for five hours more, and is told that the instance is running."""
    _folders, of_both = proxies
    asked, alone = dict(instance="jackie", flavor=FLAVOR), Playbooks(of_both.folder, ["p1"])
    rc, output = alone.play("provision_instance", **asked, hours=1)
    assert rc == 0, output
    assert re.search(rf"^jackie has board0, lease: {LEFT}$", output, re.MULTILINE), output
    assert "keeps its lease" not in output
    for plays, flags, hours in ((alone, (), "5"), (alone, ("--check",), "5"), (of_both, (), "none")):
        rc, output = plays.play("provision_instance", *flags, **asked, hours=hours)
        assert (rc, changed(output)) == (0, 0), output
        text = rf"^jackie  board0  lease     keeps its lease: {LEFT}; {way('jackie', hours)} makes it longer$"
        assert len(re.findall(text, output, re.MULTILINE)) == 1, output
    rc, output = alone.play("provision_instance", **asked)
    assert rc == 0, output
    assert "keeps its lease" not in output
    assert re.search(rf"^jackie has board0, lease: {LEFT}$", output, re.MULTILINE), output


def test_a_container_that_is_there_keeps_its_lease_and_says_so(both_kinds):
    """Lost: the same of a container, which is claimed only here: its image is not there."""
    _proxy, host, plays = both_kinds
    claim(host, "ml-7", "jo")
    ml_7 = dict(instance="ml-7", flavor="cg1.xlarge", image="debian")
    _rc, output = plays.play("provision_instance", "--check", hours="5", **ml_7)
    assert f"ml-7    gpu1    keeps its lease: no end; {way('ml-7', 5)} makes it shorter\n" in output


@pytest.mark.long
def test_a_guest_that_is_there_keeps_its_lease_and_says_so(kvm1):
    """Lost: the same of a guest."""
    _host, plays = kvm1
    types = json.dumps({"hetero_extra_instance_types": {"kg0.small": KG0}})
    for hours, kept in (("1", False), ("5", True)):
        rc, output = plays.play("provision_instance", "-e", types, instance="ml-9", flavor="kg0.small", hours=hours)
        assert rc == 0, output
        assert re.search(rf"^ml-9 has kvm1, lease: {LEFT}$", output, re.MULTILINE), output
        text = rf"^ml-9    kvm1    keeps its lease: {LEFT}; {way('ml-9', 5)} makes it longer$"
        assert bool(re.search(text, output, re.MULTILINE)) is kept, output
