#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wipe the disks of boards, proven, from a system in RAM.

Arguments to request and result only; boards/disk/wipes.py does it.
"""

from __future__ import annotations

DOCUMENTATION = r"""
module: board_wipe
short_description: Wipe the disks of boards, and prove it
version_added: 0.1.0
description:
  - Boots boards into the proxy's RAM image, wipes all disks that their wiring names (C(disk)), all at once, and
    switches the boards off again. Boards without a disk, and boards that no tenant's system ran on since they were
    wiped, are left alone.
  - A wipe is proven by canaries, which are blocks of noise at random offsets and in the first and last megabyte. They
    are written and read back before, and read back past all caches after. A disk that ignores discard is noticed by
    them, and overwritten with zeroes.
  - Canaries are a sample, and the result says what the sample is worth. With 64 of them, remains on 4.6 % of the disk
    or more are noticed with a probability of 95 %, and remains on 1 % in half of all cases. V(full) reads back every
    block.
  - Neither reaches sectors that a disk has put out of use, nor an SSD's spare blocks; only V(secure_erase) does.
  - Places that a wipe does not reach (sectors hidden by HPA or DCO, a password of the disk, other NVMe namespaces and
    capacity in none, eMMC boot partitions and RPMB, disks that the wiring does not name) are looked for. Each is named,
    nothing is wiped, and the board is not free, until it is dealt with or its wiring has it in C(accept_unwiped).
  - A board with a disk is given back (M(hetero.compute.board_claim)) only with such a proof. Cut off anywhere, the
    module is run again, and begins the wipe anew.
  - A disk that fails puts its board into state C(error). A fault of the proxy or of the RAM image does not, but it
    frees no board either.
  - A board that is running, booting or made ready for an instance is refused.
options:
  boards:
    description: Ids of the boards.
    type: list
    elements: int
    required: true
  method:
    description:
      - V(discard) tells the disk to forget all its blocks. Takes a moment where the disk can do it; one that cannot
        is overwritten.
      - V(zero) writes zeroes over all of it, which takes hours for a large disk.
      - V(secure_erase) is the disk's own erasure, by C(hdparm) or C(nvme) where the RAM image has them. It is an
        error for a disk that has none.
      - Without it, what C(tftp_proxy_wipe) of the proxy says, else V(discard).
    type: str
    choices: [discard, zero, secure_erase]
  verify:
    description:
      - V(sample) reads back canaries, V(full) reads back all of the disk, too, at the speed of the disk. It is an error
        with O(method=secure_erase), after which a disk may hold noise.
      - V(none) proves nothing, and a wipe that is not proven does not free the board.
      - Without it, what C(tftp_proxy_wipe) of the proxy says, else V(sample).
    type: str
    choices: [full, sample, none]
  samples:
    description:
      - How many canaries lie between those in the first and last megabyte, 1 to 4096.
      - Without it, what C(tftp_proxy_wipe) of the proxy says, else 64.
    type: int
  inspect:
    description:
      - Also say what the boards are made of. Boots boards without a disk, too, where there is a RAM image for them.
    type: bool
    default: false
  driver:
    description: The boot driver. V(auto) takes what the wiring of each board says.
    type: str
    default: auto
  timeout:
    description: Seconds from power on until the RAM system answers, for each try.
    type: int
    default: 300
  retries:
    description: How often a board that stalls before it asks for its kernel is switched off and on again.
    type: int
    default: 1
  limit:
    description: Seconds that the disks of a board may take.
    type: float
    default: 86400
  instance:
    description:
      - The instance or request that must have the boards. A board that was given to another one since it was looked up
        is refused and not touched. A board that nobody claims is not refused.
      - An empty name refuses every board that is claimed.
    type: str
  never_ran:
    description:
      - A board on which its instance ever ran is refused and not touched. Somebody else may have started the instance
        since it was looked at.
    type: bool
    default: false
  background:
    description:
      - Start the work, return at once, and leave the result in the file RV(follow.job).
      - The action plugin sets this. There is no need to set it in a play.
    type: bool
    default: false
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
    support: full
seealso:
  - module: hetero.compute.board_claim
  - module: hetero.compute.tilera_boot
author:
  - hetero.compute contributors (@hetero-compute)
"""

EXAMPLES = r"""
- name: Wipe the disk of board 3
  hetero.compute.board_wipe:
    boards: [3]

- name: Overwrite the disks of two boards
  hetero.compute.board_wipe:
    boards: [3, 4]
    method: zero

- name: Have all of it read back
  hetero.compute.board_wipe:
    boards: [3]
    verify: full
"""

RETURN = r"""
boards:
  description: What became of each board, in the order of O(boards).
  returned: always
  type: list
  elements: dict
  contains:
    board: {description: Id of the board., type: int}
    name: {description: Name of the board., type: str}
    instance: {description: Instance that has the board., type: str}
    state: {description: State of the board now., type: str}
    changed: {description: Whether this board was booted., type: bool}
    failed: {description: Whether this board failed., type: bool}
    blame: {description: 'Whose fault it was, C(proxy) or C(board).', type: str}
    error: {description: 'What went wrong, and what to do.', type: str}
    disks:
      description: The disks that were wiped by this run.
      type: list
      elements: dict
      contains:
        device: {description: Its name., type: str}
        serial: {description: Its serial number., type: str}
        model: {description: Its model., type: str}
        bytes: {description: How many were wiped., type: int}
        method: {description: 'What wiped it in the end; V(zero) where discard was ignored.', type: str}
        passes:
          description: What was tried, how many canaries there were and were gone, and with V(full) what was C(left).
          type: list
          elements: dict
        canaries: {description: Size and numbers of the blocks that canaries were written to., type: dict}
        proven: {description: Whether all canaries were gone., type: bool}
        verify: {description: How it was proven., type: str}
        seen_from: {description: The fewest bytes left as they were that the proof sees with 95 %., type: int}
        seconds: {description: How long it took., type: float}
    proof:
      description:
        - The record of the wipe that stands, as it is kept in C(wipes/) of the state folder.
        - Its C(key) says how the proxy knew the RAM system, C(not_wiped) what the operator accepted, C(not_looked_for)
          what the RAM image has no programs for.
      type: dict
    hardware:
      description: With O(inspect=true), C(memory_mb), C(cpus), C(disks) and C(links).
      type: dict
blame:
  description: The worst of the boards' blames.
  returned: always
  type: str
lines:
  description: What was done, for people, with instance, node, phase, text and seconds.
  returned: always
  type: list
  elements: dict
  sample:
    - {instance: jackie, node: board0, phase: wipe, text: "/dev/sda W1: 953869 MB by zero, all read back as zeroes"}
seconds:
  description: Seconds per step.
  returned: always
  type: dict
follow:
  description: Where to find progress and result.
  returned: when O(background=true)
  type: dict
  contains:
    job: {description: File with the result., type: str}
news:
  description: What a first look at the job found.
  returned: when O(background=true)
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._hetero.boards.disk.wipe_disk import METHODS, PROOFS
from ..module_utils._hetero.boards.disk.wipes import WipeRequest, wipe
from ..module_utils._hetero.boards.records.proxy import Proxy
from ..module_utils._hetero.boards.verbs.lifecycle import Options
from ..module_utils._hetero.boards.work.job import in_background
from ..module_utils._hetero.core.argument_spec import PROXY_CLAIMS, ArgumentSpec
from ..module_utils._hetero.core.module import run

SPEC = PROXY_CLAIMS + ArgumentSpec(
    dict(
        boards=dict(type="list", elements="int", required=True),
        method=dict(type="str", choices=list(METHODS)),
        verify=dict(type="str", choices=list(PROOFS)),
        samples=dict(type="int"),
        inspect=dict(type="bool", default=False),
        driver=dict(type="str", default="auto"),
        timeout=dict(type="int", default=300),
        retries=dict(type="int", default=1),
        limit=dict(type="float", default=86400),
        instance=dict(type="str"),
        never_ran=dict(type="bool", default=False),
        background=dict(type="bool", default=False),
    )
)


def options(params, check):
    """The verb's options from the module's."""
    names = ("driver", "timeout", "retries", "instance", "created", "never_ran")
    return Options(check=check, **{name: params[name] for name in names})


def work(params, check):
    """Wipe what is to be wiped; returns the module's result."""
    with Proxy(params, create=not check) as proxy:
        request = WipeRequest.of(
            proxy, **{name: params[name] for name in ("method", "verify", "samples", "inspect", "limit")}
        )
        return wipe(proxy, params["boards"], request, options(params, check))


def main():
    module = AnsibleModule(**SPEC.kwargs)
    if not module.params["background"] or module.check_mode:
        run(module, work)
    in_background(
        module,
        module.params,
        lambda proxy: module.params["boards"],
        lambda boards: 2 * options(module.params, False).limit + module.params["limit"],
        lambda params: work(params, False),
    )


if __name__ == "__main__":
    main()
