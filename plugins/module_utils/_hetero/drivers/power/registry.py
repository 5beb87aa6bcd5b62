# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The power drivers by name. The imports are static because Ansible ships only what it sees imported.

Drivers that a site wrote itself lie on the node, where role tftp_proxy puts them, and are loaded from there by name.
"""

from __future__ import annotations

import os

from ...core.errors import BadInput
from ...core.own_code import names_in, own_class
from .apc import Apc
from .driver import PowerDriver
from .fake import Fake
from .fence import Fence
from .http import Http
from .ipmi import Ipmi
from .own_drivers import guarded
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
#: Where role tftp_proxy puts the files of variable `tftp_proxy_power_drivers`.
OWN_FOLDER = "/etc/hetero/power_drivers"


def driver_of(name: str, pdu: str) -> type[PowerDriver]:
    """Return a driver: of the collection, else of the site.

    :param pdu: the PDU that names it, for the error.
    :raises BadInput: there is no such driver, or the site's file is none.
    """
    if name in DRIVERS:
        return DRIVERS[name]
    own = names_in(OWN_FOLDER)
    if name in own:
        own_driver = own_class(OWN_FOLDER, name, PowerDriver, __package__ or "")  # type: ignore[type-abstract]
        return guarded(own_driver, os.path.join(OWN_FOLDER, f"{name}.py"))
    known = sorted({*DRIVERS, *own})
    raise BadInput(f"no such power driver '{name}' (known: {', '.join(known)})", pdu, "correct its driver")
