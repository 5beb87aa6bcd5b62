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
    ("gpu_lxc", {"gpu_overrides": []}, "gpu_lxc_overrides: is []: give a mapping"),
    ("kvm_guests", {"gateway": "10.0.81"}, 'kvm_guests_gateway: is "10.0.81": give an IPv4 address'),
    ("kvm_guests", {"guests_folder": "disks"}, 'kvm_guests_folder: is "disks": give an absolute path'),
    ("kvm_guests", {"domain_type": "xen"}, 'kvm_guests_domain_type: is "xen": give one of kvm, qemu'),
    ("kvm_guests", {"aliases": {"a": 7}}, "kvm_guests_aliases.a: is 7: give a mapping"),
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


@pytest.mark.parametrize("role", ["gpu_lxc", "kvm_guests"])
def test_a_table_says_all_at_once_and_what_is_over_is_noted(role):
    """Lost: the course, to a wrong year; or a set-up for each mistake beside those that the controller found."""
    old = {"owner": "ann", "from": "2020-01-01 08:00Z", "until": "2020-01-01 18:00Z", "flavor": "cg1"}
    found = Findings()
    found.defect(f"{role}_reservations[1].flavor", "is no flavor", "did you mean cg1?")
    table = {"table": [old, dict(old, flavor="cg2", ownr="x"), "ann"], "flavors": {"cg1": {}}}
    plan_check.settings(role, PART, {**GOOD, "reservations": table}, found)
    places = sorted(str(one.thing) for one in found.defects)
    assert places == [f"{role}_reservations[1].flavor", f"{role}_reservations[1].ownr", f"{role}_reservations[2]"]
    (note,) = found.notes
    assert str(note).startswith(f"{role}_reservations: over is [0] (1 cg1 for ann until ")


def test_who_nobody_can_be_has_no_limit_and_nothing_reserved():
    """Lost: the limit, or the GPUs of a course, to a blank behind a name; or to an accent that is typed in two ways."""
    dates = {"from": "2090-01-01 08:00Z", "until": "2090-01-01 18:00Z"}
    table = {"table": [dict(dates, owner="ann ", flavor="cg1")], "flavors": {"cg1": {}}}
    limits = {"*": 1, "ci": 2, "eve\u200b": 0, "jos\u00e9": 1, "jose\u0301": 2}
    found = Findings()
    plan_check.settings("gpu_lxc", PART, {**GOOD, "reservations": table, "owner_limits": limits}, found)
    assert {str(one.thing) for one in found.defects} == {
        "gpu_lxc_owner_limits.eve\u200b", "gpu_lxc_owner_limits.jose\u0301", "gpu_lxc_reservations[0].owner",
    }  # fmt: skip
