#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of a Nova service in a marked block. How files are read and changed is in module_utils/nova/."""

from __future__ import annotations

DOCUMENTATION = r"""
module: nova_flags
short_description: Keep options in nova.conf or in a flag file of Nova
version_added: 0.1.0
description:
  - Writes options into a file of Nova's, between two marker lines (C(BEGIN hetero.compute) and C(END hetero.compute)).
    There is one such block in each section, behind the section's last option; the rest of the file stays as it is.
  - Relies on what oslo.config does. A section may be opened more than once, and of a single-valued option that is given
    more than once the last one counts. Flag files, which Nova read up to Essex, go by the same rule. The options given
    here must be single-valued ones.
  - An option that the file has outside the blocks with the same value is not written again. One with another value is
    an error that names its line, unless O(override) is set.
  - The file is checked by those rules before it is replaced, in one step, and read back afterwards. Its owner and mode
    stay. Other files that a service reads after this one are not looked at.
extends_documentation_fragment:
  - hetero.compute.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
    details: Shows the blocks, and nothing else of the file. Do not put secrets into O(flags).
  idempotent:
    support: full
options:
  path:
    description: The file. It is made where it does not exist; its folder must.
    type: path
    default: /etc/nova/nova.conf
  format:
    description: V(conf) has sections, V(flagfile) has a line C(--name=value) a flag.
    type: str
    choices: [conf, flagfile]
    default: conf
  flags:
    description:
      - Options by section, such as C(DEFAULT). An option without a value is left out.
      - A section that the file does not have is added, and stays when the block goes. A flag file has C(DEFAULT) only.
    type: dict
    default: {}
  override:
    description: Write an option even if the file gives it another value outside the blocks; the block's counts.
    type: bool
    default: false
  state:
    description: V(absent) takes all blocks out of the file.
    type: str
    choices: [present, absent]
    default: present
author:
  - hetero.compute contributors (@hetero-compute)
"""

EXAMPLES = r"""
- name: Say what this compute node is the front end of
  hetero.compute.nova_flags:
    flags:
      DEFAULT:
        connection_type: baremetal
        baremetal_driver: tilera
      baremetal:
        tile_pdu_ip: 10.0.100.1

- name: The same for Essex
  hetero.compute.nova_flags:
    path: /etc/nova/nova-compute.conf
    format: flagfile
    flags:
      DEFAULT:
        connection_type: baremetal
"""

RETURN = r"""
elsewhere:
  description: Options of O(flags) that the file has outside the blocks.
  returned: success
  type: list
  elements: dict
  contains:
    section: {description: The section., type: str}
    name: {description: The option., type: str}
    value: {description: Its value there., type: str}
    line: {description: Number of the line., type: int}
    effect: {description: 'V(kept), for it has the value that was asked for, or V(overridden) by the block.', type: str}
  sample:
    - {section: DEFAULT, name: cpu_arch, value: tilepro64, line: 12, effect: kept}
effective:
  description: What the file says of O(flags), read back; in check mode what it says as it is, none where nothing.
  returned: success
  type: dict
  sample: {DEFAULT: {connection_type: baremetal}}
failure:
  description: The error in its parts.
  returned: failure
  type: dict
seconds:
  description: Seconds of each step.
  returned: success
  type: dict
  sample: {file: 0.002}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._hetero.core.argument_spec import ArgumentSpec
from ..module_utils._hetero.core.changes import Change
from ..module_utils._hetero.core.module import run
from ..module_utils._hetero.openstack import block
from ..module_utils._hetero.openstack.config_files import FORMATS

SPEC = ArgumentSpec(
    dict(
        path=dict(type="path", default="/etc/nova/nova.conf"),
        format=dict(type="str", choices=list(FORMATS), default="conf"),
        flags=dict(type="dict", default={}),
        override=dict(type="bool", default=False),
        state=dict(type="str", choices=["present", "absent"], default="present"),
    )
)


def work(params, check):
    change = Change(check)
    path, form = params["path"], params["format"]
    asked = block.as_wanted(params["flags"], form)
    wanted = asked if params["state"] == "present" else {}
    with change.step("file"):
        text = block.read(path)
        plan = block.plan(text or "", wanted, form, path, params["override"])
        note = change.note(path, dict(blocks=plan.before), dict(blocks=plan.after))
        if note and not change.check:
            block.write(path, plan.text, wanted, form)
            text = plan.text
    effective = block.effective(text or "", asked, form, path)
    return dict(change.result, elsewhere=plan.elsewhere, effective=effective)


def main():
    run(AnsibleModule(**SPEC.kwargs), work)


if __name__ == "__main__":
    main()
