# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of a host's variables. If these fail, a set-up is a success and leaves a host.json that no verb reads.

Tests nodes/plan_check.py.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.config import PART, read_config
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.findings import Findings
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes import plan_check

GOOD = {"name": "gpu1", "memory_mb": None, "local_gb": 100, "default_image": "", "bridge": "hetero0", "addresses": []}
GOOD.update(state_folder="/var/lib/hetero", lxcpath="/var/lib/lxc", gateway="", unprivileged=True, pids=0)
WRONG = (
    ("gpu_lxc", {"lxcpath": "rel/lxc"}, 'gpu_lxc_lxcpath: is "rel/lxc": give an absolute path'),
    ("gpu_lxc", {"memory_mb": -1}, "gpu_lxc_memory_mb: is -1: give a whole number"),
    ("gpu_lxc", {"bridge": "x" * 16}, f'gpu_lxc_bridge: is "{"x" * 16}": give the name of a network interface'),
    ("gpu_lxc", {"events_days": 0}, "gpu_lxc_events_days: is 0: give a whole number from 1 to 36500"),
    ("kvm_guests", {"events_days": "a year"}, 'kvm_guests_events_days: is "a year": give a whole number'),
    ("gpu_lxc", {"gpu_overrides": []}, "gpu_lxc_overrides: is []: give an object"),
    ("kvm_guests", {"gateway": "10.0.81"}, 'kvm_guests_gateway: is "10.0.81": give an IPv4 address'),
    ("kvm_guests", {"guests_folder": "disks"}, 'kvm_guests_folder: is "disks": give an absolute path'),
    ("kvm_guests", {"domain_type": "xen"}, 'kvm_guests_domain_type: is "xen": give one of kvm, qemu'),
    ("kvm_guests", {"aliases": {"a": 7}}, "kvm_guests_aliases.a: is 7: give an object"),
)


def said(role, given):
    found = Findings()
    plan_check.settings(role, PART, given, found)
    return list(map(str, found.defects))


@pytest.mark.parametrize("role", ["gpu_lxc", "kvm_guests"])
def test_right_values_have_nothing_to_say(role):
    """Lost: a set-up that ran for years."""
    assert said(role, GOOD) == []


@pytest.mark.parametrize(("role", "given", "line"), WRONG)
def test_what_no_verb_would_read_is_refused_by_its_variable(tmp_path, role, given, line):
    """Lost: every verb on that host, after a set-up that said all was well."""
    (defect,) = said(role, {**GOOD, **given})
    assert defect.startswith(line)
    (tmp_path / "host.json").write_text(json.dumps({"lxc": {**GOOD, **given}}))
    with pytest.raises(BadInput):
        read_config(str(tmp_path / "host.json"))


def test_a_folder_that_is_nothing_is_refused_and_what_was_said_is_not_said_again():
    """Lost: folders of the role's without a name; or two lines for one mistake."""
    assert said("gpu_lxc", {**GOOD, "lxcpath": ""}) == ['gpu_lxc_lxcpath: is "": give an absolute path']
    found = Findings()
    found.defect("kvm_guests_addresses", "has 1", "give the first and the last address for guests")
    plan_check.settings("kvm_guests", PART, {**GOOD, "addresses": ["10.0.81.1"]}, found)
    assert len(found.defects) == 1
