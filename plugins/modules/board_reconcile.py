#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments and result of comparing records with the truth; it is done in
module_utils/_hetero/boards/verbs/reconciliation.py.
"""

from __future__ import annotations

DOCUMENTATION = r"""
module: board_reconcile
short_description: Compare what is recorded of boards with what is true, and mend what is safe
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Asks the PDUs (in one session each) for the states of the outlets, asks claimed boards for their host keys, and
    looks at roots, mounts, exports, boot files and boot entries.
  - A board that nobody has is switched off, cleaned and made free.
  - For a board that somebody has, the record is corrected to what was seen, and mount, export, boot files and boot
    entry are restored. Its power and the contents of its root are not touched, with one exception. Where the process of
    a boot was killed before it had the outlet on again (it was cut off, as an event says, and its claim and state are
    the same), the board is started again, and its boot is not waited for.
  - A board in state C(error) or C(maintenance), one on which another verb works, and one whose PDU does not answer are
    only reported.
  - A claim that is missing in the database, or differs there, is taken over from its own record in the folder
    C(claims), if the root was made for it and the board shows its key or is off. Anything else is reported and left.
  - If the wiring names another outlet for a board than before, that is recorded if the board shows its key, its old
    outlet is off and no other claim has the new one. Otherwise it is reported.
  - A database with damaged pages is refused before anything is looked at.
  - Each thing mended is an event of its board.
options:
  adopt:
    description: Instances whose records are believed although their boards do not answer, or answer with another key;
      and whose wiring is believed although it names another outlet than the one by which they had their power last.
    type: list
    elements: str
    default: []
  forget:
    description: Instances whose claims are ended, by an operator's word, although nothing of their boards is switched
      off, removed or wiped. Only where another's root, disk or record is on the board, as the database is older, or
      where the board is not in the boards file; the latter only without O(boards).
    type: list
    elements: str
    default: []
  remove:
    description: Names of boards that the boards file does not name, such as V(board7), of which an operator says that
      their roots, exports and archives may go. Refused where there is a claim or a record of one, where the outlet that
      the wiring names for it is not off, and where something answers at the address that its root is exported to;
      only without O(boards).
    type: list
    elements: str
    default: []
  boards:
    description: Ids of the boards. Without it, all; then what lies here for boards that the boards file does not name
      is reported, too.
    type: list
    elements: int
  timeout:
    description: Seconds for the PDUs, and to wait for other verbs that work on boards.
    type: float
    default: 30
extends_documentation_fragment:
  - hetero.compute.attributes
  - hetero.compute.attributes.actiongroup
  - hetero.compute.proxy
attributes:
  check_mode:
    support: full
    details: Everything is asked and looked at, and reported.
  diff_mode:
    support: full
  idempotent:
    support: full
seealso:
  - module: hetero.compute.board_info
  - plugin: hetero.compute.reconcile_table
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Is what is recorded true
  hetero.compute.board_reconcile:
  check_mode: true
  register: found
"""

RETURN = r"""
boards:
  description: The boards, by id, or in the order of O(boards).
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
      description: Instance that has the board, or none.
      type: str
      sample: jackie
    recorded:
      description: State that was recorded.
      type: str
      sample: running
    state:
      description: State that is recorded now.
      type: str
      sample: power off
    power:
      description: V(on) or V(off) as the PDU said, or none where it did not answer.
      type: str
      sample: "off"
    ssh:
      description: V(own key), V(other key) or V(no answer); none where there was nothing to ask.
      type: str
      sample: own key
    changed:
      description: Whether anything was mended.
      type: bool
    found:
      description: What was not as recorded. C(found) says what it is, C(done) what was done about it, none for nothing.
      type: list
      elements: dict
      sample:
        - {found: "its outlet is on, and nobody has it", done: "off, cleaned, free"}
ended:
  description: Instances of O(forget) whose claims were ended.
  returned: always
  type: list
  elements: str
  sample: []
not_adopted:
  description: Instances of O(adopt) whose boards were not taken over, nor found right; C(boards) says why.
  returned: always
  type: list
  elements: str
  sample: []
removed:
  description: Boards of O(remove) of which something was removed.
  returned: always
  type: list
  elements: str
  sample: []
gone:
  description: Instances of O(forget) of which there is neither claim nor record here any more, and of which there was.
  returned: always
  type: list
  elements: str
  sample: []
kept:
  description: Instances of O(forget) whose claims were not ended; C(boards) and C(others) say why.
  returned: always
  type: list
  elements: str
  sample: []
unseen:
  description: Boards that could not be looked at, or whose outlets are not known; C(boards) says why.
  returned: always
  type: list
  elements: str
  sample: []
others:
  description: What lies here for boards that the boards file does not name. It is left as it is.
  returned: always
  type: list
  elements: str
  sample: ["export 57 /tftpboot/fs_56"]
lines:
  description: What was done, for people, with instance, node, phase, text and seconds.
  returned: always
  type: list
  elements: dict
  sample:
    - {instance: jackie, node: board0, phase: reconcile, text: "missing: export: put back", seconds: null}
seconds:
  description: Seconds of each step.
  returned: always
  type: dict
  sample: {}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._hetero.boards.records.lost_database import said_if_lost
from ..module_utils._hetero.boards.records.proxy import Proxy
from ..module_utils._hetero.boards.verbs.reconciliation import reconcile
from ..module_utils._hetero.core.argument_spec import PROXY, ArgumentSpec
from ..module_utils._hetero.core.changes import Change
from ..module_utils._hetero.core.module import run

SPEC = PROXY + ArgumentSpec(
    dict(
        boards=dict(type="list", elements="int"),
        timeout=dict(type="float", default=30),
        adopt=dict(type="list", elements="str", default=[]),
        forget=dict(type="list", elements="str", default=[]),
        remove=dict(type="list", elements="str", default=[]),
    )
)


def work(params, check):
    lost = said_if_lost(params, check)
    boardless = bool(params["forget"] or params["remove"])
    with Proxy(params, create=not check, lost=bool(lost), boardless=boardless) as proxy:
        words = params["adopt"], params["forget"], params["remove"]
        result = reconcile(proxy, params["boards"], Change(check), params["timeout"], *words)
    return dict(result, warnings=[lost]) if lost else result


def main():
    run(AnsibleModule(**SPEC.kwargs), work)


if __name__ == "__main__":
    main()
