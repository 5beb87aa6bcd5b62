#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments and result of testing which outlet feeds which board; the work is in
module_utils/_hetero/boards/cabling/ (cabling.py, learning.py).
"""

from __future__ import annotations

DOCUMENTATION = r"""
module: board_cabling
short_description: Test which PDU outlet feeds which board
version_added: 0.1.0
description:
  - Switches on the outlet of each free board, one after the other, and sees by DHCP and TFTP which board asks to boot,
    or by which console's log grows. Each outlet is switched off again, and read back, before the next one.
  - A free board has no boot entry, so it boots nothing; only its request is needed.
  - Names the boards that are fed by another outlet than the wiring says, and the true wiring.
  - A board that is claimed or in maintenance is not tested. An outlet that is found on although its board is free feeds
    something, and is not switched. If the outlet of a free board starts a claimed board, it is switched off at once.
  - Fails when a tested board is not cabled as the wiring says.
  - With O(learn) the named outlets are tested, of which nobody knows what they feed, and the wiring is learned.
  - Its action plugin runs the module in the background and prints what is found as it happens.
extends_documentation_fragment:
  - hetero.compute.attributes
  - hetero.compute.attributes.actiongroup
  - hetero.compute.proxy
attributes:
  check_mode:
    support: full
    details: The PDUs are asked for the state of the outlets. Nothing is switched.
  diff_mode:
    support: none
    details: All outlets end as they were.
  idempotent:
    support: none
    details: Each run switches the outlets of free boards on and off again, and returns that as changed.
options:
  boards:
    description: Ids of the boards; all of the boards file if it names none.
    type: list
    elements: int
    default: []
  learn:
    description:
      - Outlets to learn the wiring from, as V(PDU:OUTLET) or V(PDU:FIRST-LAST). Not with O(boards).
      - One after the other is switched on where it is off, no board hangs on it by wiring or record, and nobody's board
        may hang on it of which nobody knows the outlet. Which board of the boards file asks to boot within O(timeout)
        is seen, and the outlet is off again, and read back, before the next. One that is on is never switched.
      - What asks, or answers, in the first O(timeout) seconds, before an outlet is on, has power already and tells of
        none.
      - An outlet at which a board was found is switched on once more in the end. A board that does not ask again may
        have asked by itself, and is not learned.
      - Fails where an outlet could not be tested, or what it feeds contradicts the wiring or another outlet.
    type: list
    elements: str
    default: []
  timeout:
    description: Seconds from power on within which a board must ask to boot. Firmware with memory tests needs more.
    type: int
    default: 30
  background:
    description:
      - Start the work, return at once, and leave the result in the file RV(follow.job).
      - The action plugin sets this. There is no need to set it in a play.
    type: bool
    default: false
seealso:
  - module: hetero.compute.tilera_boot
  - module: hetero.compute.pdu_power
author:
  - hetero.compute contributors (@hetero-compute)
"""

EXAMPLES = r"""
- name: Test the cabling of all free boards
  hetero.compute.board_cabling:

- name: Test boards 0 and 1, which take a minute to their boot request
  hetero.compute.board_cabling:
    boards: [0, 1]
    timeout: 90

- name: Learn which boards hang on nine outlets
  hetero.compute.board_cabling:
    learn: [pdu-a:1-8, pdu-b:3]
"""

RETURN = r"""
boards:
  description: What was found, in the order of O(boards).
  returned: without O(learn)
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
    pdu:
      description: PDU that feeds it by the wiring.
      type: str
      sample: pdu-a
    outlet:
      description: Outlet that feeds it by the wiring.
      type: str
      sample: "5"
    verdict:
      description: >-
        C(right); C(other), another board came up; C(several); C(nothing) came up; C(on), the outlet is on although the
        board is free; C(unsure), a claimed board asked to boot meanwhile; C(skipped); C(failed); C(not tested yet) in
        check mode.
      type: str
      sample: other
    found:
      description: Ids of the boards that came up.
      type: list
      elements: int
      sample: [1]
    text:
      description: The same for people, with the evidence.
      type: str
      sample: "pdu-a outlet 5 feeds board1 (00:1a:ca:00:57:91), not this board: boot request after 0.9 s"
    seconds:
      description: Seconds from switching on to off again.
      type: float
outlets:
  description: What was found, in the order of O(learn).
  returned: with O(learn)
  type: list
  elements: dict
  contains:
    pdu:
      description: Name of the PDU.
      type: str
      sample: pdu-a
    outlet:
      description: The outlet.
      type: str
      sample: "5"
    verdict:
      description: >-
        C(found), one board hangs there; C(several); C(nothing) asked; C(unknown), what asked is in no boards file;
        C(other), the wiring of what asked names another outlet; C(twice), it asked by another outlet, too; C(on), the
        outlet was on; C(unsure), a claimed board asked to boot meanwhile; C(skipped); C(failed); C(not tested yet) in
        check mode.
      type: str
      sample: found
    found:
      description: Ids of the boards that came up.
      type: list
      elements: int
      sample: [3]
    macs:
      description: Addresses of machines that asked, and are in no boards file.
      type: list
      elements: str
      sample: []
    text:
      description: The same for people, with the evidence.
      type: str
      sample: "pdu-a outlet 5 feeds board3 (00:1a:ca:00:57:93): boot request after 0.9 s"
    seconds:
      description: Seconds from switching on to off again.
      type: float
lost:
  description: Ids of the boards without wiring that were found at none of these outlets.
  returned: with O(learn)
  type: list
  elements: int
  sample: [7]
tftp_proxy_boards:
  description: The wiring of all boards of the node, by board id, with what was learned.
  returned: with O(learn)
  type: dict
  sample: {"0": {pdu: pdu-a, outlet: "6"}, "1": {disk: none}}
wiring:
  description: >-
    Wiring of the boards that hang on another outlet than was said, as it is in truth, by board id; with O(learn), of
    those that were found at one outlet.
  returned: always
  type: dict
  sample: {"0": {pdu: pdu-a, outlet: "6"}, "1": {pdu: pdu-a, outlet: "5"}}
lines:
  description: What was found, for people; the last ones are to be pasted into the inventory.
  returned: always
  type: list
  elements: raw
seconds:
  description: Seconds per step.
  returned: always
  type: dict
follow:
  description: Where to find progress and result; more of it at M(hetero.compute.tilera_boot).
  returned: when O(background=true)
  type: dict
  contains:
    job:
      description: File with the result. It is locked (flock) until the work ends.
      type: str
news:
  description: What a first look at the job found, its events and, if it has ended already, its result.
  returned: when O(background=true)
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._hetero.boards.cabling import cabling, learning
from ..module_utils._hetero.boards.cabling.outlet_spans import outlets
from ..module_utils._hetero.boards.cabling.outlet_tests import Options
from ..module_utils._hetero.boards.records.proxy import Proxy
from ..module_utils._hetero.boards.work.job import in_background
from ..module_utils._hetero.core.argument_spec import PROXY, ArgumentSpec
from ..module_utils._hetero.core.errors import BadInput
from ..module_utils._hetero.core.module import run

SPEC = PROXY + ArgumentSpec(
    dict(
        boards=dict(type="list", elements="int", default=[]),
        learn=dict(type="list", elements="str", default=[]),
        timeout=dict(type="int", default=30),
        background=dict(type="bool", default=False),
    )
)


def ids(proxy, params):
    """The boards to test; none where outlets are learned."""
    if params["learn"] and params["boards"]:
        what = "are named, and outlets to learn from"
        raise BadInput(what, "boards", "give boards to test the outlets of their wiring, or learn to find outlets out")
    return [] if params["learn"] else params["boards"] or sorted(proxy.boards)


def work(params, check):
    """Test them; returns the module's result."""
    options = Options(params["timeout"], check)
    with Proxy(params, create=not check) as proxy:
        boards = ids(proxy, params)
        if params["learn"]:
            return learning.learn(proxy, params["learn"], options)
        return cabling.check(proxy, boards, options)


def main():
    module = AnsibleModule(**SPEC.kwargs)
    params = module.params
    if not params["background"] or module.check_mode:
        run(module, work)
    many = []  # outlets to learn from

    def boards(proxy):
        many.extend(outlets(proxy.config.pdus, params["learn"]))
        return ids(proxy, params)

    def limit(count):
        # Before the first outlet it is listened for as long as at one; those that feed a board are tested twice.
        return Options(params["timeout"]).limit(2 * len(many) + 1 if many else count)

    in_background(module, params, boards, limit, lambda given: work(given, False))


if __name__ == "__main__":
    main()
