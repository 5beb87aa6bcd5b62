#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments and result of a look at a board's console; it is read in module_utils/_hetero/boards/work/console.py."""

from __future__ import annotations

DOCUMENTATION = r"""
module: board_console_info
short_description: Show the end of a board's console
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Shows the last lines of the log that a board's wiring names as its C(console). Colours are left out, and other
    control characters are escaped.
  - The log goes on from tenant to tenant. Only the part of the present claim is shown. It begins where the log ended
    before the board first got power for this claim.
  - What the board's sshd says there of the proxy node, which asks for its host key only, is left out, but with O(all).
  - If the wiring names a C(console_command), it is returned as the way to attach to the live console.
options:
  board:
    description: Id of the board.
    type: int
    required: true
  last:
    description: How many lines.
    type: int
    default: 20
  instance:
    description:
      - The instance or request that must have the board. If the board was given to another one since it was looked up,
        that is refused.
    type: str
  owner:
    description: If it is given, a board of another owner is refused.
    type: str
  all:
    description: Show all of the log, also what was said before this claim, and also of a board that nobody has. This is
      for operators.
    type: bool
    default: false
extends_documentation_fragment:
  - hetero.compute.attributes
  - hetero.compute.attributes.actiongroup
  - hetero.compute.proxy
notes:
  - Its former name, C(hetero.compute.board_console), leads here.
attributes:
  check_mode:
    support: full
  diff_mode:
    support: N/A
    details: Nothing is changed.
  idempotent:
    support: full
seealso:
  - module: hetero.compute.board_info
"""

EXAMPLES = r"""
- name: What does board 3 say
  hetero.compute.board_console_info:
    board: 3
    last: 50

- name: What did it say to those who had it before
  hetero.compute.board_console_info:
    board: 3
    all: true
"""

RETURN = r"""
name:
  description: Name of the board.
  returned: success
  type: str
  sample: board3
board:
  description: Id of the board.
  returned: success
  type: int
  sample: 3
instance:
  description: Instance that has the board, or none.
  returned: success
  type: str
  sample: jackie
file:
  description: The log, on the proxy node; none where the board has a live console only.
  returned: success
  type: str
  sample: /var/log/conserver/board3.log
console:
  description: Its last lines that are not empty.
  returned: success
  type: list
  elements: str
command:
  description: The command that attaches to the live console, on the proxy node; none where there is none.
  returned: success
  type: str
  sample: socat -,raw,echo=0,escape=0x1d UNIX-CONNECT:/run/consoles/board3
follow:
  description: The command that prints the log as it grows, on the proxy node, until the claim ends; none where there
    is no log.
  returned: success
  type: str
  sample: /usr/local/sbin/hetero console jackie --follow
lines:
  description: The same for people.
  returned: success
  type: list
  elements: raw
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._hetero.boards.records.proxy import Proxy
from ..module_utils._hetero.boards.work.console import console
from ..module_utils._hetero.core.argument_spec import PROXY, ArgumentSpec
from ..module_utils._hetero.core.module import run

SPEC = PROXY + ArgumentSpec(
    dict(
        board=dict(type="int", required=True),
        last=dict(type="int", default=20),
        instance=dict(type="str"),
        owner=dict(type="str"),
        all=dict(type="bool", default=False),
    )
)


def work(params, check):
    with Proxy(params, create=False) as proxy:
        shown = console(proxy, params["board"], params["last"], params["instance"], params["owner"], params["all"])
        return dict(shown, changed=False)


def main():
    run(AnsibleModule(**SPEC.kwargs), work)


if __name__ == "__main__":
    main()
