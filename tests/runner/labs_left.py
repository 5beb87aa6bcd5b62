# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labs that a stage brought up and did not take down: it was interrupted, killed, or ran out of its time."""

from __future__ import annotations

import time

from runner.lanes import run_stages
from runner.places import BIN, BUILD, environment
from runner.said import report
from runner.tools import tool

#: Where each stage has its labs, a folder each (Lab in tests/e2e and tests/attack; .config/molecule/config.yml).
LABS = BUILD / "lab"
#: Labs of stages that have more than one, or another name.
NAMED = {
    "e2e": ("e2e", "e2e-disk", "nfsd"),
    "attack": ("attack",),
}


def left_up(stages):
    """Folders of labs that are still up, of these stages: what a stage finds up there it takes down when it begins.

    :param stages: names of stages that have begun.
    """
    names = []
    for stage in stages:
        kind, _dash, scenario = stage.partition("-")
        names += NAMED.get(kind, ()) if kind != "molecule" else [scenario]
    return [LABS / name for name in dict.fromkeys(names) if (LABS / name / "lab.json").exists()]


def take_down(folders):
    """Whether all of them are down now; what was not is told with the play that does it."""
    began = time.monotonic()
    stages = {f"lab_down-{folder.name}": _lab_down(folder) for folder in folders}
    try:
        down = all(run_stages(list(stages), stages))
    except KeyboardInterrupt:
        down = False
    for folder in folders:
        if (folder / "lab.json").exists():
            down = False
            play = f"ansible-playbook hetero.compute.lab_down -e lab_folder={folder}"
            report("tidying", f"FAILED: {folder} is still up: {play}", began)
    return down


def _lab_down(folder):
    argv = [BIN / "ansible-playbook", "-i", folder / "inventory", "hetero.compute.lab_down"]

    def stage(log):
        tool(log, [*argv, "-e", f"lab_folder={folder}"], env=environment())
        return "a lab was left up, and is down"

    return stage
