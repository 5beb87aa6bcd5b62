#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments and result of taking boards out of use and back; the rules are in
module_utils/_hetero/boards/work/maintenance.py.
"""

from __future__ import annotations

DOCUMENTATION = r"""
module: board_maintenance
short_description: Take boards out of use, and put them back
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - A board in maintenance is given to nobody, and no verb switches it. The status shows the reason.
  - Only a free board or one in state C(error) can be taken out of use. One that somebody has is refused, and the error
    says who; so is one that its root or the record of a claim says is somebody's.
  - It comes back into use only if its PDU says that its outlet is off, and no export, root or boot file of it is left.
    Of a board that somebody has, what is left is not looked at, and where only its own record has it out of use, just
    that record is ended.
options:
  boards:
    description: Ids of the boards.
    type: list
    elements: int
    required: true
  state:
    description: V(on) takes them out of use, V(off) puts them back.
    type: str
    choices: ["on", "off"]
    required: true
  reason:
    description: Why, for the status, in at most 4,000 characters. Needed for O(state=on).
    type: str
  timeout:
    description: Seconds for the PDUs, and to wait for another verb that works on a board.
    type: float
    default: 30
extends_documentation_fragment:
  - hetero.compute.attributes
  - hetero.compute.attributes.actiongroup
  - hetero.compute.proxy
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
seealso:
  - module: hetero.compute.board_info
"""

EXAMPLES = r"""
- name: Board 3 gets another fan
  hetero.compute.board_maintenance:
    boards: [3]
    state: "on"
    reason: its fan rattles, new one ordered

- name: Board 3 is back
  hetero.compute.board_maintenance:
    boards: [3]
    state: "off"
"""

RETURN = r"""
boards:
  description: One entry a board, in the order asked for.
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
    state:
      description: State of the board now.
      type: str
      sample: maintenance
    note:
      description: The reason.
      type: str
lines:
  description: What was done, for people, with instance, node, phase, text and seconds.
  returned: always
  type: list
  elements: dict
  sample:
    - {instance: null, node: board0, phase: maintenance, text: "on: its fan rattles", seconds: null}
seconds:
  description: Seconds of each step.
  returned: always
  type: dict
  sample: {}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._hetero.boards.records.proxy import Proxy
from ..module_utils._hetero.boards.work import maintenance
from ..module_utils._hetero.core.argument_spec import PROXY, ArgumentSpec
from ..module_utils._hetero.core.changes import Change
from ..module_utils._hetero.core.deadline import Deadline
from ..module_utils._hetero.core.module import run

SPEC = PROXY + ArgumentSpec(
    dict(
        boards=dict(type="list", elements="int", required=True),
        state=dict(type="str", choices=["on", "off"], required=True),
        reason=dict(type="str"),
        timeout=dict(type="float", default=30),
    ),
    required_if=[("state", "on", ("reason",))],
)


def work(params, check):
    boards, change, deadline = params["boards"], Change(check), Deadline(params["timeout"])
    with Proxy(params, create=not check) as proxy:
        if params["state"] == "on":
            return maintenance.begin(proxy, boards, params["reason"], change, deadline)
        return maintenance.end(proxy, boards, change, deadline)


def main():
    run(AnsibleModule(**SPEC.kwargs), work)


if __name__ == "__main__":
    main()
