#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Devices allowed and denied in a cgroup. How that is known and done is module_utils/_hetero/devices/cgroup's."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cgroup_devices
short_description: Allow and deny devices in a cgroup, proven by evaluation
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Opens and closes devices for the processes of a cgroup or of a running LXC container, with cgroup v1, v2, or both.
  - What may be opened is found by evaluation, before and after. With cgroup v2 the programs of the cgroup and of all
    its ancestors are read back from the kernel and carried out, whoever wrote them (LXC, systemd, runc); with cgroup v1
    the list counts, and where the list does not tell, the kernel is asked by a process inside. With both, both count.
  - What is as wanted already is left alone. So a container without device rules never gets a first one, which would
    deny everything else.
  - With cgroup v2 only the owner of a program can allow what it denies. For a container the module asks LXC; elsewhere
    it fails and names the owner's way. It replaces and detaches no program that this collection did not load.
  - A rule that LXC cannot close, because it has no such rule, is closed by a small program of this collection beside
    LXC's. The program goes with the cgroup, or when the rule is allowed again.
  - Nothing lasts longer than the cgroup. To keep a container's rules over a restart, write them into its configuration.
  - A process that has a device open keeps it open when the device is denied.
extends_documentation_fragment:
  - hetero.compute.attributes
  - hetero.compute.attributes.actiongroup_host
  - hetero.compute.cgroup
attributes:
  check_mode:
    support: full
    details:
      - What may be opened is really evaluated, and what could not be done fails as well.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  state:
    description:
      - V(allowed) allows all that the rules name.
      - V(denied) denies all of it, each access by itself as well.
      - V(exact) allows the rules and denies everything else, the nodes of terminals and V(/dev/null) included.
    type: str
    choices: [allowed, denied, exact]
    default: allowed
seealso:
  - module: hetero.compute.cgroup_info
"""

EXAMPLES = r"""
- name: Give a running container its first GPU's node
  hetero.compute.cgroup_devices:
    container: ml-8
    rules: ["c 195:0 rw", "c 195:255 rw"]

- name: Take it back
  hetero.compute.cgroup_devices:
    container: ml-8
    rules: ["c 195:0 rw"]
    state: denied

- name: A service that reads the random numbers of one board, and nothing else
  hetero.compute.cgroup_devices:
    cgroup: /system.slice/dice.service
    rules: ["c 1:3 rw", "c 10:183 r"]
    state: exact
"""

RETURN = r"""
version:
  description: Which cgroups count, V(v1), V(v2) or V(hybrid), which is both.
  returned: success
  type: str
  sample: v2
before:
  description: >-
    By rule, what was found. V(allowed) is all that it names, V(denied) none of it, V(partly) the rest. With
    O(state=exact) there is C(all else) as well.
  returned: success
  type: dict
  sample: {"c 195:0 rw": "denied"}
after:
  description: By rule, what was found afterwards. In check mode what would be.
  returned: success
  type: dict
  sample: {"c 195:0 rw": "allowed"}
steps:
  description: What was done, or in check mode would be.
  returned: success
  type: list
  elements: str
  sample: ["have LXC allow c 195:0 rw"]
proof:
  description: By rule, what each list and each program says of it. In check mode as it is now.
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
  description: Seconds for reading, under C(look), and for changing, under C(change).
  returned: success
  type: dict
  sample: {"look": 0.002, "change": 0.001}
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

from ..module_utils._hetero.core.argument_spec import CGROUP, ArgumentSpec
from ..module_utils._hetero.core.changes import Change
from ..module_utils._hetero.core.deadline import Deadline
from ..module_utils._hetero.core.module import run
from ..module_utils._hetero.devices.cgroup.rules import parse
from ..module_utils._hetero.hypervisors.lxc.cgroup import LOCK_TIME, named

SPEC = CGROUP + ArgumentSpec(
    dict(state=dict(type="str", choices=["allowed", "denied", "exact"], default="allowed")),
)


def work(params, check):
    rules, state, change = [parse(rule) for rule in params["rules"]], params["state"], Change(check)
    changing = named(params)
    with changing.alone(Deadline(LOCK_TIME)):
        with change.step("look"):
            before = changing.seen(state, rules)
            steps = changing.plan(state, rules)
        after = changing.wanted(state, rules)
        if not check:
            with change.step("change"):
                for step in steps:
                    step.act()
                after = changing.proven(state, rules)
    change.note(changing.cgroup.name, before, after)
    words, proof = [step.words for step in steps], changing.proof(rules)
    return dict(change.result, version=changing.cgroup.version, before=before, after=after, steps=words, proof=proof)


def main():
    run(AnsibleModule(**SPEC.kwargs), work)


if __name__ == "__main__":
    main()
