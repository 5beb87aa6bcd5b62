#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments and result of setting the end of a lease; the rules are in
module_utils/_hetero/boards/work/board_leases.py.
"""

from __future__ import annotations

DOCUMENTATION = r"""
module: board_lease
short_description: Set how long an instance may keep its board
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Sets the end of an instance's lease to a number of hours from now, or takes it away.
  - An instance whose lease is over is ended by the proxy node itself (C(hetero reap), run by a timer of role
    P(hetero.compute.tftp_proxy#role)).
options:
  instance:
    description: The instance, or the request with all its instances.
    type: str
    required: true
  hours:
    description: Hours from now; V(0) for a lease without an end.
    type: float
    required: true
  owner:
    description: If it is given, another owner's lease is refused.
    type: str
  timeout:
    description: Seconds to wait for another verb that works on the board.
    type: float
    default: 30
extends_documentation_fragment:
  - hetero.compute.attributes
  - hetero.compute.attributes.actiongroup
  - hetero.compute.created
  - hetero.compute.proxy
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: partial
    details: Later is another end. One that is less than a minute from the end asked for is left as it is.
seealso:
  - module: hetero.compute.board_claim
"""

EXAMPLES = r"""
- name: Keep jackie's board for another day
  hetero.compute.board_lease:
    instance: jackie
    hours: 24

- name: Keep it until it is terminated
  hetero.compute.board_lease:
    instance: jackie
    hours: 0
"""

RETURN = r"""
boards:
  description: One entry for each board of the instance.
  returned: always
  type: list
  elements: dict
  contains:
    board:
      description: Id of the board.
      type: int
      sample: 0
    name:
      description: Name of the board.
      type: str
      sample: board0
    instance:
      description: Instance that has the board.
      type: str
      sample: jackie
    changed:
      description: Whether anything was changed for this board.
      type: bool
    failed:
      description: Whether this board failed; the others are done all the same.
      type: bool
    error:
      description: What went wrong, and what to do.
      type: str
    owner:
      description: Who has it.
      type: str
    expires:
      description: The end of the lease (seconds since 1970), or none.
      type: float
    until:
      description: The same for people, in the time of the proxy node.
      type: str
      sample: until 2024-05-01 12:40 CEST, 3 h left
lines:
  description: What was done, for people, with instance, node, phase, text and seconds.
  returned: always
  type: list
  elements: dict
  sample:
    - {instance: jackie, node: board0, phase: lease, text: "no end (was: until 2024-05-01 12:40)", seconds: null}
seconds:
  description: Seconds of each step.
  returned: always
  type: dict
  sample: {}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._hetero.boards.records.proxy import Proxy
from ..module_utils._hetero.boards.work.board_leases import extend
from ..module_utils._hetero.boards.work.each_board import Instances
from ..module_utils._hetero.core.argument_spec import PROXY_CLAIMS, ArgumentSpec
from ..module_utils._hetero.core.changes import Change
from ..module_utils._hetero.core.deadline import Deadline
from ..module_utils._hetero.core.module import run

SPEC = PROXY_CLAIMS + ArgumentSpec(
    dict(
        instance=dict(type="str", required=True),
        hours=dict(type="float", required=True),
        owner=dict(type="str"),
        timeout=dict(type="float", default=30),
    )
)


def work(params, check):
    with Proxy(params, create=not check) as proxy:
        instances = Instances(params["instance"], params["owner"], created=params["created"])
        return extend(proxy, instances, params["hours"], Change(check), Deadline(params["timeout"]))


def main():
    run(AnsibleModule(**SPEC.kwargs), work)


if __name__ == "__main__":
    main()
