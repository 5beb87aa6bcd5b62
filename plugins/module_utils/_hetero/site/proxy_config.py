# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proxy node's configuration file, and beside it the PDUs' credentials, as role tftp_proxy writes them.

They are JSON because the system's Python has no YAML. The boards file says which boards there are.
"""

from __future__ import annotations

import os
from typing import Any, Mapping

from ..core.errors import BadInput, HeteroError
from ..core.json_file import any_number, read_object
from ..core.plays import play
from ..core.typed_keys import (
    ADDRESS,
    FLAG,
    LONG_TEXT,
    NETWORK,
    NUMBERED,
    OBJECT,
    PATH,
    SECRET,
    TEXT,
    Key,
    Kind,
    ListOf,
    Record,
    TableOf,
    WrongFile,
    is_text,
    number,
    read_all,
    read_file,
    whole,
)

#: Options that are secrets. The user name is none.
SECRETS = ("password", "community", "privacy_password")

#: Where role tftp_proxy writes the configuration.
CONFIG = "/etc/hetero/proxy.json"
SET_UP = f"run {play('proxy')}"

_SECONDS = Key(number(0, 86400))
#: How driver `fake` plays a board's boot (drivers/boot/fake.py).
_PLAYED = Record(
    {
        **dict.fromkeys(("tftp", "nfs", "running"), _SECONDS),
        "stall": Key(TEXT),
        "stalls": Key(whole()),
        "feeds": Key(ListOf(whole())),
        "soft": Key(TEXT),
        "key": Key(LONG_TEXT),
        "proxy": Key(TEXT),
        **dict.fromkeys(("taken", "unproven", "wrong_key"), Key(FLAG)),
        **dict.fromkeys(("strangers", "thief"), Key(ListOf(LONG_TEXT))),
    }
)


def _disks(value: Any) -> Any:
    names = [value] if isinstance(value, str) else value
    right = isinstance(names, list) and names and all(is_text(name) and name for name in names)
    return value if right or value == [] else None


#: One entry of `pdus`. The driver itself knows which words it takes.
PDU = Record(
    {
        "driver": Key(TEXT),
        "host": Key(TEXT),
        "port": Key(whole(1, 65535)),
        "transport": Key(TEXT),
        "host_key": Key(LONG_TEXT),
        "known_hosts": Key(PATH),
        "legacy_ssh": Key(FLAG),
        "command_line": Key(FLAG),
        "snmp_version": Key(NUMBERED),
        "auth_protocol": Key(TEXT),
        "privacy_protocol": Key(TEXT),
        "agent": Key(TEXT),
        "agent_options": Key(OBJECT),
        "script": Key(PATH),
        "outlets": Key(ListOf(NUMBERED)),
        "path": Key(PATH),
    }
)
#: One entry of `boards`: what the boards file does not say.
WIRE = Record(
    {
        "pdu": Key(TEXT),
        "outlet": Key(NUMBERED),
        "driver": Key(TEXT),
        "console": Key(PATH),
        "console_command": Key(LONG_TEXT),
        "cmdline": Key(LONG_TEXT),
        "kernel_source": Key(TEXT),
        "address": Key(ADDRESS),
        "firewall": Key(TEXT),
        "disk": Key(Kind("a device (/dev/sda), or a list of such", _disks)),
        "accept_unwiped": Key(ListOf(TEXT)),
        "ram_key": Key(TEXT),
        "fake": Key(_PLAYED),
    }
)
#: The contents of proxy.json.
FILE = Record(
    {
        "server": Key(ADDRESS, ""),
        "tftp_root": Key(PATH, "/tftpboot"),
        "state_folder": Key(PATH, "/var/lib/hetero"),
        "run_folder": Key(PATH, "/run/hetero"),
        "exports": Key(TEXT, "ganesha"),
        "dhcp": Key(FLAG, False),
        "interface": Key(TEXT, ""),
        "network": Key(NETWORK, ""),
        "pinned": Key(FLAG, False),
        "credentials": Key(PATH, "/etc/hetero/credentials.json"),
        "roots_overcommit": Key(number(1, 10**6), 1.0),
        "root_gb": Key(whole(1, 10**6), 8),
        "soft_reboot": Key(FLAG, True),
        "tile_monitor": Key(PATH, "/usr/local/TileraMDE/bin/tile-monitor"),
        "pdus": Key(TableOf(PDU), {}),
        "boards": Key(TableOf(WIRE), {}),
        "ram_images": Key(TableOf(TEXT), {}),
        "wipe": Key(Record({"method": Key(TEXT), "verify": Key(TEXT), "samples": Key(whole())}), {}),
    }
)
#: The value of each setting that proxy.json leaves out.
DEFAULTS = FILE.defaults()
#: credentials.json: PDU → option → secret, which no mistake shows. Filter credential_mistakes looks first.
_CREDENTIAL = Record(dict.fromkeys(("username", *SECRETS), Key(SECRET)), secret=True, others=SECRET)
CREDENTIALS = TableOf(_CREDENTIAL, secret=True)


def read_config(path: str) -> dict[str, Any]:
    """Return the configuration with its defaults; raise BadInput if it is missing or wrong."""
    return read_file(path, FILE, SET_UP)


def tenants_paths(config: Mapping[str, Any]) -> list[str]:
    """Return paths that tenants write to, or whose files hold what boards said. No image is imported from there."""
    consoles = [wire["console"] for wire in config["boards"].values() if wire.get("console")]
    return [config["state_folder"], config["run_folder"], config["tftp_root"], *consoles]


def files_of(path: str) -> dict[str, str]:
    """Return the parameters `config`, `boards_file` and `state_db` for a command that only knows the configuration."""
    config = read_config(path)
    return dict(
        config=path,
        boards_file=os.path.join(config["tftp_root"], "tilera_boards"),
        state_db=os.path.join(config["state_folder"], "state.db"),
    )


def pdu(config: Mapping[str, Any], name: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return (settings, secrets) of a PDU; without a credentials file it has no secrets.

    BadInput names the known PDUs.
    """
    if name not in config["pdus"]:
        known = ", ".join(sorted(config["pdus"])) or "none"
        raise BadInput(f"no such PDU (known: {known})", name, SET_UP)
    # A driver that cannot ask the PDU which outlets it has (fence, command) takes those that feed boards.
    wired = [wire["outlet"] for wire in config["boards"].values() if wire.get("pdu") == name and "outlet" in wire]
    settings = dict({"outlets": wired} if wired else {}, **config["pdus"][name])
    if settings.get("transport") == "ssh":
        settings.setdefault("known_hosts", os.path.join(config["state_folder"], "pdu_known_hosts"))
    if settings.get("driver") == "fake" and "path" not in settings:
        raise BadInput("names no path", name, "name the file that plays it (path), or another driver")
    return settings, _secrets(config["credentials"], name)


def _secrets(path: str, name: str) -> dict[str, str]:
    """Return the secrets of one PDU. Mistakes in those of another do not matter."""
    if not os.path.exists(path):
        return {}
    mistakes: list[HeteroError] = []
    given = read_object(path, SET_UP, any_number)
    said = read_all(CREDENTIALS, {name: given[name]} if name in given else {}, "", mistakes)
    if mistakes:
        raise WrongFile(path, mistakes, SET_UP)
    return said.get(name, {})
