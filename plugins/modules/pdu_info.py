#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Outlets of one PDU told. How a PDU is spoken to is drivers/power's of module_utils."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pdu_info
short_description: Tell the states of a PDU's outlets, and what they draw
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Reads from a switched PDU which of its outlets are on and which are off. Changes nothing.
  - Of outlets that the device measures, also what they draw. That is asked for last, takes 3 seconds at most, and
    where it fails it is left out.
  - It logs in once, and out in every case, because a PDU has one place and an open session locks everybody else out.
  - A PDU that somebody else uses is waited for until O(timeout). Of several runs on one machine, one at a time talks to
    a PDU.
extends_documentation_fragment:
  - hetero.compute.attributes
  - hetero.compute.attributes.actiongroup
  - hetero.compute.pdu
attributes:
  check_mode:
    support: full
  diff_mode:
    support: N/A
    details:
      - Nothing is changed.
  idempotent:
    support: full
seealso:
  - module: hetero.compute.pdu_power
"""

EXAMPLES = r"""
- name: See what is on
  hetero.compute.pdu_info:
    pdu: pdu-a
  register: power

- name: See whether an outlet is on, at a PDU that no configuration knows, from the controller
  hetero.compute.pdu_info:
    host: 10.0.100.9
    username: apc
    password: "{{ vaulted_pdu_password }}"
    outlets: [3]
  delegate_to: localhost
"""

RETURN = r"""
outlets:
  description: Each outlet by its number, with the fields of M(hetero.compute.pdu_power).
  returned: success
  type: dict
  contains:
    before:
      description: V(on) or V(off), or another word for neither, like V(pending).
      type: str
    after:
      description: The same, for nothing was switched.
      type: str
    seconds:
      description: None passed between the two.
      type: float
    watts:
      description: What the outlet draws now (W).
      returned: where the device tells
      type: float
    kwh:
      description: The outlet's energy counter (kWh), which counts from whenever it was last reset.
      returned: where the device tells
      type: float
  sample: {"5": {"before": "on", "after": "on", "seconds": 0.0, "watts": 41.0, "kwh": 310.2}}
dialect:
  description: >-
    How the PDU turned out to speak, V(menu) or V(cli), its table of outlets with SNMP, the name of the fence agent,
    V(command), V(redfish), V(ipmi), V(uhubctl) or V(fake).
  returned: success
  type: str
  sample: menu
host_key:
  description: >-
    How the PDU proves by ssh who it is, V(pinned) by a key that was given, or V(first seen) by the key that it showed
    at first, when any machine at its address could have shown one. Null without ssh.
  returned: success
  type: str
  sample: pinned
seconds:
  description: Seconds of the whole session, login, waiting and logout included, under C(session).
  returned: success
  type: dict
  sample: {"session": 0.4}
failure:
  description: The error in parts.
  returned: failure
  type: dict
  contains:
    what:
      description: What is wrong.
      type: str
    thing:
      description: The PDU.
      type: str
    remedy:
      description: What to do next.
      type: str
    screen:
      description: The last screen of the PDU, without the password.
      type: str
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._hetero.core.argument_spec import PDU
from ..module_utils._hetero.core.changes import Change
from ..module_utils._hetero.core.deadline import Deadline
from ..module_utils._hetero.core.module import run
from ..module_utils._hetero.drivers.power.named_pdu import named, tell

SPEC = PDU


def work(params, check):
    pdu, change = named(params), Change(check)
    with change.step("session"), pdu.session(Deadline(params["timeout"])) as opened:
        outlets, dialect = tell(opened, params["outlets"]), opened.dialect
    return dict(change.result, outlets=outlets, dialect=dialect, host_key=pdu.host_key)


def main():
    run(AnsibleModule(**SPEC.kwargs), work)


if __name__ == "__main__":
    main()
