#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's records of instances against the truth; looked at in module_utils/_hetero/compute_host/reconciliation.py."""

from __future__ import annotations

DOCUMENTATION = r"""
module: host_reconcile
short_description: Compare what a compute host recorded of its instances with what is true
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Looks whether each instance's container exists and runs, and whose host key answers at its address, and mends what
    is safe, which is the record and the container's configuration.
  - Looks which of libvirt's domains have a PCI device that belongs to somebody else, or belong to no instance. What is
    allocated to a domain that no longer exists is freed. What a guest that was made here has, and nobody has by the
    table, is written down.
  - A database that is gone although there are containers or guests of this collection begins anew only where there is
    no copy of it, with a warning; the GPUs and cards that they have are written down for them, as shared where several
    can open one. Until all of it is written down, each module fails; what is missing is a warning, to be mended before
    this is run again. Where a copy was put in its place as the error says, what they have besides is written down, too.
  - Where a claim's own record beside the database has another end of its lease, the later end is written into both. One
    that is lost, or cannot be read, is reported, and its lease is not ended.
  - Nothing is started or ended, and nothing is written into a root.
extends_documentation_fragment:
  - hetero.compute.attributes
  - hetero.compute.attributes.actiongroup_host
  - hetero.compute.host
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  timeout:
    description: Seconds to wait until another verb lets go of an instance.
    type: float
    default: 30
seealso:
  - module: hetero.compute.gpu_reconcile
  - module: hetero.compute.board_reconcile
"""

EXAMPLES = r"""
- name: What is not as recorded
  hetero.compute.host_reconcile:
  check_mode: true
  register: found
"""

RETURN = r"""
instances:
  description: The instances, by name.
  returned: always
  type: list
  elements: dict
  contains:
    name: {description: Name of the host., type: str}
    instance: {description: Name of the instance., type: str}
    kind: {description: 'What it runs in, V(lxc) or V(kvm).', type: str}
    recorded: {description: The state that was recorded., type: str}
    power: {description: 'V(on) or V(off), whether its container runs, or none where there is none.', type: str}
    ssh: {description: 'V(own key), V(other key) or V(no answer), or none where it does not run.', type: str}
    found:
      description: What is not as recorded, and what was done about it; none where it is only reported.
      type: list
      elements: dict
unseen:
  description: Instances that could not be looked at; C(instances) says why.
  returned: always
  type: list
  elements: str
domains:
  description: >-
    PCI devices of libvirt's domains that the table of allocations does not give to them, or that belong to no
    instance, and devices that it gives to a domain without them. Domains are never touched.
  returned: always
  type: list
  elements: dict
  contains:
    domain: {description: Name of the domain., type: str}
    address: {description: PCI address of the device., type: str}
    found: {description: What is so., type: str}
    done: {description: 'V(freed) or V(written down), or would be in check mode; else none.', type: str}
others:
  description:
    - Containers and guests that were made on the host, also where only the record of a claim is seen of them, and of
      which its database knows no claim; what that record, or a copy of the database, says of each, and what to do.
  returned: always
  type: list
  elements: str
seconds:
  description: Seconds of each step.
  returned: always
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._hetero.claims.host.config import config_here
from ..module_utils._hetero.compute_host.host import Host
from ..module_utils._hetero.compute_host.lost_database import begin, end, said_if_lost
from ..module_utils._hetero.compute_host.reconciliation import reconcile
from ..module_utils._hetero.core.argument_spec import HOST, ArgumentSpec
from ..module_utils._hetero.core.changes import Change
from ..module_utils._hetero.core.module import run

SPEC = HOST + ArgumentSpec(dict(timeout=dict(type="float", default=30)))


def work(params, check):
    lost = said_if_lost(params["config"], check=check)
    config = config_here(params["config"])
    if lost and not check:
        begin(config)
    with Host(params["config"], create=not check, lost=bool(lost)) as host:
        result = reconcile(host, Change(check), params["timeout"], anew=bool(lost))
    left = result.pop("left")
    if not lost:
        return result
    return dict(result, warnings=[lost, *(left if check else end(config, left))])


def main():
    run(AnsibleModule(**SPEC.kwargs), work)


if __name__ == "__main__":
    main()
