# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`hetero VERB …`: what a node does by itself, started by systemd or by hand. Each verb is a file of its own.

A file is imported when its verb is asked for: a fault in one (a PDU's driver) must not keep another (restore) from its
work. A verb that is not for this kind of node says that its configuration is missing.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Sequence

from ..core.errors import BadInput

#: Verb → the file whose `main` runs it with the words after it and returns the exit code. Module node_tools brings all.
VERBS = {
    "backup": ".proxy.backup",
    "reap": ".proxy.reap",
    "restore": ".proxy.restore",
    "gpu-backup": ".compute_host.backup",
    "gpu-facts": ".compute_host.local_fact",
    "gpu-nodes": "..compute_host.gpu_nodes",
    "gpu-reap": ".compute_host.reap",
    "gpu-restore": ".compute_host.gpu_restore",
    "gpu-start": ".compute_host.gpu_start",
    "pci-restore": ".compute_host.pci_restore",
}


#: What a person types who knows none of them.
ASKS = ("--help", "-h", "help")
MORE = "hetero VERB --help says what it does"


def main(arguments: Sequence[str]) -> int:
    verb = arguments[0] if arguments else ""
    if verb in ASKS:
        sys.stdout.write("\n  ".join([f"hetero VERB …: what a node does by itself; {MORE}:", *sorted(VERBS)]) + "\n")
        return 0
    if verb not in VERBS:
        raise BadInput(
            f"no such verb (known: {', '.join(sorted(VERBS))})", f"hetero {verb}".strip(), f"name one; {MORE}"
        )
    return import_module(VERBS[verb], __package__).main(arguments[1:])
