# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of the modules that speak with a PDU."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
requirements:
  - pexpect and a C(telnet) or C(ssh) client (driver V(apc))
  - net-snmp's commands, Debian package C(snmp) (driver V(snmp))
  - the fence agent (driver V(fence))
  - the library requests, Debian package C(python3-requests) (driver V(http))
  - the library sushy, Debian package C(python3-sushy) (driver V(redfish))
  - C(ipmitool), Debian package of that name (driver V(ipmi))
  - C(uhubctl), Debian package of that name (driver V(uhubctl))
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
      - V(snmp) is switched PDUs by SNMP, and the ports of switches with PoE. Which table of outlets one has is found
        out - APC's rPDU2, rPDU, MasterSwitch Plus and MasterSwitch; Raritan PX2 and PX3 and Server Technology PRO3X;
        Server Technology's Sentry3 and Sentry4; Eaton ePDU; CyberPower ePDU and ePDU2; Vertiv and Geist; Gude Expert
        Power Control 1104, 1105, 1202, 1292, 8221, 8226 and 8316; RFC 3621's of PoE. For others there is
        O(snmp_table).
      - With V(snmp), an outlet of the first unit (switch, group of ports, linked PDU, cord) is its number, and one of
        another is V(UNIT:NUMBER), such as V(2:5), or V(1.2:5) with Sentry's unit and cord, in quotes. It has no other
        name; M(hetero.compute.pdu_info) shows it. A port with PoE is V(on) where it gives power, V(off) where it is
        disabled, and C(searching), which is neither, where it would give power to whatever asks for it. Reading does
        not wait for others.
      - V(fence) is any PDU that a fence agent knows; O(agent) names it. It is run for each question.
      - V(http) is plugs and PDUs with an HTTP interface. O(api) says which they have, or O(api_table) describes it.
      - V(redfish) is a machine with a BMC that speaks Redfish, and V(ipmi) one with a BMC that speaks IPMI 2.0.
        O(timeout) limits how long the machine may take to show its new state. An outlet of V(redfish) is a system, by
        the last part of its address (V(System.Embedded.1), V(Self), V(1)), also where there is only one;
        M(hetero.compute.pdu_info) shows them. The only outlet of V(ipmi) is V(1).
      - V(command) is a script of your own, O(script). In a proxy's configuration its PDU needs no host, and the script
        gets an empty one.
      - V(uhubctl) is boards that USB feeds, at hubs of the proxy node itself that switch each port. An outlet is
        V(HUB:PORT), such as V(1-1.4:2), as C(uhubctl) lists them. It has no host, for which O(host=localhost) stands
        where O(pdu) names none. A hub with USB 3 is two there, of which either names the port.
      - V(fake) is a file that behaves as a PDU, for tests.
      - Any other, C(NAME), is a driver of the site's own, C(NAME.py) or the table C(NAME.json) in
        C(/etc/hetero/power_drivers), where role P(hetero.compute.tftp_proxy#role) puts it on a proxy node. The guide
        R(Writing a power driver,ansible_collections.hetero.compute.docsite.guide_power_driver) says how one is written.
      - Default is V(apc).
    type: str
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
        Until the node starts anew, later logins begin there, and go back to the menus where it shows others.
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
  snmp_table:
    description:
      - How a device of your own is read and switched with driver V(snmp), where it has none of the tables that are
        known.
      - C(state) is the OID of the column of states, and C(is_on) and C(is_off) are lists of the numbers there that mean
        on and off, C([1]) and C([2]) without. All other numbers are neither.
      - C(on) and C(off) are orders, each with the OID of a C(column) and the C(value) that an outlet's row in it is set
        to.
      - C(first) is what stands before the outlet's number in the indexes of the first unit, such as C("1"). Without,
        outlets with more than a number are all named V(UNIT:NUMBER).
    type: dict
    version_added: 0.1.0
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
  api:
    description:
      - The interface of a device with driver V(http).
      - V(shelly1) and V(shelly2) are Shelly's of the first, and of the second and later generations. Their relays are
        counted from 0.
      - V(tasmota) is devices with Tasmota, V(netio) NETIO's JSON API, V(dli) Digital Loggers' REST API. Their outlets
        are counted from 1.
      - V(home_assistant) is a Home Assistant, which reaches nearly any plug. An outlet is an entity, such as
        V(switch.board3); O(password) is a long-lived access token.
      - pdudaemon has no such interface, because it does not tell whether an outlet is on.
    type: str
    choices: [dli, home_assistant, netio, shelly1, shelly2, tasmota]
  api_table:
    description:
      - How a device of your own is read and switched with driver V(http), in place of O(api).
      - C(read), C(on) and C(off) are requests, each with a C(path), and where they differ from these a C(method)
        (V(GET), V(POST), V(PUT); C(GET)) and a C(body). C({outlet}) in a path or body is the outlet's name, and
        C({index}) its number less one.
      - C(state) is the JSON pointer of the state in the answer to C(read), and C(is_on) and C(is_off) are lists of its
        values, C([true]) and C([false]) without.
      - C(auth) is V(basic), V(digest), V(bearer), V(query) or V(none), and C(headers) more headers.
    type: dict
  tls:
    description:
      - Whether a device is asked by HTTPS. Default is V(false) with driver V(http), as most plugs have none, and
        V(true) with driver V(redfish).
    type: bool
  tls_ca:
    description: Path, on the machine that asks, of the certificates by which the device's own is checked.
    type: path
  tls_verify:
    description: Whether the device's certificate is checked. Default is V(true).
    type: bool
  boot_once:
    description:
      - With driver V(redfish), what the machine boots by each time that it is switched on, this once - V(pxe), or
        V(uefi_http). Without, its firmware's boot order counts.
    type: str
    choices: [pxe, uefi_http]
    version_added: 0.1.0
  cipher_suite:
    description:
      - With driver V(ipmi), the cipher suite, V(17), or V(3) with older BMCs. Without, C(ipmitool) asks for the list,
        which takes seconds more where the BMC has none.
    type: int
    version_added: 0.1.0
  inrush:
    description:
      - Most outlets that are switched on within one second, so that the power supplies that charge at the same time
        trip no breaker. Also counts what other runs on the same machine switched on, by any name and port of the same
        host.
      - Without it all outlets of a run are switched on at once. An outlet that is switched off waits for nothing.
    type: int
    version_added: 0.1.0
  banks:
    description:
      - Which outlets each of the PDU's own breakers feeds, as V(1-8) or V(1,3,5). O(inrush) then counts for each of
        these banks by itself, and for all outlets that are in none.
    type: list
    elements: str
    version_added: 0.1.0
  outlets:
    description:
      - Outlets by number.
      - Where their states are asked for, they may be left out, or be V(all). Without a list of its own (drivers
        V(command), V(http) and V(uhubctl), and some fence agents) these are the outlets that feed boards, and with
        O(host) they must be named.
    type: list
    elements: str
  timeout:
    description: Seconds after which the module gives up, waiting for the PDU's other users included.
    type: float
    default: 60
  config:
    description: The proxy node's configuration, written by role P(hetero.compute.tftp_proxy#role).
    type: path
    default: /etc/hetero/proxy.json
"""
