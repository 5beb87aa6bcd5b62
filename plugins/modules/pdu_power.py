#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Outlets of one PDU on, off or cycled. How a PDU is spoken to and read back is drivers/power's of module_utils."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pdu_power
short_description: Switch outlets of a PDU and read them back
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Turns outlets of a switched PDU on or off, or cycles them. Module M(hetero.compute.pdu_info) tells their states.
  - One login serves any number of outlets. Each outlet is read back until it shows its new state, and the module logs
    out in every case, because a PDU has one place and an open session locks everybody else out.
  - A PDU that somebody else uses is waited for until O(timeout). Of several runs on one machine, one at a time talks to
    a PDU.
  - An outlet that fails does not stop the others. The module then fails, and RV(outlets) says for each what happened.
extends_documentation_fragment:
  - hetero.compute.attributes
  - hetero.compute.attributes.actiongroup
  - hetero.compute.pdu
attributes:
  check_mode:
    support: full
    details:
      - The outlets' state is really read from the PDU.
  diff_mode:
    support: full
  idempotent:
    support: partial
    details:
      - O(state=cycled) cuts the power each time.
options:
  state:
    description:
      - What the outlets are to be.
      - V(cycled) is off, read back, and on, read back. An outlet that was off is on afterwards.
      - V(status) changes nothing, and is deprecated. It goes with release 1.0.0, and so does the default; use module
        M(hetero.compute.pdu_info).
    type: str
    choices: ["on", "off", cycled, status]
    default: status
  verify:
    description:
      - Read each outlet back.
      - Without, the module trusts the PDU, returns no RV(outlets.after), and may report success for an outlet that did
        not switch. The off of O(state=cycled) is read back all the same.
    type: bool
    default: true
seealso:
  - module: hetero.compute.pdu_info
"""

EXAMPLES = r"""
- name: Cut and restore the power of two boards
  hetero.compute.pdu_power:
    pdu: pdu-a
    outlets: [5, 6]
    state: cycled

- name: Turn an outlet off at a PDU that no configuration knows, from the controller
  hetero.compute.pdu_power:
    host: 10.0.100.9
    username: apc
    password: "{{ vaulted_pdu_password }}"
    outlets: [3]
    state: "off"
  delegate_to: localhost

- name: Turn an outlet on by SNMP
  hetero.compute.pdu_power:
    host: 10.0.100.9
    driver: snmp
    community: "{{ vaulted_community }}"
    outlets: [3]
    state: "on"

- name: Turn a plug on by HTTP
  hetero.compute.pdu_power:
    host: 10.0.100.31
    driver: http
    api: shelly2
    password: "{{ vaulted_plug_password }}"
    outlets: [0]
    state: "on"

- name: Turn a server off by its BMC, whose certificate is checked
  hetero.compute.pdu_power:
    host: 10.0.100.20
    driver: redfish
    tls_ca: /etc/ssl/bmcs.pem
    username: operator
    password: "{{ vaulted_bmc_password }}"
    outlets: [System.Embedded.1]
    state: "off"

- name: Turn an outlet on by a fence agent
  hetero.compute.pdu_power:
    host: 10.0.100.10
    driver: fence
    agent: fence_raritan
    username: admin
    password: "{{ vaulted_pdu_password }}"
    outlets: [3]
    state: "on"
"""

RETURN = r"""
outlets:
  description: Each outlet by its number.
  returned: once the PDU was read
  type: dict
  contains:
    before:
      description: >-
        V(on) or V(off), as read first, or another word for neither, like V(pending). Null for an outlet that the PDU
        does not have.
      type: str
    after:
      description: V(on) or V(off), as read last (in check mode, as it would be). Null where it was not read.
      type: str
    seconds:
      description: Seconds from the first reading until the outlet was seen as wanted.
      type: float
    error:
      description: What went wrong with this outlet.
      returned: failure
      type: str
  sample: {"5": {"before": "off", "after": "on", "seconds": 0.21}}
dialect:
  description: >-
    How the PDU turned out to speak, V(menu) or V(cli), its table of outlets with SNMP, the name of the fence agent,
    V(command), V(redfish), V(ipmi), V(uhubctl) or V(fake).
  returned: once the PDU was read
  type: str
  sample: menu
host_key:
  description: >-
    How the PDU proves by ssh who it is, V(pinned) by a key that was given, or V(first seen) by the key that it showed
    at first, when any machine at its address could have shown one. Null without ssh.
  returned: once the PDU was read
  type: str
  sample: pinned
seconds:
  description: Seconds of the whole session, login, waiting and logout included, under C(session).
  returned: once the PDU was read
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
      description: The PDU or outlet.
      type: str
    remedy:
      description: What to do next.
      type: str
    screen:
      description: The last screen of the PDU, without the password.
      type: str
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._hetero.core.argument_spec import PDU, ArgumentSpec
from ..module_utils._hetero.core.changes import Change
from ..module_utils._hetero.core.deadline import Deadline
from ..module_utils._hetero.core.module import run
from ..module_utils._hetero.drivers.power.named_pdu import named, tell
from ..module_utils._hetero.drivers.power.outlets import OutletsFailed, set_outlets

SPEC = PDU + ArgumentSpec(
    dict(
        state=dict(type="str", choices=["on", "off", "cycled", "status"], default="status"),
        verify=dict(type="bool", default=True),
    ),
    required_if=[("state", state, ("outlets",)) for state in ("on", "off", "cycled")],
)
#: What is said of `state=status`, which is its default as well.
STATUS = "state=status of module hetero.compute.pdu_power: module hetero.compute.pdu_info tells them"


def switched(opened, params, deadline, check):
    """Return (outlets, fields of a failed result where some outlets failed)."""
    wanted = dict.fromkeys(params["outlets"], params["state"])
    try:
        return set_outlets(opened, wanted, deadline, check=check, verify=params["verify"]), {}
    except OutletsFailed as error:
        outlets = dict(error.results)
        for outlet, reason in error.errors.items():
            seen = dict(before=error.before.get(outlet), after=reason.facts.get("seen"), seconds=None)
            outlets[outlet] = dict(seen, error=str(reason))
        return outlets, dict(failed=True, msg=str(error), failure=error.failure)


def shown(seen, state):
    """Return an outlet's present state as its diff shows it."""
    if "error" in seen:
        return seen["after"] or seen["before"]
    if seen["after"] is None:
        return f"{state}, not read back"
    return "on, cycled" if state == "cycled" and seen["before"] == "on" else seen["after"]


def work(params, check):
    pdu, state, change, deadline = named(params), params["state"], Change(check), Deadline(params["timeout"])
    with change.step("session"), pdu.session(deadline) as opened:
        if state == "status":
            outlets, failed = tell(opened, params["outlets"]), {}
        else:
            outlets, failed = switched(opened, params, deadline, check)
        dialect = opened.dialect
    for outlet, seen in outlets.items():
        change.note(f"{pdu.name} outlet {outlet}", dict(power=seen["before"]), dict(power=shown(seen, state)))
    return dict(change.result, outlets=outlets, dialect=dialect, host_key=pdu.host_key, **failed)


def main():
    module = AnsibleModule(**SPEC.kwargs)
    if module.params["state"] == "status":
        module.deprecate(STATUS, version="1.0.0", collection_name="hetero.compute")
    run(module, work)


if __name__ == "__main__":
    main()
