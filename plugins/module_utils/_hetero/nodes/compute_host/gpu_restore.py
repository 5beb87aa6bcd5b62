# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`hetero gpu-restore`: before LXC starts its containers, their disks are mounted, and those with GPUs get the numbers
that these have in this boot.

Also by hand, when a driver was loaded again or a GPU was put back. One that cannot have its GPUs is not started, and
says why; the others are. Which GPUs these are is known to hypervisors/lxc_gpus/restoration.py.
"""

from __future__ import annotations

import argparse
import sys
from typing import Mapping, Sequence

from ...claims.host.config import CONFIG, config_here
from ...compute_host.gpu_site import gpu_site
from ...compute_host.lost_database import must_not_be_lost_here
from ...core.errors import HeteroError
from ...hypervisors.lxc import disks
from ...hypervisors.lxc_gpus import restoration
from ..verb_parser import verb_parser

VERB = f"gpu-{restoration.VERB}"
DOES = "Mount containers' disks, and give containers their GPUs with the numbers of this boot."


def parser() -> argparse.ArgumentParser:
    """Return the parser of its words."""
    return verb_parser(VERB, DOES, CONFIG, "host")


def main(arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    # First: whatever is wrong with GPUs or the database, a container without them starts.
    failed = disks.restore(config_here(options.config).lxc.lxcpath)
    _say(failed)
    lost = _lost(options.config)
    # Where the database is lost, none is made: containers have their GPUs by their own files, and the loss is said.
    given = dict(config=options.config, state_db=None, lxcpath=None, overrides=None)
    with gpu_site(given, create=lost is None, lost=True) as site:
        done = restoration.restore(site)
    _say({name: why for name, why in done.items() if why or name not in failed})
    sys.stderr.write(f"{lost}\n" if lost else "")
    return 1 if failed or lost or any(done.values()) else 0


def _lost(config: str) -> HeteroError | None:
    """Return the error that the host's database is lost, or None."""
    try:
        must_not_be_lost_here(config)
    except HeteroError as error:
        return error
    return None


def _say(done: Mapping[str, str | None]) -> None:
    for name, why in sorted(done.items()):
        (sys.stderr if why else sys.stdout).write(f"{name}: {why or 'GPUs ready'}\n")
