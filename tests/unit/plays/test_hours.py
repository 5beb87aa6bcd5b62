# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a lease may be, by hours=N. If these fail, a playbook takes what its nodes refuse, or the other way round."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.leases import LONGEST
from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR
from ansible_collections.hetero.compute.tests.unit.plays.test_left_over import said


@pytest.mark.parametrize("hours", ["0", "-1", "87600.5", "999999", "nan", "1e2", "1,5"])
@pytest.mark.parametrize("playbook", ["provision_instance", "extend_instance"])
def test_hours_have_one_set_of_bounds(tmp_path, playbook, hours):
    """Lost: the time of who is told one set by a playbook, and another one by a node that was asked."""
    text = said(tmp_path, playbook, instance="jackie", flavor=FLAVOR, hours=hours)
    assert f"hours is {hours}: give more than 0 and at most {LONGEST}, such as -e hours=24, or none for no end" in text


@pytest.mark.parametrize("hours", ["none", "0.5", ".5", "87600"])
def test_hours_within_the_bounds_are_taken(tmp_path, hours):
    """Lost: a lease that nodes take. What is said is of the image's name alone."""
    text = said(tmp_path, "provision_instance", instance="jackie", flavor=FLAVOR, hours=hours, image="a/b")
    assert "image is no name for an image" in text
    assert "hours is" not in text
