#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments and result of asking for another image or key; what that means is in
module_utils/_hetero/boards/image/rebuilds.py.
"""

from __future__ import annotations

DOCUMENTATION = r"""
module: board_rebuild
short_description: Ask for another image or key for an instance
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Changes image and key of an instance's claim in one transaction and writes down that its root is to be made anew.
    Board, address, flavor and lease stay.
  - Nothing is switched or removed. Afterwards M(hetero.compute.tilera_boot) stops the boards RV(to_rebuild),
    M(hetero.compute.board_image) makes the new root, and M(hetero.compute.tilera_boot) boots it, as playbook
    C(rebuild_instance) does. What was killed in between is made good by the same tasks.
  - What is in the old root is lost.
options:
  instance:
    description: The instance, or the request with all its instances.
    type: str
    required: true
  image:
    description:
      - Name of an image in the store. The default is the one that the claim names.
      - A name that stands for a newer image than the one that runs is another image.
    type: str
  ssh_public_key:
    description: OpenSSH public keys, one a line, that may log in as root. The default is what the claim names.
    type: str
  fresh:
    description: Ask for a fresh root although it runs this image and key.
    type: bool
    default: false
  owner:
    description: If it is given, another owner's instance is refused.
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
    details: With O(fresh=true) each run asks for a new root.
seealso:
  - module: hetero.compute.board_image
  - module: hetero.compute.tilera_boot
"""

EXAMPLES = r"""
- name: Jackie is to run another image
  hetero.compute.board_rebuild:
    instance: jackie
    image: debian-13
  register: rebuild
"""

RETURN = r"""
to_rebuild:
  description: Ids of the boards whose root is to be made anew.
  returned: always
  type: list
  elements: int
  sample: [0]
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
    image:
      description: The image that it is to run.
      type: str
      sample: debian-13
lines:
  description: What was done, for people, with instance, node, phase, text and seconds.
  returned: always
  type: list
  elements: dict
  sample:
    - {instance: jackie, node: board0, phase: rebuild, text: "another key; all that is in its root goes", seconds: null}
seconds:
  description: Seconds of each step.
  returned: always
  type: dict
  sample: {}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._hetero.boards.image.rebuilds import RebuildRequest, rebuild
from ..module_utils._hetero.boards.records.proxy import Proxy
from ..module_utils._hetero.boards.work.each_board import Instances
from ..module_utils._hetero.core.argument_spec import PROXY_CLAIMS, ArgumentSpec
from ..module_utils._hetero.core.changes import Change
from ..module_utils._hetero.core.deadline import Deadline
from ..module_utils._hetero.core.module import run

SPEC = PROXY_CLAIMS + ArgumentSpec(
    dict(
        instance=dict(type="str", required=True),
        image=dict(type="str"),
        ssh_public_key=dict(type="str", no_log=False),
        fresh=dict(type="bool", default=False),
        owner=dict(type="str"),
        timeout=dict(type="float", default=30),
    )
)


def work(params, check):
    with Proxy(params, create=not check) as proxy:
        instances = Instances(params["instance"], params["owner"], created=params["created"])
        request = RebuildRequest(params["image"], params["ssh_public_key"], params["fresh"])
        return rebuild(proxy, instances, request, Change(check), Deadline(params["timeout"]))


def main():
    run(AnsibleModule(**SPEC.kwargs), work)


if __name__ == "__main__":
    main()
