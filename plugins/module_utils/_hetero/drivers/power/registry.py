# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The power drivers by name. The imports are static because Ansible ships only what it sees imported."""

from __future__ import annotations

from .apc import Apc
from .driver import PowerDriver
from .fake import Fake
from .fence import Fence
from .http import Http
from .ipmi import Ipmi
from .redfish import Redfish
from .script import Script
from .snmp import Snmp
from .uhubctl import Uhubctl

DRIVERS: dict[str, type[PowerDriver]] = {
    "apc": Apc,
    "command": Script,
    "fake": Fake,
    "fence": Fence,
    "http": Http,
    "ipmi": Ipmi,
    "redfish": Redfish,
    "snmp": Snmp,
    "uhubctl": Uhubctl,
}
