#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands of a node that run there without Ansible. How they get there, module_utils/_hetero/nodes/tools.py knows."""

from __future__ import annotations

DOCUMENTATION = r"""
module: node_tools
short_description: Install the commands of a proxy node or a compute host
version_added: 0.1.0
description:
  - Puts the collection's modules, what they import and the part of Ansible that they need into O(folder), and for each
    command a script that starts it.
  - From then on a call of a module of this very release and ansible-core sends its arguments only.
  - C(pdu_mgr) switches outlets of a proxy node's PDUs. C(hetero) has the verbs of all kinds of nodes, so that a machine
    may be more than one of them. All of them are in guide
    R(Commands of nodes,ansible_collections.hetero.compute.docsite.guide_node_commands).
  - Used by roles P(hetero.compute.tftp_proxy#role), P(hetero.compute.gpu_lxc#role) and
    P(hetero.compute.pci_passthrough#role).
extends_documentation_fragment:
  - hetero.compute.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details: Of what somebody else wrote is shown only how long it is.
  idempotent:
    support: full
options:
  folder:
    description: Folder that holds the code.
    type: path
    default: /usr/lib/hetero
  commands:
    description: Where each command is to lie, as path and name.
    type: dict
    default: {}
  archive:
    description: The code, as a tar on the node. The action plugin of this module makes it and gives it.
    type: path
    required: true
author:
  - hetero.compute contributors (@hetero-compute)
"""

EXAMPLES = r"""
- name: Install command hetero
  hetero.compute.node_tools:
    commands:
      /usr/local/sbin/hetero: hetero
"""

RETURN = r"""
paths:
  description: Files and folders that were changed, or in check mode would be.
  returned: success
  type: list
  elements: str
  sample: [/usr/local/sbin/hetero]
by_hand:
  description: >-
    Names under which files stay that lay in the commands' places and that this module did not write, such as a site's
    own C(pdu_mgr).
  returned: success
  type: list
  elements: str
  sample: [/tftpboot/pdu_mgr.by-hand]
seconds:
  description: Seconds for each step.
  returned: success
  type: dict
  sample: {files: 0.02}
"""

from contextlib import ExitStack

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._hetero.core.argument_spec import ArgumentSpec
from ..module_utils._hetero.core.changes import Change
from ..module_utils._hetero.core.errors import BadInput
from ..module_utils._hetero.core.module import run
from ..module_utils._hetero.nodes.files import keep_by_hand, keep_file, keep_folder
from ..module_utils._hetero.nodes.own_copy import in_turn, keep_copy, remove_others
from ..module_utils._hetero.nodes.tools import script

#: Name of a command → the file of module_utils whose `main` runs it.
COMMANDS = {"hetero": "nodes.hetero", "pdu_mgr": "nodes.proxy.pdu_mgr"}
SPEC = ArgumentSpec(
    dict(
        folder=dict(type="path", default="/usr/lib/hetero"),
        commands=dict(type="dict", default={}),
        archive=dict(type="path", required=True),
    )
)


def work(params, check):
    unknown = set(params["commands"].values()) - set(COMMANDS)
    if unknown:
        what = f"no such command (known: {', '.join(COMMANDS)})"
        raise BadInput(what, ", ".join(sorted(unknown)), "name one of these")
    change, kept = Change(check), []
    with change.step("files"):
        keep_folder(params["folder"], "0755", change)
        # Check mode changes nothing, and needs no turn.
        with ExitStack() if check else in_turn(params["folder"]):
            copy = keep_copy(params["folder"], params["archive"], change)
            for path, name in params["commands"].items():
                text = script(name, COMMANDS[name], copy).encode()
                kept += [keep_by_hand(path, text, change)]
                keep_file(path, text, "0755", change, theirs=kept[-1] is not None)
            remove_others(params["folder"], copy, change)
    by_hand = [name for name in kept if name]
    return dict(change.result, paths=[entry["after_header"] for entry in change.diff], by_hand=by_hand)


def main():
    run(AnsibleModule(**SPEC.kwargs), work)


if __name__ == "__main__":
    main()
