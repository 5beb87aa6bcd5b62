#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Show boards, who has them and what happened to them. What is shown is put together in
module_utils/_hetero/boards/work/info.py.
"""

from __future__ import annotations

DOCUMENTATION = r"""
module: board_info
short_description: Show the boards of a proxy node, their states and claims
version_added: 0.1.0
description:
  - Shows what the boards file says of each board, and what the proxy node recorded of its state, its claim and its
    history.
  - Changes nothing. A proxy node on which nothing was claimed yet has all its boards in state C(power off).
extends_documentation_fragment:
  - hetero.compute.attributes
  - hetero.compute.attributes.actiongroup
  - hetero.compute.proxy
attributes:
  check_mode:
    support: full
  diff_mode:
    support: N/A
    details:
      - Nothing is changed.
  idempotent:
    support: full
options:
  boards:
    description: Ids of the boards to show. Without it, all.
    type: list
    elements: int
  instance:
    description: Show only the boards of this instance, or of this request with all its instances.
    type: str
  events:
    description: How many of its newest events each board comes with.
    type: int
    default: 0
  follow:
    description: Return RV(follow) as well.
    type: bool
    default: false
  owner:
    description: For whom RV(offers) is.
    type: str
    default: ''
  flavors:
    description: Flavors by name, as filter P(hetero.compute.flavors#filter) returns them, of each of which RV(offers)
      says how many instances O(owner) could have now.
    type: dict
    default: {}
  power:
    description: Ask the PDUs for the state of the outlets, and for what they draw. Otherwise what was seen last is
      shown.
    type: bool
    default: false
  timeout:
    description: Seconds within which the PDUs have to answer.
    type: float
    default: 30
seealso:
  - module: hetero.compute.board_claim
author:
  - hetero.compute contributors (@hetero-compute)
"""

EXAMPLES = r"""
- name: All boards
  hetero.compute.board_info:
  register: nodes

- name: What happened to board 3, and is it really off
  hetero.compute.board_info:
    boards: [3]
    events: 20
    power: true
"""

RETURN = r"""
boards:
  description: The boards, by id, or in the order of O(boards).
  returned: always
  type: list
  elements: dict
  contains:
    id: {description: Id of the board., type: int}
    name: {description: Name of the board., type: str}
    ip: {description: Its address., type: str}
    mac: {description: Its MAC address., type: str}
    vcpus: {description: Column of the boards file., type: int}
    memory_mb: {description: Column of the boards file., type: int}
    local_gb: {description: Column of the boards file., type: int}
    memory_mb_used: {description: Column of the boards file., type: int}
    local_gb_used: {description: Column of the boards file., type: int}
    hypervisor_type: {description: Column of the boards file., type: str}
    hypervisor_version: {description: Column of the boards file., type: str}
    cpu_info: {description: Column of the boards file., type: dict}
    arch: {description: Architecture from C(cpu_info)., type: str}
    geometry: {description: 'Rows and columns of cores, or none.', type: str}
    state:
      description: V(power off), V(booting), V(running), V(shutting down), V(error) or V(maintenance).
      type: str
    since: {description: 'Since when it is in this state (seconds since 1970), or none.', type: float}
    since_seconds: {description: 'For how many seconds, or none.', type: float}
    note: {description: What was noted with the state., type: str}
    error: {description: 'The note of a board in state V(error), else none.', type: str}
    withheld:
      description: Why the node gives the board to nobody although nobody has it, by its outlet, its disks, its root or
        the records of claims, or none.
      type: str
    power: {description: 'V(on) or V(off), or none where nobody knows.', type: str}
    power_seen: {description: When the outlet was last looked at (seconds since 1970)., type: float}
    watts:
      description: What it drew when its outlet's meter was last read (W), or none where the device tells of none.
      type: float
    energy_kwh:
      description: What it has drawn for its claim, since the first reading after it was switched on (kWh), or none
        where the device has no counter.
      type: float
    pdu: {description: 'Name of the PDU that feeds it, or none.', type: str}
    outlet: {description: 'The outlet that feeds it, or none.', type: str}
    disks: {description: 'Its own disks, by their device names.', type: list, elements: str}
    boot:
      description: How it gets what it boots; none where its wiring is wrong.
      type: dict
      contains:
        driver: {description: Its boot driver., type: str}
        arguments: {description: Whether that passes arguments to the kernel., type: bool}
        flash: {description: Whether its kernel lies in a flash memory of its own., type: bool}
        cmdline: {description: Whether its wiring has arguments for the kernel., type: bool}
        ram_image: {description: 'Name of the RAM image for it, or none.', type: str}
    instance: {description: 'The instance that has the board, or none.', type: str}
    request: {description: The request it belongs to., type: str}
    owner: {description: Its owner., type: str}
    flavor: {description: Name of its flavor., type: str}
    image: {description: Its image., type: str}
    created: {description: When it was claimed (seconds since 1970)., type: float}
    expires: {description: 'When the claim expires, or none.', type: float}
    lease_seconds: {description: 'For how many seconds more, below 0 where it is over, or none.', type: float}
    host_key: {description: The ssh host key put into its root., type: str}
    health:
      description:
        - How often it did what was asked of it lately. Boots of claims count, faults for which it was kept out of use,
          and checks.
        - Of a board that never failed only its C(score), unless O(boards) or O(events) are given.
      type: dict
      contains:
        score: {description: 'Share of the newest 20 of these that it passed, 0 to 100.', type: int}
        passed: {description: How many of them it passed., type: int}
        of: {description: How many there are., type: int}
        failures:
          description: The newest failures (C(time), C(what), C(text)).
          type: list
          elements: dict
        check: {description: 'Its newest check (C(time), C(passed), C(text), C(figures)), or none.', type: dict}
    next: {description: 'The request that gets it next, with its place in the queue, or none.', type: str}
    events:
      description: Its newest events, the oldest of them first.
      type: list
      elements: dict
      contains:
        id: {description: Number of the event., type: int}
        time: {description: When (seconds since 1970)., type: float}
        actor: {description: Who., type: str}
        board: {description: Id of the board., type: int}
        instance: {description: The instance., type: str}
        phase: {description: 'Such as V(claim), V(power), V(tftp) or V(state).', type: str}
        text: {description: What happened., type: str}
        seconds: {description: How long it took., type: float}
  sample:
    - id: 3
      name: board3
      ip: 10.0.2.4
      mac: 00:1a:ca:00:57:a8
      state: running
      instance: jackie
      owner: alice
      power: 'on'
      since_seconds: 125.0
claims:
  description: The claims on these boards, with the fields that M(hetero.compute.board_claim) returns; also those on
    boards that the boards file does not name any more.
  returned: always
  type: list
  elements: dict
  sample:
    - {instance: jackie, board: 3, name: board3, owner: alice, flavor: tp64.8x8, state: running}
roots:
  description: What the boards' roots on the proxy are promised, take, and could take.
  returned: always
  type: dict
  contains:
    promised: {description: Bytes that they may take together., type: int}
    there: {description: Bytes that there are for them., type: int}
    taken: {description: Bytes that they take., type: int}
    overcommit: {description: How many times what is there may be promised., type: float}
    root_gb: {description: Size of a root where neither flavor nor board says one (GiB)., type: int}
  sample: {promised: 536870912000, there: 1099511627776, taken: 9437184, overcommit: 1.0, root_gb: 8}
images:
  description: Name of each image in the proxy's store, with its C(arch), whether it is a RAM image (C(ram)), whether it
    has arguments for the kernel (C(arguments)), and the names of its C(kernels) and C(initrds).
  returned: always
  type: dict
  sample: {debian-12: {arch: tilepro64, ram: false, arguments: true, kernels: [default], initrds: [default]}}
unclaimed:
  description:
    - Roots and records of claims of O(instance) that lie on the proxy node, and of which its database knows no claim.
      It may have been put back from an older copy. Empty without O(instance).
  returned: always
  type: list
  elements: dict
  contains:
    instance: {description: The instance., type: str}
    name: {description: Its board., type: str}
    text: {description: 'What is seen of it, and what to do.', type: str}
    harmless:
      description: Whether it is a file that says nothing, of a board that is off and of which nothing else is there.
      type: bool
ended:
  description:
    - Instances of O(instance) that the node ended because their lease was over, where it has none of them any more.
      Empty without O(instance).
  returned: always
  type: list
  elements: dict
  contains:
    instance: {description: The instance., type: str}
    owner: {description: Whose it was., type: str}
    time: {description: When it was ended (seconds since 1970)., type: float}
queue:
  description:
    - Requests that wait for what the node has, in the order in which they are served. Empty where only some were asked
      for.
  returned: always
  type: list
  elements: dict
  contains:
    request: {description: The request., type: str}
    owner: {description: Who asks., type: str}
    flavor: {description: Name of its flavor., type: str}
    need: {description: How many instances it lacks., type: int}
    position: {description: Its place among those that want some of the same; 1 is the first., type: int}
    priority: {description: The highest goes first., type: int}
    asked: {description: Since when it waits (seconds since 1970)., type: float}
    held: {description: For how many instances enough is free and held for it here., type: int}
    expected:
      description: When it can start (seconds since 1970), by the ends of leases, or none where these do not tell.
      type: float
    enough:
      description: Whether enough can become free for it as long as no operator does anything. If not, nothing is held
        for it.
      type: bool
    stuck:
      description: If not, what it could have if an operator made it free, the first ones, as C(name) and C(why).
      type: list
      elements: dict
reservations:
  description:
    - What is reserved by date and not over, by the table of the node's role, the next first. Empty where only some were
      asked for.
  returned: always
  type: list
  elements: dict
  contains:
    owner: {description: For whom., type: str}
    start: {description: From when (seconds since 1970)., type: float}
    end: {description: Until when (seconds since 1970)., type: float}
    text: {description: 'What it is, for whom, when and why, in words.', type: str}
    lacks:
      description: Why not all of it can be had by present leases, with the first of those who have it longer, or none.
      type: str
offers:
  description:
    - Of each of O(flavors), how many instances O(owner) could have now with a short lease, by what is reserved by date,
      by those who wait, and by the limits of O(owner), where there is any of these. Else, and where only some were
      asked for, empty. Whether that many are free, and in order, is not looked at.
  returned: always
  type: dict
  contains:
    may: {description: How many., type: int}
    why: {description: What keeps it from more., type: list, elements: str}
  sample: {tp64.8x8: {may: 2, why: ["held for lab of bob, which waits and goes first"]}}
follow:
  description: What it takes to be told of what happens to O(instance) from then on, for action plugins.
  returned: with O(follow)
  type: dict
  contains:
    state_db: {description: 'Path of the database.', type: str}
    python: {description: 'Path of the Python that runs the module.', type: str}
    after: {description: Number of the newest event by then., type: int}
alike:
  description:
    - Where the node has nothing of O(instance), of each owner the instance or request whose name is most similar to it.
      Empty without O(instance).
  returned: always
  type: list
  elements: dict
  contains:
    instance: {description: The instance or request., type: str}
    owner: {description: Whose it is., type: str}
pdu_errors:
  description:
    - With O(power=true), each PDU that did not answer, and why. Its boards have no C(power).
    - Else each PDU of these boards that refused the last session, or did not answer, whoever asked, with what it said
      and how long ago. No PDU is asked for that.
  returned: always
  type: dict
  sample: {pdu-b: "pdu-b: did not answer within 30 s: check its address"}
failure:
  description: The error in its parts.
  returned: failure
  type: dict
  sample:
    what: 'no such board (known: 0, 1)'
    thing: board 7
    remedy: 'give one of these, or have an operator add it to the boards file'
seconds:
  description: Seconds of each step.
  returned: always
  type: dict
  sample: {information: 0.004}
"""

import sys

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._hetero.boards.power.outlet_power import outlet_power
from ..module_utils._hetero.boards.records.proxy import Proxy
from ..module_utils._hetero.boards.work.info import add_readings, information
from ..module_utils._hetero.core.argument_spec import PROXY, ArgumentSpec
from ..module_utils._hetero.core.changes import Change
from ..module_utils._hetero.core.deadline import Deadline
from ..module_utils._hetero.core.module import run

SPEC = PROXY + ArgumentSpec(
    {
        "boards": {"type": "list", "elements": "int"},
        "instance": {"type": "str"},
        "events": {"type": "int", "default": 0},
        "follow": {"type": "bool", "default": False},
        "owner": {"type": "str", "default": ""},
        "flavors": {"type": "dict", "default": {}},
        "power": {"type": "bool", "default": False},
        "timeout": {"type": "float", "default": 30},
    }
)


def work(params, check):
    change = Change(check)
    with Proxy(params, create=False) as proxy, change.step("information"):
        asks = (params["owner"], params["flavors"])
        # what happens while this is put together is told, too
        told = dict(proxy.store.followed(), python=sys.executable) if params["follow"] else None
        result = information(proxy, params["boards"], params["instance"], params["events"], asks)
        if params["power"]:
            meters = {}
            result["pdu_errors"] = outlet_power(proxy, result["boards"], Deadline(params["timeout"]), meters)
            add_readings(proxy, result["boards"], meters)
    follow = dict(follow=told) if told else {}
    return dict(result, changed=change.changed, seconds=change.seconds, **follow)


def main():
    run(AnsibleModule(**SPEC.kwargs), work)


if __name__ == "__main__":
    main()
