#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of GPUs against what containers can open. What is looked at is in
module_utils/_hetero/hypervisors/lxc_gpus/gpu_reconciliation.py.
"""

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_reconcile
short_description: Audit and repair who can open which GPU of a host
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Compares the host's table of allocations with what the kernel says of each running container, and with what each
    container's file says of its next start, and reports what differs.
  - With O(repair=true) it mends the differences. The table says what should be. So a container gets what was allocated
    to it, also if that was interrupted before. GPUs that it was not given are closed to it, and those allocated to a
    container that no longer exists are freed.
  - What a container has by its own file, and nobody by the table, is written down, as the table was lost or put back
    from a backup. Where the table gives it to another, both stay as they are. A table that is gone is made anew by
    M(hetero.compute.host_reconcile), and without that nothing is mended; on a host that no role has set up, this
    module does it, where there is no copy, and the table knows then what containers have by their files and can open.
  - It never closes a GPU that a process of the container has open. That is reported, with the process.
  - A rule in a container's own configuration, like V(c 195:* rwm), is closed while it runs, and is back after its
    restart. Take it out of the configuration.
requirements:
  - root on the host
  - liblxc
extends_documentation_fragment:
  - hetero.compute.attributes
  - hetero.compute.attributes.actiongroup_host
  - hetero.compute.host
  - hetero.compute.gpu_host
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  repair:
    description: Mend what is found. Without it nothing is changed.
    type: bool
    default: false
  timeout:
    description: Seconds for other work on containers to end.
    type: float
    default: 30
seealso:
  - module: hetero.compute.lxc_gpu_attach
"""

EXAMPLES = r"""
- name: Who can open a GPU that is not theirs
  hetero.compute.gpu_reconcile:
  register: audit

- name: Nobody
  ansible.builtin.assert:
    that: audit.findings == []

- name: Mend it
  hetero.compute.gpu_reconcile:
    repair: true
"""

RETURN = r"""
findings:
  description: What is not as it should be.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description:
        - V(wildcard), a container can open every GPU, by a rule of its own or for want of rules.
        - V(not allocated), a container can open a GPU that it was not given.
        - V(not written down), a container has it by its own file, and not by the table.
        - V(left-over node), a container has a node of a GPU that it was not given, or shared ones and no GPU.
        - V(stale major), a container has a node or a rule of a number that is another driver's by now.
        - V(node-only), only the absence of nodes keeps a container from a GPU.
        - V(incomplete), a container has not all that it was allocated, now or after its restart.
        - V(being taken back), a GPU was being detached, and that was cut short.
        - V(no holder), a GPU is allocated to a container that is no more.
        - V(not seen), a GPU is allocated to a container of a folder whose file system may not be mounted.
        - V(stands still), a look at who has its GPUs was killed, and left the container's processes frozen.
        - V(moved), a GPU is in another slot than when it was allocated.
        - V(lost GPU), a GPU that somebody has is gone, or ill.
        - V(used by the host), a process of the host has a GPU open that somebody has.
        - V(not looked at), an error kept a container, or what processes have open, from being looked at.
      type: str
      sample: wildcard
    container: {description: 'Name of the container, or none.', type: str}
    address: {description: 'PCI addresses of the GPUs, or none.', type: str}
    found: {description: What was found., type: str}
    done:
      description: With O(repair=true), what was done, or in check mode would be; none where it is only reported.
      type: str
    error: {description: 'Why it could not be mended, or none.', type: str}
  sample:
    - kind: wildcard
      container: ml-7
      address: "0000:05:00.0"
      found: its device cgroup allows c 195:0; take the rule out of its configuration, or it is back after a restart
      done: closed
      error:
seconds:
  description: Seconds of each step.
  returned: success
  type: dict
  sample: {"table": 0.01, "containers": 0.05, "processes": 0.03}
"""

import os

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._hetero.claims.host.config import config_here
from ..module_utils._hetero.compute_host.gpu_site import gpu_site
from ..module_utils._hetero.compute_host.lost_database import (
    begin,
    end,
    must_not_be_lost_here,
    said_if_lost,
)
from ..module_utils._hetero.core.argument_spec import GPU_HOST, ArgumentSpec
from ..module_utils._hetero.core.changes import Change
from ..module_utils._hetero.core.deadline import Deadline
from ..module_utils._hetero.core.errors import HeteroError
from ..module_utils._hetero.core.module import run
from ..module_utils._hetero.hypervisors.lxc_gpus.gpu_reconciliation import reconcile
from ..module_utils._hetero.hypervisors.lxc_gpus.restoration import begin_anew

SPEC = GPU_HOST + ArgumentSpec(
    dict(repair=dict(type="bool", default=False), timeout=dict(type="float", default=30)),
)


def work(params, check):
    repair, change = params["repair"], Change(check or not params["repair"])
    lost = said_if_lost(params["config"], params["state_db"], params["lxcpath"], change.check)
    config = config_here(params["config"])
    mends = bool(lost) and repair and not check
    if mends and os.path.exists(params["config"]):
        # Guests may have cards here, and instances be known: that is for host_reconcile to write down, first.
        must_not_be_lost_here(params["config"])
    if mends:
        begin(config)
    with gpu_site(params, create=repair and not check, lost=bool(lost)) as site:
        left = end(config, begin_anew(site, [config.lxc.lxcpath]).left) if mends else []
        if left:
            raise HeteroError(left[0])
        result = reconcile(site, repair, change, Deadline(params["timeout"]))
    return dict(result, warnings=[lost]) if lost else result


def main():
    run(AnsibleModule(**SPEC.kwargs), work)


if __name__ == "__main__":
    main()
