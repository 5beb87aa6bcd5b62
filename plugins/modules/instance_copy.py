#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps by which an instance moves to another compute host; module_utils/_hetero/instances/kinds/host_moves.py knows
who takes them.
"""

from __future__ import annotations

DOCUMENTATION = r"""
module: instance_copy
short_description: Take one step of an instance's move to another compute host
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Playbook C(hetero.compute.migrate_instance) moves a container or guest to another compute host by these steps, and
    starts it there by M(hetero.compute.instance) with O(hetero.compute.instance#module:state=migrated). Use that.
  - Each step is a call on one of the two hosts, and passes on what the other one answered. Each looks first, so all can
    be taken again after a move that was cut off.
  - The root goes through the controller in pieces, which are in no file there. A task that carries them needs
    C(no_log).
extends_documentation_fragment:
  - hetero.compute.attributes
  - hetero.compute.attributes.actiongroup_host
  - hetero.compute.host
attributes:
  check_mode:
    support: full
    details: The steps V(described), V(arriving) and V(leaving) say what they would do. The others have nothing to work
      on before these are done.
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  instance:
    description: Name of the instance.
    type: str
    required: true
  created:
    description: When it was claimed, in seconds since 1970. It tells the instance from a later one of that name.
    type: float
    required: true
  step:
    description:
      - On the host that it leaves, V(described) says what moves, and refuses what would stay behind. V(leaving) stops
        the instance, and nothing starts it from then on. V(planned) says which pieces are needed, V(read) reads one,
        and V(digested) sums the whole files up. V(gone) ends the claim, and removes the former root, once the instance
        runs on the other host and has proven its key there. V(recalled) has the former root stay, and refuses where it
        is not there any more. V(back) leaves it stopped here, as an instance of this host alone.
      - On the host to which it moves, V(arriving) claims what it needs. V(begun) makes the empty copies, or says which
        pieces they have. V(written) writes a piece. V(taken) compares the whole copies with their sources, and makes
        the container or guest of them, which is not started. V(settled) writes down, of one that runs, that its former
        root goes; nothing gives it up from then on. V(given_up) removes all of that, and ends the claim, of an instance
        that was never started here.
    type: str
    choices:
      - described
      - arriving
      - leaving
      - begun
      - planned
      - read
      - written
      - digested
      - taken
      - settled
      - gone
      - given_up
      - recalled
      - back
    required: true
  owner:
    description: If given, another owner's instance is refused.
    type: str
  run:
    description:
      - The run of the playbook, any text that no other run has. V(arriving), V(leaving), V(settled) and V(recalled)
        write it into the claim on their host. The other steps are refused once another run has written its own there.
      - A run that goes on with an instance that was started on its new host gives V(gone) that of its claim when it
        looked (C(mover) of M(hetero.compute.host_info)), and one that takes a move back gives V(given_up) that.
    type: str
  seen:
    description: With the steps V(arriving), V(leaving), V(settled) and V(recalled), the C(mover) of the claim on that
      host when this run looked where the instance is; empty for none, and where it had no claim. Where it is another
      one by now, another run moves it, and the step is refused.
    type: str
  other:
    description: The other host, by its name in the inventory.
    type: str
  came:
    description: RV(came) of the host that it leaves.
    type: dict
  has:
    description: RV(has) of the host to which it moves.
    type: dict
  file:
    description: Of a piece, the name of its file.
    type: str
  number:
    description: Of a piece, its number, from 0.
    type: int
  offset:
    description: Of a piece, where it begins in its file (bytes).
    type: int
  length:
    description: Of a piece, its bytes.
    type: int
  sha256:
    description: Of a piece, the sum of its bytes.
    type: str
  data:
    description: Of a piece, its bytes, compressed with zlib and as base64.
    type: str
  digests:
    description: RV(digests) of the host that it leaves.
    type: dict
  host_key:
    description: With O(step=gone), the public ssh host key that the instance proved on the other host. Where it is not
      that of the claim here, nothing is removed.
    type: str
  departure:
    description: With O(step=gone), the C(departure) of the claim on the other host (M(hetero.compute.host_info)). Where
      it is not that of the claim here, what runs there is no copy of the root as it left, and nothing is removed. With
      O(step=given_up), that of the host that it leaves, as V(leaving) has said it. A whole copy of another one stays.
    type: str
  force:
    description: With O(step=given_up), give up also an instance that was started here, with what its tenant has written
      since. With O(step=described), say of one that leaves, and is to be taken back, only where it was to go. An
      operator's word.
    type: bool
    default: false
  timeout:
    description: Seconds to wait for others who work on it, and for its end.
    type: float
    default: 300
  soft_timeout:
    description: Seconds that its own system has to end, before it is ended by force.
    type: float
    default: 30
seealso:
  - module: hetero.compute.instance
"""

EXAMPLES = r"""
- name: What of ml-8 would move
  hetero.compute.instance_copy:
    instance: ml-8
    created: 1764430000.25
    step: described
  register: ml_8
"""

RETURN = r"""
came:
  description: The instance as the other host is to have it, with the C(files) of its root and their C(bytes).
  returned: with O(step=described) and O(step=leaving)
  type: dict
has:
  description: Of each file, the sums of the pieces that its copy has, by their numbers.
  returned: with O(step=begun)
  type: dict
taken:
  description: Whether the root was made of the copies already, so that no piece is needed.
  returned: with O(step=begun)
  type: bool
todo:
  description: The pieces that are needed, each a list of file and number.
  returned: with O(step=planned)
  type: list
  elements: list
piece:
  description: A piece, with C(file), C(number), C(offset), C(length), C(sha256) and C(data).
  returned: with O(step=read)
  type: dict
digests:
  description: Of each file, the sum of all of it.
  returned: with O(step=digested)
  type: dict
ran:
  description: Whether it ran before it left, and is to run again.
  returned: with O(step=back)
  type: bool
lines:
  description: What was done, for people, with instance, node, phase, text and seconds.
  returned: always
  type: list
  elements: dict
seconds:
  description: Seconds of each step.
  returned: always
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._hetero.core.argument_spec import HOST, ArgumentSpec
from ..module_utils._hetero.core.module import run
from ..module_utils._hetero.instances.kinds.host_moves import STEPS, work

SPEC = HOST + ArgumentSpec(
    dict(
        instance=dict(type="str", required=True),
        created=dict(type="float", required=True),
        step=dict(type="str", required=True, choices=list(STEPS)),
        owner=dict(type="str"),
        run=dict(type="str"),
        seen=dict(type="str"),
        other=dict(type="str"),
        came=dict(type="dict"),
        has=dict(type="dict"),
        file=dict(type="str"),
        number=dict(type="int"),
        offset=dict(type="int"),
        length=dict(type="int"),
        sha256=dict(type="str", no_log=False),
        data=dict(type="str", no_log=True),
        digests=dict(type="dict"),
        host_key=dict(type="str", no_log=False),
        departure=dict(type="str"),
        force=dict(type="bool", default=False),
        timeout=dict(type="float", default=300),
        soft_timeout=dict(type="float", default=30),
    ),
    required_if=[
        ("step", "arriving", ("run", "seen", "came", "other")),
        ("step", "leaving", ("run", "seen", "other")),
        ("step", "begun", ("run", "came")),
        ("step", "planned", ("run", "has")),
        ("step", "read", ("run", "file", "number")),
        ("step", "written", ("run", "file", "number", "offset", "length", "sha256", "data")),
        ("step", "digested", ("run",)),
        ("step", "taken", ("run", "came", "digests")),
        ("step", "settled", ("run", "seen")),
        ("step", "gone", ("run", "host_key", "departure")),
        ("step", "given_up", ("run",)),
        ("step", "recalled", ("run", "seen")),
        ("step", "back", ("run",)),
    ],
)


def main():
    run(AnsibleModule(**SPEC.kwargs), work)


if __name__ == "__main__":
    main()
