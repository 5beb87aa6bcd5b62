# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The power drivers by name: those of the collection, and those of a site's own in a folder of this node.

The collection's imports are static because Ansible ships only what it sees imported.
"""

from __future__ import annotations

from typing import Any, Mapping

from ...core.errors import BadInput
from ..outside import folder as outside
from ..outside.loading import load, must_fit
from ..outside.source import POWER, Source
from . import api
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
OWN_FOLDER = outside.folder_of(POWER)
#: Setting of a table's file → the driver that asks by such a table.
BY_TABLE: dict[str, type[Http] | type[Snmp]] = {"api_table": Http, "snmp_table": Snmp}


def driver_of(name: str, pdu: str, folder: str | None = None) -> type[PowerDriver]:
    """Return the class of a driver.

    :param pdu: whose driver it is to be, for errors.
    :param folder: where a site's own lie; None for OWN_FOLDER.
    :raises BadInput: there is none of that name, or its file is wrong.
    :raises Refused: somebody else may have written its file.
    """
    if name in DRIVERS:
        return DRIVERS[name]
    folder = folder or OWN_FOLDER
    source = outside.find(str(name), folder)
    if source is None:
        what = f"no such power driver '{name}' (known: {', '.join(known(folder))})"
        raise BadInput(what, pdu, f"correct its driver, or put one of that name into {folder}")
    return made(source)


def known(folder: str) -> list[str]:
    """Return the names of all power drivers on this node."""
    return sorted({*DRIVERS, *outside.names(POWER, folder)})


def made(source: Source) -> type[PowerDriver]:
    """Return the class of a site's own driver; raise BadInput where its file is wrong."""
    must_fit(source, POWER, api.API, api.OLDEST)
    if source.table is None:
        return guarded(load(source, api, PowerDriver), source.path)
    setting, table = source.table
    base = BY_TABLE[setting]
    for what, remedy in base.wrong_table(table):
        raise BadInput(what, source.path, remedy)
    return _by_table(source.name, base, table)


def _by_table(name: str, base: type[Http] | type[Snmp], table: Mapping[str, Any]) -> type[PowerDriver]:
    return type(f"{base.__name__} {name}", (base,), {"table": table, "table_name": name})


def kin(driver: type[PowerDriver]) -> str | None:
    """Return the name of the collection's driver that a driver is, or is derived from; None where it is of no kind."""
    return next((name for name, one in DRIVERS.items() if issubclass(driver, one)), None)
