# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stages on labs of their own: playbooks as users type them, attackers, scenarios; and a real GPU."""

from __future__ import annotations

import re
import sys

from builds import shared
from runner.places import BIN, ROOT, environment
from runner.pytest_runs import pytest
from runner.tools import StageFailed, counted, tool


def e2e(log):
    """The playbooks as a user types them, on a lab of their own: drift, races, a killed play, another PDU client."""
    return f"{pytest(log, ['tests/e2e'])} tests"


def attack(log):
    """Each promise of the security guide, tried by whom it is made against, on a lab of its own."""
    return f"{pytest(log, ['tests/attack'])} tests"


#: What Ansible says of a play that has no host, and plays of the collection that have none where they are not needed
#: (playbooks/provision_instance.yml).
NO_HOST = "skipping: no hosts matched"
NOT_ALWAYS_NEEDED = {
    "Ask the nodes",
    "Choose",
    "Claim",
    "Look further, give back",
    "Bring up what was claimed",
}


def whole_folder(log, name):
    """All tests below tests/`name`, those too that take minutes each or have their turn on another day."""
    return f"{pytest(log, [f'tests/{name}'], '-m', 'long or not long', limit=14400)} tests"


def scenario(log, name, limit=5400):
    """One scenario under molecule/, on a lab of its own.

    Guests in a host that is emulated itself take half an hour, and beside other stages twice that.
    """
    base = ROOT / ".config" / "molecule" / "config.yml"
    argv = [BIN / "molecule", "--base-config", base, "test", "--scenario-name", name, "--no-command-borders"]
    output = tool(log, argv, limit=limit, env=environment(**shared()))
    # molecule ends with 0 when a playbook is not there, when a play finds no host, and when no scenario is run
    recap = re.search(rf"^{name} +: (actions=.*)$", output, re.MULTILINE)
    if not recap or f"{name} > verify: Executed: Successful" not in output:
        raise StageFailed("nothing verified")
    if re.search(r"(skipped|missing|failed|disabled)=[1-9]", recap[1]):
        raise StageFailed(recap[1])
    named = re.findall(rf"^PLAY \[(.*)\] \**\n{NO_HOST}", output, re.MULTILINE)
    if output.count(NO_HOST) != len([play for play in named if play in NOT_ALWAYS_NEEDED]):
        raise StageFailed("a play found no host, so it tested nothing")
    return f"{counted(r'successful=([0-9]+)', recap[1], 'steps')} steps"


def versions(log):
    """Each ansible-core that is supported, up to PyPI's newest, on each of its Pythons, with nodes of each Python."""
    output = tool(log, [BIN / "python", ROOT / "tests" / "versions" / "matrix.py"], limit=7200)
    return output.strip().splitlines()[-1]


def gpu(log):
    """A CUDA program in a container that is given a real GPU; where there is none it says so. Needs no .venv."""
    return tool(log, [sys.executable, ROOT / "tests" / "gpu" / "prove.py"]).strip().splitlines()[-1]
