# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which stages there are, in which order they begin, which of them are run when, and which not beside each other."""

from __future__ import annotations

import functools
import itertools

from runner.places import ROOT
from runner.stages.ansible_tests import ansible_unit, sanity, sanity_everywhere
from runner.stages.house import docs, layers, ruff, types
from runner.stages.labs import attack, e2e, gpu, scenario, versions, whole_folder
from runner.stages.published import lint, lint_everywhere, package
from runner.stages.units import long, mutants, unit_code, unit_processes
from turns import todays

SCENARIOS = sorted(ROOT.glob("molecule/*/molecule.yml"))
#: Scenarios by themselves only: an image is built for another processor, which needs a kernel with binfmt_misc, and its
#: machines are emulated at several times the cost of a PC.
FOREIGN_SCENARIOS = ["molecule-arm_pcs"]
#: Scenarios of `make test-all` only, the longest first: guests in a host that is a machine under emulation itself; PCs
#: without virtio; and what stage e2e does on its own lab as well (a login, an idempotent second run, a reboot:
#: test_drift; an end that leaves nothing: test_verbs).
RARE_SCENARIOS = ["molecule-whole", "molecule-kvm_guests", "molecule-pcs", "molecule-default"]
MOLECULE = {f"molecule-{path.parent.name}": functools.partial(scenario, name=path.parent.name) for path in SCENARIOS}
# In the order in which they are begun: what says at once that something is wrong, then the longest.
STAGES = {
    "ruff": ruff,
    "types": types,
    "layers": layers,
    "docs": docs,
    "e2e-whole": functools.partial(whole_folder, name="e2e"),
    "long": long,
    "mutants": mutants,
    **{name: MOLECULE.pop(name) for name in RARE_SCENARIOS},
    **{name: functools.partial(MOLECULE.pop(name), limit=18000) for name in FOREIGN_SCENARIOS},
    "versions": versions,
    "gpu": gpu,
    "unit-code": unit_code,
    "attack-whole": functools.partial(whole_folder, name="attack"),
    "e2e": e2e,
    "attack": attack,
    "unit-processes": unit_processes,
    "molecule-pci_passthrough": MOLECULE.pop("molecule-pci_passthrough"),
    "sanity": sanity,
    **MOLECULE,
    "sanity-everywhere": sanity_everywhere,
    "ansible-unit": ansible_unit,
    "lint": lint,
    "lint-everywhere": lint_everywhere,
    "package": package,
}
#: Stages that run when they are named, and else never.
BY_NAME = {*FOREIGN_SCENARIOS}
#: Those, and stages of `make test-all` only.
RARE = {"long", "e2e-whole", "attack-whole", "gpu", "mutants", "versions", "ansible-unit"}
RARE |= {"sanity-everywhere", "lint-everywhere", *RARE_SCENARIOS, *BY_NAME}
#: Stages that take turns, a group a day: a kind of board or host on a lab of its own takes minutes, and what all kinds
#: share is tried on the labs of e2e and attack.
TURNS = [
    ["attack", "molecule-pci_passthrough"],
    ["e2e", "molecule-tilera"],
    ["attack", "molecule-disk"],
    ["e2e", "molecule-uboot"],
    ["attack", "molecule-gpu_lxc"],
    ["e2e", "molecule-tftp_proxy"],
]
#: Stages whose tests are all among those of another one, which is what `make test-all` runs of the two.
CONTAINED = {
    "unit-code": "mutants",
    "e2e": "e2e-whole",
    "attack": "attack-whole",
    "sanity": "sanity-everywhere",
    "lint": "lint-everywhere",
}
#: One name for several stages.
GROUPS = {
    group: [name for name in STAGES if name.startswith(f"{group}-") and name not in RARE]
    for group in ("unit", "molecule")
}
#: What only one stage at a time may use.
USED = {
    "sanity": {"copy for ansible-test"},
    "sanity-everywhere": {"copy for ansible-test"},
    "ansible-unit": {"copy for ansible-test"},
    **{stage: {"lab build/lab/e2e"} for stage in ("e2e", "e2e-whole")},
    **{stage: {"lab build/lab/attack"} for stage in ("attack", "attack-whole")},
    **{f"molecule-{name}": {"an emulated host"} for name in ("whole", "kvm_guests", "pci_passthrough")},
}


def not_today(day):
    """Stages that have their turn on another day."""
    return set(itertools.chain(*TURNS)) - set(*todays(TURNS, len(TURNS), day))
