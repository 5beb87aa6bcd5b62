# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`hetero VERB …`: what a node does by itself, started by systemd or by hand. Each verb is a file of its own.

A file is imported when its verb is asked for: a fault in one (a PDU's driver) must not keep another (restore) from its
work. A verb that is not for this kind of node says that its configuration is missing.
"""

from __future__ import annotations

from ..errors import BadInput
from ..proxy_node import backup, restore


def _reap(arguments):
    from ..proxy_node import reap

    return reap.main(arguments)


def _gpu_nodes(arguments):
    from ..accelerator_host import gpu_nodes

    return gpu_nodes.main(arguments)


def _gpu_facts(arguments):
    from ..accelerator_host import local_fact

    return local_fact.main(arguments)


def _pci_restore(arguments):
    from ..accelerator_host import pci_restore

    return pci_restore.main(arguments)


#: Verb → what runs it with the words after it; returns the exit code.
VERBS = {
    backup.VERB: backup.main,
    restore.VERB: restore.main,
    "reap": _reap,
    "gpu-nodes": _gpu_nodes,
    "gpu-facts": _gpu_facts,
    "pci-restore": _pci_restore,
}


def main(arguments):
    verb = arguments[0] if arguments else ""
    if verb not in VERBS:
        raise BadInput(f"no such verb (known: {', '.join(sorted(VERBS))})", f"hetero {verb}".strip(), "name one")
    return VERBS[verb](arguments[1:])
