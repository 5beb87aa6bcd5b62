#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Outlets of one PDU on, off, cycled or told. How a PDU is spoken to and read back is module_utils/power's."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pdu_power
short_description: Switch outlets of a PDU and read them back
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Turns outlets of a switched PDU on or off, cycles them, or tells their state.
  - One login serves any number of outlets. Each outlet is read back until it shows its new state, and the module logs
    out in every case, because a PDU has one place and an open session locks everybody else out.
  - A PDU that somebody else uses is waited for until O(timeout). Of several runs on one machine, one at a time talks to
    a PDU.
  - An outlet that fails does not stop the others. The module then fails, and RV(outlets) says for each what happened.
requirements:
  - pexpect and a C(telnet) or C(ssh) client (driver V(apc))
  - net-snmp's commands, Debian package C(snmp) (driver V(snmp))
  - the fence agent (driver V(fence))
extends_documentation_fragment:
  - hetero.compute.attributes
  - hetero.compute.attributes.actiongroup
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
  pdu:
    description: Name of the PDU in the proxy node's configuration, which knows its address and its credentials.
    type: str
  host:
    description:
      - Name or address of a PDU that is in no configuration.
      - With O(driver=fake), the path of its file.
    type: str
  port:
    description: Its port, where it is not the transport's usual one.
    type: int
  driver:
    description:
      - How it is spoken to. V(apc) is APC's switched PDUs, whose menus and command line are told apart at login.
      - V(snmp) is APC's switched PDUs by SNMP, whose kind (rPDU2, rPDU, MasterSwitch Plus, MasterSwitch) is found out.
        An outlet of a MasterSwitch Plus past its first switch is named V(SWITCH:OUTLET). Reading does not wait for
        others.
      - V(fence) is any PDU that a fence agent knows; O(agent) names it. It is run for each question.
      - V(command) is a script of your own, O(script).
      - V(fake) is a file that behaves as a PDU, for tests.
      - Default is V(apc).
    type: str
    choices: [apc, command, fake, fence, snmp]
  transport:
    description:
      - How it is reached. Default is V(telnet).
      - With V(ssh) and without O(host_key), a PDU's first host key is taken and kept, in the proxy node's state or,
        with O(host), in the user's C(known_hosts). Another key later on is an error.
    type: str
    choices: [telnet, ssh]
  host_key:
    description:
      - With O(transport=ssh), the PDU's public host key, as C(ssh-keyscan) prints it behind the address; of several, a
        line each. It gets its password only where it proves one of these.
      - Without, RV(host_key) says so.
    type: str
  legacy_ssh:
    description:
      - With O(transport=ssh), also allow the old algorithms that cards of before 2014 offer, behind all better ones.
      - These are C(diffie-hellman-group1-sha1), C(diffie-hellman-group14-sha1),
        C(diffie-hellman-group-exchange-sha1), the host keys C(ssh-rsa) and C(ssh-dss), CBC ciphers, and MACs of SHA-1
        and MD5.
      - A host key of fewer than 1024 bits, or another one than before, is an error all the same.
    type: bool
  command_line:
    description:
      - Whether to use the command line that a PDU of AOS 3 has beside its menus, reached by C(-c) behind the password.
        It switches many outlets in the time in which the menus switch one.
      - V(true) asks for it at once, so that there is one login. V(false) stays in the menus.
      - Without it, a login by telnet that finds the menus of AOS 3 and has several outlets to switch, but not all, logs
        out and in again for the command line. It stays there if that shows the same outlets, and goes back otherwise.
      - Firmware that does not know it counts a bad login; three of them lock a PDU for two minutes.
    type: bool
  username:
    description: User name of O(host).
    type: str
  password:
    description: Password of O(host). With SNMP version 3, the passphrase that the user is authenticated by.
    type: str
  snmp_version:
    description: Version of SNMP. Default is V(1).
    type: str
    choices: ["1", 2c, "3"]
  community:
    description:
      - Community that may read and write, for SNMP versions V(1) and V(2c).
      - It reaches the SNMP commands by a file that only their user can read, for as long as they run, and a fence agent
        by its standard input. What arguments a fence agent starts its own programs with is up to the agent;
        C(fence_apc_snmp) shows the community to everybody on the machine, C(fence_ipmilan) the password until ipmitool
        has hidden it.
    type: str
  auth_protocol:
    description: How O(password) authenticates with SNMP version 3. Default is V(SHA).
    type: str
  privacy_password:
    description: Passphrase that encrypts, with SNMP version 3. Without one nothing is encrypted.
    type: str
  privacy_protocol:
    description: How O(privacy_password) encrypts. Default is V(AES).
    type: str
  agent:
    description:
      - Name of the fence agent, like V(fence_apc), or its path (driver V(fence)).
      - An agent that switches one machine, like V(fence_ipmilan), has one outlet, by any name. Several are refused,
        unless O(agent_options) has C(port_as_ip=1), with which each outlet is the address of a machine.
    type: str
  agent_options:
    description:
      - More options of the fence agent, as its C(-o metadata) names them. It gets them by its standard input, with the
        credentials.
      - They are not secret; O(password), O(community) and O(privacy_password) are.
    type: dict
  script:
    description:
      - Path of the script (driver V(command)), called as C(SCRIPT HOST OUTLET MODE), with mode 1 for on, 2 for off,
        9 for status.
      - It ends with 0 when it did what was asked. For mode 9 the last word of its output is V(on) or V(off); with
        V(off) it may end with 2. Credentials are on its standard input, each a line like C(password=…).
    type: path
  outlets:
    description:
      - Outlets by number.
      - For O(state=status) they may be left out, or be V(all). Without a list of its own (driver V(command), and some
        fence agents) these are the outlets that feed boards, and with O(host) they must be named.
    type: list
    elements: str
  state:
    description:
      - What the outlets are to be.
      - V(cycled) is off, read back, and on, read back. An outlet that was off is on afterwards.
      - V(status) changes nothing.
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
  timeout:
    description: Seconds after which the module gives up, waiting for the PDU's other users included.
    type: float
    default: 60
  config:
    description: The proxy node's configuration, written by role P(hetero.compute.tftp_proxy#role).
    type: path
    default: /etc/hetero/proxy.json
"""

EXAMPLES = r"""
- name: Cut and restore the power of two boards
  hetero.compute.pdu_power:
    pdu: pdu-a
    outlets: [5, 6]
    state: cycled

- name: See what is on
  hetero.compute.pdu_power:
    pdu: pdu-a
  register: power

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
    V(command) or V(fake).
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

from ..module_utils.change import Change
from ..module_utils.deadline import Deadline
from ..module_utils.errors import BadInput
from ..module_utils.module import run
from ..module_utils.power.outlets import OutletsFailed, own_run_folder, session, set_outlets
from ..module_utils.proxy_node.config import pdu, read_config
from ..module_utils.spec import ArgumentSpec

SECRETS = ("username", "password", "community", "privacy_password")
SETTINGS = (
    "host",
    "port",
    "driver",
    "transport",
    "host_key",
    "legacy_ssh",
    "command_line",
    "snmp_version",
    "auth_protocol",
    "privacy_protocol",
    "agent",
    "agent_options",
    "script",
)
SPEC = ArgumentSpec(
    dict(
        pdu=dict(type="str"),
        host=dict(type="str"),
        port=dict(type="int"),
        driver=dict(type="str", choices=["apc", "command", "fake", "fence", "snmp"]),
        transport=dict(type="str", choices=["telnet", "ssh"]),
        host_key=dict(type="str", no_log=False),
        legacy_ssh=dict(type="bool"),
        command_line=dict(type="bool"),
        username=dict(type="str"),
        password=dict(type="str", no_log=True),
        snmp_version=dict(type="str", choices=["1", "2c", "3"]),
        community=dict(type="str", no_log=True),
        auth_protocol=dict(type="str"),
        privacy_password=dict(type="str", no_log=True),
        privacy_protocol=dict(type="str"),
        agent=dict(type="str"),
        agent_options=dict(type="dict"),
        script=dict(type="path"),
        outlets=dict(type="list", elements="str"),
        state=dict(type="str", choices=["on", "off", "cycled", "status"], default="status"),
        verify=dict(type="bool", default=True),
        timeout=dict(type="float", default=60),
        config=dict(type="path", default="/etc/hetero/proxy.json"),
    ),
    required_one_of=[("pdu", "host")],
    mutually_exclusive=[("pdu", option) for option in SETTINGS + SECRETS],
    required_if=[("state", state, ("outlets",)) for state in ("on", "off", "cycled")]
    + [("driver", "fence", ("agent",)), ("driver", "command", ("script",))],
)


def find(params):
    """(name, settings, secrets, run folder) of the PDU."""
    if params["pdu"] is not None:
        config = read_config(params["config"])
        return (params["pdu"], *pdu(config, params["pdu"]), config["run_folder"])
    settings = {option: params[option] for option in SETTINGS if params[option] is not None}
    outlets = [outlet for outlet in params["outlets"] or () if outlet != "all"]
    secrets = {option: params[option] for option in SECRETS}
    return params["host"], dict(settings, path=params["host"], outlets=outlets), secrets, own_run_folder()


def tell(opened, outlets):
    """The state of outlets (all, where none are named)."""
    status = opened.status()
    if not outlets or "all" in outlets:
        outlets = list(status)
    missing = [outlet for outlet in outlets if outlet not in status]
    if missing:
        raise BadInput(f"no outlet {', '.join(missing)} (it has {', '.join(status)})", opened.name, "correct outlets")
    return {outlet: dict(before=status[outlet], after=status[outlet], seconds=0.0) for outlet in outlets}


def work(params, check):
    name, settings, secrets, run_folder = find(params)
    state, change, deadline, failed = params["state"], Change(check), Deadline(params["timeout"]), {}
    with change.step("session"), session(name, settings, secrets, deadline, run_folder) as opened:
        try:
            if state == "status":
                outlets = tell(opened, params["outlets"])
            else:
                wanted = dict.fromkeys(params["outlets"], state)
                outlets = set_outlets(opened, wanted, deadline, check=check, verify=params["verify"])
        except OutletsFailed as error:
            failed = dict(failed=True, msg=str(error), failure=error.failure)
            outlets = error.results
            for outlet, reason in error.errors.items():
                seen = dict(before=error.before.get(outlet), after=reason.facts.get("seen"), seconds=None)
                outlets[outlet] = dict(seen, error=str(reason))
        dialect = opened.dialect
    for outlet, seen in outlets.items():
        after = seen["after"]
        if "error" in seen:
            after = after or seen["before"]
        elif after is None:
            after = f"{state}, not read back"
        elif state == "cycled" and seen["before"] == "on":
            after = "on, cycled"
        change.note(f"{name} outlet {outlet}", dict(power=seen["before"]), dict(power=after))
    key = ("pinned" if settings.get("host_key") else "first seen") if settings.get("transport") == "ssh" else None
    return dict(change.result, outlets=outlets, dialect=dialect, host_key=key, **failed)


def main():
    run(AnsibleModule(**SPEC.kwargs), work)


if __name__ == "__main__":
    main()
