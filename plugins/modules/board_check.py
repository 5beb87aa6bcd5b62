#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments and result of checks of boards; module_utils/_hetero/boards/verbs/checks.py checks them."""

from __future__ import annotations

DOCUMENTATION = r"""
module: board_check
short_description: Check the health of boards that nobody has
version_added: 0.1.0
description:
  - Boots free boards into the proxy's RAM image (C(tftp_proxy_ram_images)), tests each, switches it off and frees it.
  - Tested are power (the outlet obeys, read back), boot (seconds from power on to ssh), serial (its console said
    something since power on), RAM (three patterns are written and read), disks (three places of each disk that the
    wiring names are read, and SMART is asked where the RAM image has C(smartctl)), and network (MB/s from the proxy
    node). Nothing is written to a disk.
  - What cannot be tested, for want of a console, a disk or a program in the RAM image, is no failure.
  - Only a board that nobody has is checked. One that is claimed, in state C(error) or C(maintenance), that is on, or
    that is somebody's by its root, its disks or the record of a claim, is not.
  - A request comes first. While a board is checked, a claim takes another one. Where there is none, the check ends,
    and the request gets the board as soon as it is off.
  - The result counts in the board's history (C(health) in M(hetero.compute.board_info)). A board whose outlet or boot
    fails is kept out of use, as after a boot for an instance. One that fails another test stays in use, and
    requests get others first.
  - Fails where a board fails a test.
  - Its action plugin runs the module in the background and prints what is found as it happens.
options:
  boards:
    description: Ids of the boards; all idle ones if it names none, those checked longest ago first.
    type: list
    elements: int
    default: []
  memory_mb:
    description:
      - Most MiB of memory that are tested; half of what is free at most.
      - Of this and the other limits, what C(tftp_proxy_check) of the proxy says is the default, else V(256).
    type: int
  disk_mb_s:
    description: MB/s at which each disk must be read, at its slowest place; V(5) by default.
    type: float
  network_mb_s:
    description: MB/s that must come from the proxy node, by ssh; V(1) by default.
    type: float
  boot_seconds:
    description: Seconds from power on until the RAM system answers, above which a board fails; V(300) by default.
    type: float
  timeout:
    description: Seconds from power on until the RAM system answers, after which a board is kept out of use.
    type: int
    default: 300
  background:
    description:
      - Start the work, return at once, and leave the result in the file RV(follow.job).
      - The action plugin sets this. There is no need to set it in a play.
    type: bool
    default: false
extends_documentation_fragment:
  - hetero.compute.attributes
  - hetero.compute.attributes.actiongroup
  - hetero.compute.proxy
attributes:
  check_mode:
    support: full
    details: Says which boards would be checked. Nothing is switched.
  diff_mode:
    support: none
    details: All boards end as they were.
  idempotent:
    support: none
    details: Each run boots the boards, and returns that as changed.
seealso:
  - module: hetero.compute.board_info
  - module: hetero.compute.board_wipe
author:
  - hetero.compute contributors (@hetero-compute)
"""

EXAMPLES = r"""
- name: Check board 3
  hetero.compute.board_check:
    boards: [3]

- name: Check all idle boards, whose network must do 10 MB/s
  hetero.compute.board_check:
    network_mb_s: 10
"""

RETURN = r"""
boards:
  description: What came of each board, in the order of O(boards).
  returned: always
  type: list
  elements: dict
  contains:
    board: {description: Id of the board., type: int}
    name: {description: Name of the board., type: str}
    changed: {description: Whether it was booted., type: bool}
    failed: {description: 'Whether it failed a test, did not boot, or could not be checked.', type: bool}
    error: {description: 'What is wrong, and what to do.', type: str}
    blame: {description: 'Whose fault it was, such as C(board) or C(proxy).', type: str}
    state: {description: State of the board now., type: str}
    wanted_by: {description: 'The request for which the check ended, or none.', type: str}
    tests:
      description:
        - Each test that was done, with C(name), C(passed) (none where it could not be done), C(text) and C(figures).
        - Figures are C(seconds) of power and boot, C(bytes) of serial, C(mb) and C(seconds) of RAM, C(mb_s) and
          C(smart) of each disk, C(mb_s) and C(mb) of network.
      type: list
      elements: dict
not_checked:
  description: Without O(boards), each board that is not idle, and why.
  returned: always
  type: dict
  sample: {board0: jackie of ann has it}
lines:
  description: What was done, for people, with instance, node, phase, text and seconds.
  returned: always
  type: list
  elements: dict
  sample:
    - {instance: null, node: board3, phase: check, text: "network: 11.2 MB/s from the proxy node", seconds: null}
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

from ..module_utils._hetero.boards.verbs.check_runs import AT_ONCE, check, ids_of
from ..module_utils._hetero.boards.verbs.checks import CheckRequest
from ..module_utils._hetero.boards.verbs.measures import Limits
from ..module_utils._hetero.boards.work.job import in_background
from ..module_utils._hetero.core.argument_spec import PROXY, ArgumentSpec
from ..module_utils._hetero.core.module import run
from ..module_utils._hetero.site.proxy_config import read_config

LIMITS = ("memory_mb", "disk_mb_s", "network_mb_s", "boot_seconds")
SPEC = PROXY + ArgumentSpec(
    dict(
        boards=dict(type="list", elements="int", default=[]),
        memory_mb=dict(type="int"),
        disk_mb_s=dict(type="float"),
        network_mb_s=dict(type="float"),
        boot_seconds=dict(type="float"),
        timeout=dict(type="int", default=300),
        background=dict(type="bool", default=False),
    )
)


def asked(params, check_mode):
    """The request that the arguments make."""
    limits = Limits.of(read_config(params["config"]).check, **{name: params[name] for name in LIMITS})
    return CheckRequest(limits, params["timeout"], check_mode)


def work(params, check_mode):
    """Check them; returns the module's result."""
    return check(params, params["boards"], asked(params, check_mode))


def main():
    module = AnsibleModule(**SPEC.kwargs)
    params = module.params
    if not params["background"] or module.check_mode:
        run(module, work)
    in_background(
        module,
        params,
        lambda proxy: ids_of(proxy, params["boards"]),
        lambda count: asked(params, False).longest * (1 + count // AT_ONCE),
        lambda given: work(given, False),
    )


if __name__ == "__main__":
    main()
