# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an instance runs in, and who does the verbs of module `instance` there.

A kind's file is imported when it is asked for: a proxy node needs nothing of libvirt, a host nothing of PDUs. It has
`work(params, check)` and `in_background(module)`, and its configuration is where CONFIGS says.
"""

from __future__ import annotations

import os

from .errors import BadInput
from .this_node import THIS_NODE

#: Word of a flavor's `hypervisor` → kind.
HYPERVISORS = {"LXC": "container", "KVM": "guest"}
PROXY, HOST = "/etc/hetero/proxy.json", "/etc/hetero/host.json"
#: Option → the kind that alone has it.
ONLY = {"board": "board", "devices": "guest"}


def kind_of(params):
    """The file of the kind that is meant; `kind` and `config` of the parameters are what they are by default.

    :raises BadInput: an option is of another kind; or nothing says which is meant, on a machine that has two.
    """
    params["kind"] = params["kind"] or _asked(params["flavor"]) or _of_the_node()
    params["config"] = params["config"] or (PROXY if params["kind"] == "board" else HOST)
    for option, kind in ONLY.items():
        if params[option] not in (None, []) and params["kind"] != kind:
            raise BadInput(f"is of a {kind}, and {params['instance']} is a {params['kind']}", option, "leave it out")
    if params["kind"] == "board":
        from .boards import instances

        return instances
    from .accelerator_host import verbs

    return verbs


def _asked(flavor):
    """What a flavor asks for, which is a board where a node that has some is asked by one that names no hypervisor."""
    words = str(((flavor or {}).get("extra_specs") or {}).get("hypervisor", "")).upper().split()
    found = next((kind for word, kind in HYPERVISORS.items() if word in words), None)
    return found or ("board" if flavor and os.path.exists(PROXY) else None)


def _of_the_node():
    there = [path for path in (PROXY, HOST) if os.path.exists(path)]
    if len(there) > 1:
        what = f"is not given, and {THIS_NODE} is a proxy node ({PROXY}) and an accelerator host ({HOST})"
        raise BadInput(what, "kind", "say what is meant: kind board, container or guest")
    return "container" if there == [HOST] else "board"
