# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who does the verbs of module `instance` on each kind (site/kinds.py), and which kind a call means.

A kind's file is imported when it is asked for: a proxy node needs nothing of libvirt, a host nothing of PDUs. Imports
are written out because Ansible ships to a node only what is imported by name. A file has `work(params, check)` and
`in_background(module)`.
"""

from __future__ import annotations

import os
from types import ModuleType
from typing import Any, Callable, Dict

from ...core.errors import BadInput
from ...core.this_node import THIS_NODE
from ...site.boot_sources import DISK
from ...site.kinds import BOARD, BY_HYPERVISOR, CONTAINER, GUEST, KINDS, Kind


def _boards() -> ModuleType:
    from . import board

    return board


def _compute_host() -> ModuleType:
    from . import compute_host

    return compute_host


#: Kind → the file that does its verbs.
FILES: Dict[str, Callable[[], ModuleType]] = {
    BOARD.name: _boards,
    CONTAINER.name: _compute_host,
    GUEST.name: _compute_host,
}
#: Where a node's configuration says what it is.
PROXY, HOST = "/etc/hetero/proxy.json", "/etc/hetero/host.json"


def kind_of(params: dict[str, Any]) -> ModuleType:
    """Return the file of the kind that is meant, and fill `kind` and `config` of the parameters in by it.

    :raises BadInput: an option is of another kind; or nothing says which is meant, on a machine that has two.
    """
    kind = KINDS[params["kind"]] if params["kind"] else _asked(params["flavor"]) or _of_the_node()
    params["kind"] = kind.name
    params["config"] = params["config"] or (HOST if kind.section else PROXY)
    options = [(other, other.option) for other in KINDS.values() if other.option]
    given = [(other, option) for other, option in options if params[option] not in (None, [])]
    for other, option in given + ([(BOARD, "boot_source")] if params["boot_source"] == DISK else []):
        if other is not kind:
            raise BadInput(f"is of a {other.name}, and {params['instance']} is a {kind.name}", option, "leave it out")
    return FILES[kind.name]()


def _asked(flavor: dict[str, Any] | None) -> Kind | None:
    """Return the Kind that a flavor asks for by its hypervisor.

    For a flavor without one it is BOARD on a proxy node, else None.
    """
    words = str(((flavor or {}).get("extra_specs") or {}).get("hypervisor", "")).upper().split()
    found = next((kind for word, kind in BY_HYPERVISOR.items() if word in words), None)
    return found or (BOARD if flavor and os.path.exists(PROXY) else None)


def _of_the_node() -> Kind:
    there = [path for path in (PROXY, HOST) if os.path.exists(path)]
    if len(there) > 1:
        what = f"is not given, and {THIS_NODE} is a proxy node ({PROXY}) and a compute host ({HOST})"
        raise BadInput(what, "kind", "say what is meant: kind board, container or guest")
    return CONTAINER if there == [HOST] else BOARD
