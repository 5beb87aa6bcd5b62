# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proxy node's configuration file and the PDUs' credentials beside it, as role tftp_proxy writes them.

JSON because the system's Python has no YAML. Which boards there are is the boards file's business.
"""

from __future__ import annotations

import copy
import os

from ..errors import BadInput
from ..json_file import read_object

#: Where role tftp_proxy writes it.
CONFIG = "/etc/hetero/proxy.json"
SET_UP = "run the set-up playbook hetero.compute.proxy on this node"
#: What proxy.json may leave out.
DEFAULTS = {
    "tftp_root": "/tftpboot",
    "state_folder": "/var/lib/hetero",
    "run_folder": "/run/hetero",
    "exports": "ganesha",
    "dhcp": False,
    "interface": "",
    "network": "",
    "pinned": False,
    "credentials": "/etc/hetero/credentials.json",
    "roots_overcommit": 1.0,
    "root_gb": 8,
    "soft_reboot": True,
    "tile_monitor": "/usr/local/TileraMDE/bin/tile-monitor",
    "pdus": {},
    "boards": {},
    "ram_images": {},
    "wipe": {},
}


def read_config(path):
    """The configuration, with defaults for what it leaves out; BadInput where it is missing or wrong."""
    return dict(copy.deepcopy(DEFAULTS), **read_object(path, SET_UP))


def tenants_paths(config):
    """Paths that tenants write, or in which files of ours hold what boards said: no image is taken from there."""
    consoles = [wire["console"] for wire in config["boards"].values() if wire.get("console")]
    return [config["state_folder"], config["run_folder"], config["tftp_root"], *consoles]


def files_of(path):
    """A module's `config`, `boards_file` and `state_db`, for a command that knows only the configuration."""
    config = read_config(path)
    return dict(
        config=path,
        boards_file=os.path.join(config["tftp_root"], "tilera_boards"),
        state_db=os.path.join(config["state_folder"], "state.db"),
    )


def pdu(config, name):
    """(settings, secrets) of a PDU; without a credentials file there are none. BadInput names the PDUs there are."""
    if name not in config["pdus"]:
        known = ", ".join(sorted(config["pdus"])) or "none"
        raise BadInput(f"no such PDU (known: {known})", name, SET_UP)
    # A driver that cannot ask the PDU which outlets it has (fence, command) reads those that feed boards.
    wired = [str(wire["outlet"]) for wire in config["boards"].values() if wire.get("pdu") == name and "outlet" in wire]
    settings = dict({"outlets": wired} if wired else {}, **config["pdus"][name])
    if settings.get("transport") == "ssh":
        settings.setdefault("known_hosts", os.path.join(config["state_folder"], "pdu_known_hosts"))
    path = config["credentials"]
    return settings, read_object(path, SET_UP).get(name, {}) if os.path.exists(path) else {}
