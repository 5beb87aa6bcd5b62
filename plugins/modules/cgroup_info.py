#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What may be done with devices in a cgroup. How that is known is module_utils/_hetero/devices/cgroup's."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cgroup_info
short_description: Say which devices may be opened in a cgroup
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Says what processes of a cgroup or of a running LXC container may do with devices now, with cgroup v1, v2, or both.
    Changes nothing.
  - It is found by evaluation, as module M(hetero.compute.cgroup_devices) does it before and after its changes. With
    cgroup v2 the programs of the cgroup and of all its ancestors are read from the kernel and carried out, whoever
    wrote them; with cgroup v1 the list counts, and where the list does not tell, the kernel is asked by a process
    inside. With both, both count.
  - A process that has a device open keeps it open, whatever is said here.
extends_documentation_fragment:
  - hetero.compute.attributes
  - hetero.compute.attributes.actiongroup_host
  - hetero.compute.cgroup
attributes:
  check_mode:
    support: full
  diff_mode:
    support: N/A
    details:
      - Nothing is changed.
  idempotent:
    support: full
seealso:
  - module: hetero.compute.cgroup_devices
"""

EXAMPLES = r"""
- name: See which nodes of NVIDIA a container may open
  hetero.compute.cgroup_info:
    container: ml-8
    rules: ["c 195:0 rw", "c 195:1 rw", "c 195:255 rw"]
  register: seen

- name: See that a service can open the random numbers of one board, and nothing else
  hetero.compute.cgroup_info:
    cgroup: /system.slice/dice.service
    rules: ["c 1:3 rw", "c 10:183 r"]
  register: seen
  failed_when: seen.now["all else"] != "denied"
"""

RETURN = r"""
version:
  description: Which cgroups count, V(v1), V(v2) or V(hybrid), which is both.
  returned: success
  type: str
  sample: v2
now:
  description: >-
    By rule, what may be opened now. V(allowed) is all that it names, V(denied) none of it, V(partly) the rest. Under
    C(all else) V(denied) where the rules name all that may be opened, else V(partly).
  returned: success
  type: dict
  sample: {"c 195:0 rw": "allowed", "all else": "partly"}
proof:
  description: By rule, what each list and each program says of it.
  returned: success
  type: dict
  contains:
    version:
      description: V(v1) for a list, V(v2) for a program.
      type: str
    who:
      description: The cgroup of the list, or number and name of the program.
      type: str
    allows:
      description: Whether it allows all that the rule names.
      type: bool
  sample: {"c 195:0 rw": [{"version": "v2", "who": "program 53 (sd_devices)", "allows": true}]}
seconds:
  description: Seconds for reading, under C(look).
  returned: success
  type: dict
  sample: {"look": 0.002}
failure:
  description: The error in parts.
  returned: failure
  type: dict
  contains:
    what:
      description: What is wrong.
      type: str
    thing:
      description: The rule and the cgroup.
      type: str
    remedy:
      description: What to do next.
      type: str
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._hetero.core.argument_spec import CGROUP
from ..module_utils._hetero.core.changes import Change
from ..module_utils._hetero.core.deadline import Deadline
from ..module_utils._hetero.core.module import run
from ..module_utils._hetero.devices.cgroup.rules import parse
from ..module_utils._hetero.hypervisors.lxc.cgroup import LOCK_TIME, named

SPEC = CGROUP


def work(params, check):
    rules, change = [parse(rule) for rule in params["rules"]], Change(check)
    asked = named(params)
    with asked.alone(Deadline(LOCK_TIME)), change.step("look"):
        now, proof = asked.seen("exact", rules), asked.proof(rules)
    return dict(change.result, version=asked.cgroup.version, now=now, proof=proof)


def main():
    run(AnsibleModule(**SPEC.kwargs), work)


if __name__ == "__main__":
    main()
