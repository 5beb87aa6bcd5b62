#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments, plan and result of bringing boards up and down; the work is done in
module_utils/_hetero/boards/verbs/lifecycle.py.
"""

from __future__ import annotations

DOCUMENTATION = r"""
module: tilera_boot
short_description: Start, stop and reboot boards of a proxy node
version_added: 0.1.0
description:
  - Brings claimed boards to V(running), which means that ssh answers with the host key put into this very root.
  - Writes the boot entry, switches the board's PDU outlet with read-back, and follows the boot by what the proxy sees.
  - What is observed counts more than what is recorded. A board that runs with the right host key is left alone, a
    missing boot entry is written again, a board that is found off is switched on, and one that is on without an answer
    is switched off and on.
  - When a boot stalls, the fault is looked for in the proxy first, then on the network, then in the image, then in the
    board. Only a board at fault goes to state C(error).
  - Many boards are worked on at once. The failure of one does not stop the others.
  - Its action plugin runs the module in the background and prints each phase as it happens. The work
    goes on when the play is killed, and the next run waits for it.
extends_documentation_fragment:
  - hetero.compute.attributes
  - hetero.compute.attributes.actiongroup
  - hetero.compute.created
  - hetero.compute.proxy
attributes:
  check_mode:
    support: full
    details: The PDUs are asked for the state of the outlets. Nothing is switched or written.
  diff_mode:
    support: full
  idempotent:
    support: partial
    details: With O(state=rebooted) each run reboots.
options:
  boards:
    description: Ids of the boards.
    type: list
    elements: int
    required: true
  state:
    description:
      - V(running) brings the boards to state C(running).
      - V(stopped) switches them off and removes their boot entries. Claim, root and data stay. Boards in C(error) are
        stopped too.
      - V(rebooted) has them boot anew, by ssh or by power, and brings them to C(running) again. Claim, root and data
        stay.
    type: str
    choices: [running, stopped, rebooted]
    default: running
  driver:
    description:
      - How the boards boot.
      - V(auto) is what the proxy's configuration says of each board. If it says nothing, that is V(tilera) for a board
        whose C(cpu_info) names Tilera as its vendor, else V(pxe).
      - With V(tilera) the board asks for C(vmlinux_N) itself, N being its id, and passes it no arguments. That is the
        image's kernel for this board, or for its boot source, where it has one (M(hetero.compute.image_store)).
      - Once its system is up, C(tile-monitor) on
        the proxy gives it network and ssh, and fetches its kernel's messages into C(log_N) of the TFTP folder, which
        TFTP gives to nobody. With O(wait=false) this is left to the next run.
      - V(pxe) is iPXE, V(uboot) a U-Boot that fetches an extlinux file (C(pxelinux.cfg/01-MAC)).
      - V(fake) needs no boards and plays a boot, for tests.
    type: str
    choices: [auto, pxe, uboot, tilera, fake]
    default: auto
  boot_source:
    description:
      - Where the root file system lies, V(nfs) on the proxy node, V(disk) on the board's own disk.
      - The first boot from a disk has two phases. In the first the board boots from the proxy's RAM image, its disk is
        partitioned, and its root is unpacked there and compared; in the second it boots from the disk.
      - The default is what the board's claim says; another one is refused.
    type: str
    choices: [nfs, disk]
  kernel_source:
    description:
      - Where the boards get their kernels.
      - V(auto) is what the proxy's configuration says of each board, V(tftp) if it says nothing.
      - With V(flash) the kernel lies in the board's own Compact Flash and is not awaited by TFTP. What is seen of such
        a boot is that the kernel asks for its address and mounts its root. Driver V(tilera) only.
      - What is put into the board's TFTP folder is up to the proxy's configuration alone, so V(tftp) is refused for a
        board that has V(flash) there.
    type: str
    choices: [auto, tftp, flash]
    default: auto
  timeout:
    description: Seconds from power on until ssh answers, for each try.
    type: int
    default: 300
  retries:
    description: How often a board that stalls before it asks for its kernel is switched off and on again.
    type: int
    default: 1
  wait:
    description:
      - Wait until the boards run.
      - With V(false) the module ends once power is on, and the boards are in state C(booting).
    type: bool
    default: true
  image:
    description:
      - Name of the image for boards that are not claimed yet.
      - Only check mode needs it, to show their boot entries.
    type: str
  rebuilt:
    description:
      - Ids of boards that are taken to be off, with their claims as M(hetero.compute.board_rebuild) leaves them, and
        with O(image) if it is given.
      - Only check mode uses it, in which the tasks before left boards and claims as they were.
    type: list
    elements: int
    default: []
  how:
    description:
      - How O(state=rebooted) does it.
      - With V(soft) the proxy tells the board by ssh, with a key of its own that may only reboot. The board has done it
        when its firmware's boot request is seen, and nothing else counts. A board that does not is left as it is.
      - V(hard) cuts the power.
      - V(auto) is V(soft), and V(hard) for a board that does not do it.
    type: str
    choices: [auto, soft, hard]
    default: auto
  soft_timeout:
    description: Seconds that a board told by ssh to reboot may take to its boot request, 1 to 600.
    type: int
    default: 30
  instance:
    description:
      - The instance or request that must have the boards. A board that was given to another one since it was looked up
        is refused and not touched. A board that nobody claims is not refused.
      - An empty name refuses every board that is claimed.
    type: str
  keep:
    description:
      - With O(state=stopped), the instance is to be started again later. Its board goes to C(power off) and stays its
        own; otherwise the board is C(shutting down) until somebody cleans it up and gives it back.
    type: bool
    default: false
  never_ran:
    description:
      - A board on which its instance ever ran is refused and not touched. Somebody else may have started the instance
        since it was looked at.
      - Only O(state=stopped) uses it.
    type: bool
    default: false
  background:
    description:
      - Start the work, return at once, and leave the result in the file RV(follow.job).
      - The action plugin sets this. There is no need to set it in a play.
    type: bool
    default: false
seealso:
  - module: hetero.compute.board_claim
  - module: hetero.compute.board_image
author:
  - hetero.compute contributors (@hetero-compute)
"""

EXAMPLES = r"""
- name: Start boards 0 and 3
  hetero.compute.tilera_boot:
    boards: [0, 3]

- name: Cut the power of board 3 and bring it up again
  hetero.compute.tilera_boot:
    boards: [3]
    state: rebooted
    how: hard
    timeout: 120

- name: Reboot board 3 by ssh, and leave it alone if it does not
  hetero.compute.tilera_boot:
    boards: [3]
    state: rebooted
    how: soft

- name: Switch board 3 off
  hetero.compute.tilera_boot:
    boards: [3]
    state: stopped
"""

RETURN = r"""
boards:
  description: What became of each board, in the order of O(boards).
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
    ip:
      description: Address at which users reach the board.
      type: str
      sample: 10.0.2.1
    state:
      description: State of the board now.
      type: str
      sample: running
    known_hosts:
      description: Lines for a known_hosts file.
      type: str
      sample: 10.0.2.1 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI
    phases:
      description: >-
        Seconds. C(power) is the time for switching with read-back, C(reboot) from the word by ssh to the boot request;
        C(tftp), C(nfs) and C(running) count from power on, or from that request.
        With a root on disk there is no C(nfs).
        Phases that were not reached are missing. Driver V(tilera) adds C(monitor),
        C(network), C(sshd), C(firewall) and C(console), and C(flash) for a kernel that was not fetched.
      type: dict
      sample: {power: 0.4, tftp: 2.2, nfs: 4.5, running: 5.4}
    power_proof:
      description: >-
        Two proofs that the outlet's new state is the board's. C(pdu) is the PDU's own, its read-back; C(board) is the
        board's, its boot request after power on, its silence after power off, or why there is none. A board that goes
        on although its outlet reads off is in state C(error) after a stop. At a reboot its outlet is switched on again,
        and the reboot fails. Null where nothing was switched.
      type: dict
      sample: {pdu: "off → on, read back", board: boot request 0.9 s after power on}
    changed:
      description: Whether this board's power or boot entry was changed.
      type: bool
    failed:
      description: Whether this board failed.
      type: bool
    blame:
      description: >-
        Whose fault it was, C(proxy), C(network) (another machine stands in the proxy's place, and is named), C(image)
        or C(board). C(instance) where the fault would be the image's or the board's, and the instance ran there before,
        so that nothing of it is given up without its owner's word.
      type: str
    error:
      description: What went wrong, and what to do.
      type: str
    evidence:
      description: >-
        What was seen of the boot, the last lines of the console, and a failed step with its command and output.
      type: dict
blame:
  description: The worst of the boards' blames. The worst first, C(proxy), C(network), C(image), C(board), C(instance).
  returned: always
  type: str
lines:
  description: What was done, for people, with instance, node, phase, text and seconds.
  returned: always
  type: list
  elements: dict
  sample:
    - {instance: jackie, node: board0, phase: running, text: ssh answers, seconds: 5.4}
seconds:
  description: Seconds per step.
  returned: always
  type: dict
follow:
  description: Where to find progress and result.
  returned: when O(background=true)
  type: dict
  contains:
    job:
      description: File with the result. It is locked (flock) until the work ends.
      type: str
    python:
      description: The Python that runs the work.
      type: str
    state_db:
      description: Database of the events.
      type: str
    after:
      description: Newest event before the work began.
      type: int
    boards:
      description: Ids of the boards.
      type: list
      elements: int
    limit:
      description: Seconds the work may take at most.
      type: float
news:
  description: What a first look at the job found, its events and, if it has ended already, its result.
  returned: when O(background=true)
  type: dict
"""

from dataclasses import fields

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._hetero.boards.records.proxy import Proxy
from ..module_utils._hetero.boards.verbs import lifecycle
from ..module_utils._hetero.boards.work.job import in_background
from ..module_utils._hetero.core.argument_spec import PROXY_CLAIMS, ArgumentSpec
from ..module_utils._hetero.core.module import run

SPEC = PROXY_CLAIMS + ArgumentSpec(
    dict(
        boards=dict(type="list", elements="int", required=True),
        state=dict(type="str", choices=["running", "stopped", "rebooted"], default="running"),
        driver=dict(type="str", choices=["auto", "pxe", "uboot", "tilera", "fake"], default="auto"),
        boot_source=dict(type="str", choices=["nfs", "disk"]),
        kernel_source=dict(type="str", choices=["auto", "tftp", "flash"], default="auto"),
        timeout=dict(type="int", default=300),
        retries=dict(type="int", default=1),
        wait=dict(type="bool", default=True),
        image=dict(type="str"),
        how=dict(type="str", choices=["auto", "soft", "hard"], default="auto"),
        soft_timeout=dict(type="int", default=30),
        instance=dict(type="str"),
        keep=dict(type="bool", default=False),
        never_ran=dict(type="bool", default=False),
        rebuilt=dict(type="list", elements="int", default=[]),
        background=dict(type="bool", default=False),
    )
)
VERBS = {"running": lifecycle.start, "stopped": lifecycle.stop, "rebooted": lifecycle.reboot}


def options(params, check):
    """The verb's options from the module's."""
    given = {field.name: params[field.name] for field in fields(lifecycle.Options) if field.name in params}
    return lifecycle.Options(check=check, **given)


def work(params, check):
    """Do what `state` says; returns the module's result."""
    with Proxy(params, create=not check) as proxy:
        return VERBS[params["state"]](proxy, params["boards"], options(params, check))


def main():
    module = AnsibleModule(**SPEC.kwargs)
    if not module.params["background"] or module.check_mode:
        run(module, work)
    in_background(
        module,
        module.params,
        lambda proxy: module.params["boards"],
        lambda boards: options(module.params, False).limit_with_disk,
        lambda params: work(params, False),
    )


if __name__ == "__main__":
    main()
