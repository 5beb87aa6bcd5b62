# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Argument specs that merge together with their constraints, so that the board modules share one set of options."""

from __future__ import annotations

from typing import Any, Mapping

CONSTRAINTS = ("required_if", "required_by", "required_together", "required_one_of", "mutually_exclusive")


class ArgumentSpec:
    """Options of a module and the constraints between them; `a + b` holds both."""

    def __init__(self, options: Mapping[str, dict[str, Any]] | None = None, **constraints: Any) -> None:
        unknown = set(constraints) - set(CONSTRAINTS)
        if unknown:
            raise TypeError(f"unknown constraints: {sorted(unknown)}")
        self.options: dict[str, dict[str, Any]] = dict(options or {})
        self.constraints = constraints

    def __add__(self, other: ArgumentSpec) -> ArgumentSpec:
        merged = ArgumentSpec({**self.options, **other.options})
        for name in CONSTRAINTS:
            parts = [part.constraints[name] for part in (self, other) if part.constraints.get(name)]
            if not parts:
                continue
            if name == "required_by":
                merged.constraints[name] = {key: value for part in parts for key, value in part.items()}
            else:
                merged.constraints[name] = [rule for part in parts for rule in part]
        return merged

    @property
    def kwargs(self) -> dict[str, Any]:
        """Keyword arguments for AnsibleModule."""
        return dict(self.constraints, argument_spec=self.options, supports_check_mode=True)


#: Options of every module that works on a proxy node's boards (doc fragment `hetero.compute.boards`).
PROXY = ArgumentSpec(
    dict(
        boards_file=dict(type="path", default="/tftpboot/tilera_boards"),
        config=dict(type="path", default="/etc/hetero/proxy.json"),
        state_db=dict(type="path", default="/var/lib/hetero/state.db"),
    )
)
#: Option of the modules that change or end what a claim has (doc fragment `hetero.compute.created`).
CREATED = ArgumentSpec(dict(created=dict(type="list", elements="float", default=[])))
#: Options of the modules that look at a machine before its set-up (doc fragment `hetero.compute.planned`).
PLANNED = ArgumentSpec(
    dict(
        packages=dict(type="list", elements="str", default=[]),
        images=dict(type="list", elements="dict", default=[]),
        reap_interval=dict(type="str"),
        settings=dict(type="dict", default={}),
        mistakes=dict(type="list", elements="dict", default=[]),
    )
)
#: Options that describe a PDU which is in no configuration: the secret ones, then the others.
PDU_SECRETS = ("username", "password", "community", "privacy_password")
PDU_SETTINGS = (
    "host",
    "port",
    "driver",
    "transport",
    "host_key",
    "legacy_ssh",
    "command_line",
    "snmp_version",
    "snmp_table",
    "auth_protocol",
    "privacy_protocol",
    "agent",
    "agent_options",
    "script",
    "api",
    "api_table",
    "tls",
    "tls_ca",
    "tls_verify",
    "boot_once",
    "cipher_suite",
    "inrush",
    "banks",
)
#: Options of the modules that speak with a PDU (doc fragment `hetero.compute.pdu`).
PDU = ArgumentSpec(
    dict(
        pdu=dict(type="str"),
        host=dict(type="str"),
        port=dict(type="int"),
        driver=dict(type="str"),
        transport=dict(type="str", choices=["telnet", "ssh"]),
        host_key=dict(type="str", no_log=False),
        legacy_ssh=dict(type="bool"),
        command_line=dict(type="bool"),
        username=dict(type="str"),
        password=dict(type="str", no_log=True),
        snmp_version=dict(type="str", choices=["1", "2c", "3"]),
        snmp_table=dict(type="dict"),
        community=dict(type="str", no_log=True),
        auth_protocol=dict(type="str"),
        privacy_password=dict(type="str", no_log=True),
        privacy_protocol=dict(type="str"),
        agent=dict(type="str"),
        agent_options=dict(type="dict"),
        script=dict(type="path"),
        api=dict(type="str", choices=["dli", "home_assistant", "netio", "shelly1", "shelly2", "tasmota"]),
        api_table=dict(type="dict"),
        tls=dict(type="bool"),
        tls_ca=dict(type="path"),
        tls_verify=dict(type="bool"),
        boot_once=dict(type="str", choices=["pxe", "uefi_http"]),
        cipher_suite=dict(type="int"),
        inrush=dict(type="int"),
        banks=dict(type="list", elements="str"),
        outlets=dict(type="list", elements="str"),
        timeout=dict(type="float", default=60),
        config=dict(type="path", default="/etc/hetero/proxy.json"),
    ),
    required_one_of=[("pdu", "host")],
    mutually_exclusive=[("pdu", option) for option in PDU_SETTINGS + PDU_SECRETS],
    required_if=[("driver", "fence", ("agent",)), ("driver", "command", ("script",))],
)
#: Options of every module that works on a compute host (doc fragment `hetero.compute.host`).
HOST = ArgumentSpec(dict(config=dict(type="path", default="/etc/hetero/host.json")))
#: Options of the modules that change or end claims on a proxy node: PROXY's and CREATED's.
PROXY_CLAIMS = PROXY + CREATED
#: Options of the modules that give GPUs to containers (doc fragment `hetero.compute.gpu_host`), beside HOST's.
GPU_HOST = HOST + ArgumentSpec(
    dict(lxcpath=dict(type="path"), overrides=dict(type="dict"), state_db=dict(type="path")),
)
#: Options of the modules that look into device cgroups (doc fragment `hetero.compute.cgroup`).
CGROUP = ArgumentSpec(
    dict(
        cgroup=dict(type="path"),
        container=dict(type="str"),
        lxcpath=dict(type="path", default="/var/lib/lxc"),
        rules=dict(type="list", elements="str", required=True),
    ),
    required_one_of=[("cgroup", "container")],
    mutually_exclusive=[("cgroup", "container")],
)
#: Options of the modules that provide instances, whatever these are (doc fragment `hetero.compute.instance`).
INSTANCE = ArgumentSpec(
    dict(
        instance=dict(type="str", required=True),
        state=dict(
            type="str",
            choices=["present", "running", "stopped", "rebooted", "rebuilt", "migrated", "extended", "absent"],
            default="running",
        ),
        owner=dict(type="str"),
        flavor=dict(type="dict"),
        image=dict(type="str"),
        ssh_public_key=dict(type="str", no_log=False),
        user_data=dict(type="str", no_log=True),
        count=dict(type="int", default=1),
        numbers=dict(type="list", elements="int", default=[]),
        partial=dict(type="bool", default=False),
        lease_hours=dict(type="float"),
        how=dict(type="str", choices=["auto", "soft", "hard"], default="auto"),
        soft_timeout=dict(type="float", default=30),
        fresh=dict(type="bool", default=False),
        timeout=dict(type="float", default=300),
        background=dict(type="bool", default=False),
    ),
    required_if=[
        ("state", "present", ("owner", "flavor", "ssh_public_key")),
        ("state", "extended", ("lease_hours",)),
    ],
    required_by={"flavor": ("owner", "ssh_public_key")},
)
#: Values of `state` whose work ends at once, so that no play follows it.
QUICK = ("present", "extended")
