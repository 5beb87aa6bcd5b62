#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PCI passthrough in the configuration of a Nova node. What goes where is in module_utils/_hetero/openstack/pci.py."""

from __future__ import annotations

DOCUMENTATION = r"""
module: nova_pci
short_description: Give a Nova node its PCI aliases, device_spec and PciPassthroughFilter
version_added: 0.1.0
description:
  - Writes what a node of that kind needs for PCI passthrough. V(api) needs O(aliases), V(compute) needs O(aliases) and
    O(device_specs), V(scheduler) needs C(PciPassthroughFilter) among its filters.
  - Writes it where it takes effect for the service as it is started, by the names that the release reads. What no
    other file has goes into a file of its own, C(hetero-pci-KIND.conf) in C(nova.conf.d) or in the folder of
    C(--config-dir). What some file has already is added to in that file, behind it, between two marker lines.
  - Reads back what the service has now, from all of its files, and fails where that is not what was written.
  - Keeps the other filters. Those that the release has no more are left out, and said.
  - Finds files that are halfway from old names to new ones, and shows the patch that brings them there; O(migrate)
    applies it.
  - Restarts nothing. A service reads its files when it starts.
extends_documentation_fragment:
  - hetero.compute.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details: Shows the lines that change, and no other line of the files.
  idempotent:
    support: full
options:
  kind:
    description: What the node is. One that is several takes a run for each.
    type: str
    choices: [api, compute, scheduler]
    required: true
  aliases:
    description: The aliases, as in C(nova.conf). Those that the service has already are not written again.
    type: list
    elements: dict
    default: []
  device_specs:
    description: The devices that Nova may give away, as in C(device_spec). The first that matches counts.
    type: list
    elements: dict
    default: []
  migrate:
    description: Bring files that are halfway to the new names all the way, without lines that say the same again.
    type: bool
    default: false
  state:
    description: V(absent) takes away what this module wrote for that kind, and nothing else.
    type: str
    choices: [present, absent]
    default: present
  release:
    description: Nova's release, by number (V(34)) or name (V(havana) to V(gazpacho)).
    type: str
    default: "34"
  command:
    description:
      - How the service is started, such as C(nova-scheduler --config-file=/etc/nova/nova.conf).
      - Without it, as the running process was. Where none runs, V(api) is taken to be in a web server, and the others
        to be started without arguments.
    type: str
  wsgi:
    description: Whether the API is in a web server. The default is yes where there is no O(command).
    type: bool
  environment:
    description: The service's environment, as far as it counts, such as C(OS_NOVA_CONFIG_DIR).
    type: dict
  home:
    description: Home folder of the service's user. The default is the running process's, else C(/var/lib/nova).
    type: path
  root:
    description: The folder that is C(/) to the service, where it lives in an image or a container.
    type: path
    default: /
author:
  - hetero.compute contributors (@hetero-compute)
"""

EXAMPLES = r"""
- name: Let Nova give away this node's GRID K2
  hetero.compute.nova_pci:
    kind: compute
    aliases:
      - {name: a1, vendor_id: "10de", product_id: "11bf"}
    device_specs:
      - {vendor_id: "10de", product_id: "11bf", address: "*:85:00.*"}

- name: Let the scheduler look for it
  hetero.compute.nova_pci:
    kind: scheduler
"""

RETURN = r"""
command:
  description: How the service is started.
  returned: success
  type: str
  sample: nova-compute --config-file=/etc/nova/nova.conf
found:
  description: Whether a running process said so.
  returned: success
  type: bool
files:
  description: The files that the service reads, in their order.
  returned: success
  type: list
  elements: str
effective:
  description: What the service has of each option, read back; in check mode what it would have; none where nobody says.
  returned: success
  type: dict
  contains:
    alias: {description: The aliases., type: list, elements: str}
    device_spec: {description: The rules for devices., type: list, elements: str}
    enabled_filters: {description: The filters., type: list, elements: str}
    available_filters: {description: Where filters come from., type: list, elements: str}
    pci_in_placement: {description: Whether Placement chooses the devices., type: bool}
elsewhere:
  description: What files have already, and this module did not write.
  returned: success
  type: list
  elements: dict
  contains:
    option: {description: The option., type: str}
    value: {description: What there is., type: str}
    path: {description: The file., type: str}
    line: {description: Number of the line., type: int}
    effect: {description: 'V(kept), or V(overridden) by what was written behind it.', type: str}
notes:
  description: What a person ought to know, a sentence each.
  returned: success
  type: list
  elements: str
  sample: ["RamFilter is left out of the filters: gone since Nova 20: Placement counts that now"]
patch:
  description: What is left to do to files that are halfway to the new names, as a patch.
  returned: success
  type: str
failure:
  description: The error in its parts.
  returned: failure
  type: dict
seconds:
  description: Seconds of each step.
  returned: success
  type: dict
  sample: {plan: 0.004, files: 0.002}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._hetero.core.argument_spec import ArgumentSpec
from ..module_utils._hetero.core.changes import Change
from ..module_utils._hetero.core.module import run
from ..module_utils._hetero.openstack import options, pci

SPEC = ArgumentSpec(
    dict(
        kind=dict(type="str", choices=["api", "compute", "scheduler"], required=True),
        aliases=dict(type="list", elements="dict", default=[]),
        device_specs=dict(type="list", elements="dict", default=[]),
        migrate=dict(type="bool", default=False),
        state=dict(type="str", choices=["present", "absent"], default="present"),
        release=dict(type="str", default="34"),
        command=dict(type="str"),
        wsgi=dict(type="bool"),
        environment=dict(type="dict"),
        home=dict(type="path"),
        root=dict(type="path", default="/"),
    )
)


def work(params, check):
    change = Change(check)
    service, tree = options.service(params), options.Tree(params["root"])
    with change.step("plan"):
        plan = pci.plan(
            service, tree, params["aliases"], params["device_specs"], params["migrate"], params["state"] == "present"
        )
        planned = tree.but(plan.texts)
        effective = pci.effective(service, planned)
    with change.step("files"):
        for path, gone, new in pci.changes(plan, tree):
            change.note(path, dict(lines=gone), dict(lines=new))
        if change.changed and not change.check:
            pci.write(plan, tree)
            effective = pci.read_back(service, tree, effective)
    return dict(
        change.result,
        command=service.command,
        found=service.found,
        files=options.files(service, planned),
        effective=effective,
        elsewhere=plan.elsewhere,
        notes=options.assumed(params, service) + plan.notes,
        patch=plan.patch,
    )


def main():
    run(AnsibleModule(**SPEC.kwargs), work)


if __name__ == "__main__":
    main()
