# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What role tftp_proxy is about to make of a machine, as the checks before it (preflight.py) are told it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...site.proxy_config import CONFIG, DRIVERS_FOLDER


@dataclass
class Plan:
    """What the role is about to set up; the fields are the options of module proxy_check_info.

    Values are as somebody wrote them, so those of dicts may be of any type (entries_check.py).

    :param wiring: option `boards`.
    :param drivers: files of a site's own drivers, each with `path` and `text`.
    """

    server: str
    interface: str = ""
    tftp_root: str = "/tftpboot"
    state_folder: str = "/var/lib/hetero"
    roots_overcommit: float = 1.0
    root_gb: int = 8
    dhcp: bool = False
    boot_http: bool = False
    boot_http_port: int = 80
    exports: str = "auto"
    config: str = CONFIG
    boards_text: str = ""
    boards_source: str = "boards file"
    ram_images: dict[str, Any] = field(default_factory=dict)
    pdus: dict[str, Any] = field(default_factory=dict)
    credentials_for: list[str] = field(default_factory=list)
    wiring: dict[str, Any] = field(default_factory=dict)
    packages: list[str] = field(default_factory=list)
    credential_keys: dict[str, list[str]] | None = None
    wipe: dict[str, Any] = field(default_factory=dict)
    images: list[dict[str, Any]] = field(default_factory=list)
    reap_interval: str | None = None
    check_interval: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    dhcp_router: str = ""
    dhcp_ra_prefix: str = ""
    boards_interface_ra: bool = False
    timeout: float = 15
    boot_drivers: list[str] = field(default_factory=list)
    power_drivers: list[str] = field(default_factory=list)
    drivers: list[dict[str, Any]] = field(default_factory=list)
    drivers_folder: str = DRIVERS_FOLDER
    mistakes: list[dict[str, Any]] = field(default_factory=list)
