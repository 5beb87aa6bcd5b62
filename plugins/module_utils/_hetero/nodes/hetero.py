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

from ..core.errors import BadInput, naming_limits
from ..core.this_node import THIS_NODE
from .tools import ASKS

#: Verb, of one word or two → its file. `main` of that runs it with the words after it and returns the exit code, and
#: `parser` knows these words. Module node_tools brings all.
VERBS = {
    "backup": ".proxy.backup",
    "check": ".proxy.check",
    "console": ".proxy.console",
    "consoles": ".proxy.consoles",
    "kernels": ".proxy.kernels",
    "reap": ".proxy.reap",
    "restore": ".proxy.restore",
    "gpu-backup": ".compute_host.backup",
    "gpu-facts": ".compute_host.local_fact",
    "gpu-nodes": "..compute_host.gpu_nodes",
    "gpu-restore": ".compute_host.gpu_restore",
    "gpu-start": ".compute_host.gpu_start",
    "host reap": ".compute_host.reap",
    "pci-restore": ".compute_host.pci_restore",
}
#: Former name → verb. Units that an earlier release wrote call it so.
FORMER = {"gpu-reap": "host reap"}
MORE = "hetero VERB --help says what it does"


def main(arguments: Sequence[str]) -> int:
    """Run the verb that the words begin with, and return its exit code.

    Where the words are only the beginning of verbs, or none at all, these verbs are shown; so they are to who asks for
    help.

    :raises BadInput: there is no such verb.
    """
    asks = bool(arguments) and arguments[-1] in ASKS
    said = list(arguments[:-1] if asks else arguments)
    begun = sorted(verb for verb in VERBS if verb.split()[: len(said)] == said and verb.split() != said)
    if begun:
        (sys.stdout if asks else sys.stderr).write(usage(begun))
        return 0 if asks else 1
    verb, others = parted(arguments)
    with naming_limits(THIS_NODE):
        return import_module(VERBS[verb], __package__).main(others)


def usage(verbs: Sequence[str]) -> str:
    """Return a line for each of these verbs, with what it does in its own words."""
    width = max(map(len, verbs))
    lines = [f"  {verb:{width}}  {_does(verb)}" for verb in verbs]
    return "\n".join([f"hetero VERB …: what a node does by itself; {MORE}:", *lines]) + "\n"


def _does(verb: str) -> str:
    try:
        return str(import_module(VERBS[verb], __package__).DOES)
    except Exception as error:  # noqa: BLE001 - the others are listed, whatever is wrong with the file of one
        return f"cannot be loaded: {type(error).__name__}: {error}"


def parted(arguments: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the verb that the words begin with, by its own name, and the words after it.

    :raises BadInput: there is no such verb.
    """
    for count in (2, 1):
        said = " ".join(arguments[:count])
        verb = FORMER.get(said, said)
        if verb in VERBS:
            return verb, arguments[count:]
    what = f"no such verb (known: {', '.join(sorted(VERBS))})"
    raise BadInput(what, " ".join(["hetero", *arguments[:1]]), f"name one; {MORE}")
