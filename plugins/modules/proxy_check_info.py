#!/usr/bin/python
# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a machine can become a proxy node, and whether one serves its boards. Looks, and changes nothing."""

from __future__ import annotations

DOCUMENTATION = r"""
module: proxy_check_info
short_description: Say what is wrong with a proxy node
version_added: 0.1.0
description:
  - With O(stage=machine), returns at once all that keeps a machine, a boards file or a wiring plan from becoming a
    proxy node.
  - With O(stage=services), asks the node's TFTP, HTTP, NFS and DHCP over its own address, and fails where one does not
    serve what it must or gives what it must not.
  - Changes nothing. Used by role P(hetero.compute.tftp_proxy#role).
extends_documentation_fragment:
  - hetero.compute.attributes
  - hetero.compute.planned
notes:
  - Its former name, C(hetero.compute.proxy_check), leads here.
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
options:
  stage:
    description: V(machine) before the set-up, V(services) after it.
    type: str
    choices: [machine, services]
    default: machine
  server:
    description: IPv4 address of this machine that boards ask.
    type: str
    required: true
  interface:
    description: Interface that must hold O(server); empty for any.
    type: str
    default: ""
  tftp_root:
    description: Folder that TFTP serves.
    type: path
    default: /tftpboot
  state_folder:
    description: Folder of images, roots and the state database.
    type: path
    default: /var/lib/hetero
  roots_overcommit:
    description: How many times the space for roots may be promised to them.
    type: float
    default: 1
  root_gb:
    description: Size in GiB of a root whose flavor and board name none.
    type: int
    default: 8
  exports:
    description:
      - The NFS server, V(ganesha) or V(nfsd), the kernel's.
      - V(auto) is what the node has been set up with; on a new node V(nfsd).
      - By V(ganesha) root on a board reads and writes all files of the node. A note says so.
    type: str
    choices: [auto, ganesha, nfsd]
    default: auto
  dhcp:
    description: Whether DHCP is to be served.
    type: bool
    default: false
  boot_http:
    description: Whether nginx is to give boards their kernels by HTTP.
    type: bool
    default: false
    version_added: 0.2.0
  boot_http_port:
    description: Port of O(server) for it.
    type: int
    default: 80
    version_added: 0.2.0
  boards_text:
    description: The text of the boards file.
    type: str
    default: ""
  boards_source:
    description: The name of the boards file in defects.
    type: str
    default: boards file
  pdus:
    description: PDUs by name, with C(driver) and C(host).
    type: dict
    default: {}
  boot_drivers:
    description: Names of boot drivers that the site wrote itself.
    type: list
    elements: str
    default: []
  power_drivers:
    description: Names of power drivers that the site wrote itself.
    type: list
    elements: str
    default: []
  credentials_for:
    description: Names of the PDUs that have credentials.
    type: list
    elements: str
    default: []
  ram_images:
    description: Name of the RAM image of each architecture; the boards with a C(disk) need one.
    type: dict
    default: {}
  boards:
    description: Wiring of the boards by id, with C(pdu), C(outlet) and C(disk).
    type: dict
    default: {}
  credential_keys:
    description: Keys of the credentials of each PDU, without their values. They are not checked if this is left out.
    type: dict
  wipe:
    description: How disks are wiped, with C(method), C(verify) and C(samples).
    type: dict
    default: {}
  check_interval:
    description: How often idle boards are checked, as a time span of systemd; empty for never.
    type: str
    default: ""
  dhcp_router:
    description: Router that boards are told of by DHCP; empty for none.
    type: str
    default: ""
  dhcp_ra_prefix:
    description: IPv6 prefix that is announced to boards; empty for none.
    type: str
    default: ""
  boards_interface_ra:
    description: Whether the node hears routers on O(interface).
    type: bool
    default: false
  drivers:
    description: Drivers that the site wrote itself, as P(hetero.compute.driver_files#lookup) returns them.
    type: list
    elements: dict
    default: []
  drivers_folder:
    description: Folder on the node that has the folders which they are installed to.
    type: path
    default: /etc/hetero
  timeout:
    description: Seconds that services may take to answer.
    type: float
    default: 15
author:
  - hetero.compute contributors (@hetero-compute)
"""

EXAMPLES = r"""
- name: Can this machine be a proxy node?
  hetero.compute.proxy_check_info:
    server: 10.0.2.254
    boards_text: "{{ lookup('ansible.builtin.file', 'tilera_boards') }}"

- name: Does it serve its boards?
  hetero.compute.proxy_check_info:
    stage: services
    server: 10.0.2.254
"""

RETURN = r"""
defects:
  description: What keeps the machine from being a proxy node, with thing, what and remedy.
  returned: failure, when O(stage=machine)
  type: list
  elements: dict
notes:
  description:
    - What is worth knowing and stops nothing. With O(stage=services) and O(interface), other machines on the network
      that offer any board an address, where O(dhcp) is true, or say that they have the address of O(server).
  returned: success
  type: list
  elements: str
check_mode:
  description: Whether this was a dry run, for a task, a role or a play.
  returned: when O(stage=machine)
  type: bool
boards:
  description: The boards of the file, with id, name, ip, mac, and whether they are C(near), in O(server)'s network.
  returned: when O(stage=machine)
  type: list
  elements: dict
interface:
  description: The interface that holds O(server).
  returned: when O(stage=machine)
  type: str
  sample: eth0
network:
  description: Address of its network.
  returned: when O(stage=machine)
  type: str
  sample: 10.0.2.0
netmask:
  description: Mask of its network.
  returned: when O(stage=machine)
  type: str
  sample: 255.255.255.0
drivers_gone:
  description: Paths of drivers that an earlier set-up installed, and that O(drivers) has no more.
  returned: when O(stage=machine)
  type: list
  elements: str
  sample: [/etc/hetero/power_drivers/acme.py]
loaders:
  description: Loaders of boot drivers that the site wrote itself, which boards may fetch.
  returned: when O(stage=machine)
  type: list
  elements: dict
  contains:
    name: {description: By what name., type: str}
    source: {description: Path of the file on the node., type: str}
    pattern: {description: The name as a regular expression., type: str}
  sample: [{name: grub.efi, source: /usr/lib/grub/grub.efi, pattern: "grub\\.efi"}]
loads:
  description: What DHCP tells boards of such drivers, by their names.
  returned: when O(stage=machine)
  type: dict
  sample: {board0: {boot_file: grub.efi, options: ['209,"grub.cfg"']}}
missing_packages:
  description: Those of O(packages), and of what O(drivers) need, that are not installed.
  returned: when O(stage=machine)
  type: list
  elements: str
nginx_idle:
  description:
    - Whether the machine has, or will have with O(boot_http), an nginx of its own that serves nobody - it does not run,
      and no site is named to it but its package's.
  returned: when O(stage=machine)
  type: bool
  version_added: 0.2.0
nfs_server:
  description: The NFS server to use, which O(exports) names or was chosen.
  returned: when O(stage=machine)
  type: str
  sample: nfsd
nfs_servers_off:
  description: Other NFS servers that the node was set up with before, which are to stop.
  returned: when O(stage=machine)
  type: list
  elements: str
  sample: [ganesha]
roots:
  description: What the roots of boards are promised, take, and could take.
  returned: when O(stage=machine)
  type: dict
  contains:
    promised: {description: Bytes that the roots may take together., type: int}
    there: {description: Bytes that there are for them., type: int}
    taken: {description: Bytes that they take., type: int}
    overcommit: {description: How many times what is there may be promised., type: float}
    sharing:
      description: Roots that an older release made on one file system.
      type: list
      elements: str
    shared_file:
      description: >-
        That file system is in use (V(kept)), or none of its roots is left (V(empty)); empty where there is none.
      type: str
  sample: {promised: 536870912000, there: 1099511627776, taken: 9437184, overcommit: 1.0, sharing: [], shared_file: ''}
exports:
  description: Pseudo paths that NFS exports.
  returned: when O(stage=services)
  type: list
  elements: str
  sample: [/tftpboot/fs_0]
seconds:
  description: Seconds for each step.
  returned: success
  type: dict
  sample: {tftp: 0.004, nfs: 0.02}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._hetero.core.argument_spec import PLANNED, ArgumentSpec
from ..module_utils._hetero.core.changes import Change
from ..module_utils._hetero.core.deadline import Deadline
from ..module_utils._hetero.core.findings import outcome
from ..module_utils._hetero.core.module import run
from ..module_utils._hetero.nodes.proxy import http_check, nfs_check, preflight, selftest
from ..module_utils._hetero.nodes.proxy.setup_plan import Plan
from ..module_utils._hetero.site.proxy_config import CONFIG, DRIVERS_FOLDER, read_config

SPEC = PLANNED + ArgumentSpec(
    dict(
        stage=dict(type="str", choices=["machine", "services"], default="machine"),
        server=dict(type="str", required=True),
        interface=dict(type="str", default=""),
        tftp_root=dict(type="path", default="/tftpboot"),
        state_folder=dict(type="path", default="/var/lib/hetero"),
        roots_overcommit=dict(type="float", default=1),
        root_gb=dict(type="int", default=8),
        exports=dict(type="str", choices=["auto", *nfs_check.SERVERS], default="auto"),
        dhcp=dict(type="bool", default=False),
        boot_http=dict(type="bool", default=False),
        boot_http_port=dict(type="int", default=80),
        boards_text=dict(type="str", default=""),
        boards_source=dict(type="str", default="boards file"),
        pdus=dict(type="dict", default={}),
        boot_drivers=dict(type="list", elements="str", default=[]),
        power_drivers=dict(type="list", elements="str", default=[]),
        credentials_for=dict(type="list", elements="str", default=[]),
        ram_images=dict(type="dict", default={}),
        boards=dict(type="dict", default={}),
        credential_keys=dict(type="dict", no_log=False),
        wipe=dict(type="dict", default={}),
        check_interval=dict(type="str", default=""),
        dhcp_router=dict(type="str", default=""),
        dhcp_ra_prefix=dict(type="str", default=""),
        boards_interface_ra=dict(type="bool", default=False),
        drivers=dict(type="list", elements="dict", default=[]),
        drivers_folder=dict(type="path", default=DRIVERS_FOLDER),
        timeout=dict(type="float", default=15),
    )
)


def machine(params, change):
    fields = {name: params[name] for name in params if name not in ("stage", "boards")}
    with change.step("machine"):
        found = preflight.look(Plan(wiring=params["boards"], **fields))
    return outcome(found, "a proxy node", dict(change.result, check_mode=change.check))


def services(params, change):
    deadline = Deadline(params["timeout"])
    with change.step("tftp"):
        selftest.check_tftp(params["server"], params["tftp_root"], deadline)
    if params["boot_http"]:
        with change.step("http"):
            http_check.check_http(params["server"], params["boot_http_port"], params["tftp_root"], deadline)
    with change.step("nfs"):
        chosen = read_config(CONFIG).exports if params["exports"] == "auto" else params["exports"]
        exports = selftest.check_nfs(params["server"], chosen, deadline)
    if params["dhcp"]:
        with change.step("dhcp"):
            selftest.check_dhcp(params["server"], params["tftp_root"], deadline)
    with change.step("network"):
        selftest.check_filter()
        interface = params["interface"]
        notes = selftest.strangers(params["server"], interface, params["dhcp"]) if interface else []
    return dict(change.result, exports=exports, notes=notes)


def main():
    module = AnsibleModule(**SPEC.kwargs)

    def work(params, check):
        result = dict(machine=machine, services=services)[params["stage"]](params, Change(check))
        for note in result.get("notes", ()):
            module.warn(note)
        return result

    run(module, work)


if __name__ == "__main__":
    main()
