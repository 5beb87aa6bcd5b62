# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A site's own drivers before they are installed: whether each can be loaded on this node. Those that lie on the node
already count as well.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Sequence

from ...core.errors import BadInput, HeteroError
from ...core.json_file import any_number, read_object
from ...core.machine import missing_packages
from ...core.this_node import THIS_NODE
from ...drivers.boot import registry as boot
from ...drivers.boot.pxe import Pxe
from ...drivers.outside import folder
from ...drivers.outside.loaders import WORDS, Loaders
from ...drivers.outside.source import BOOT, FOLDERS, POWER, Source, read
from ...drivers.power import registry as power
from ...drivers.power.driver import PowerDriver
from ...site.proxy_config import SET_UP

if TYPE_CHECKING:
    from ...core.findings import Findings
    from ...drivers.boot.driver import BootDriver
    from ...site.boards_file import Board
    from .setup_plan import Plan


#: In place of a power driver that cannot be looked at yet: its settings are those that all have.
UNKNOWN: Any = PowerDriver


class Known:
    """All drivers that there will be: the collection's, and the site's own.

    A driver that is wrong is known all the same, so that boards and PDUs that name it get no second error.

    :ivar packages: Debian packages that those of the site need.
    :ivar loaders: {name of a boot driver of the site: what it needs of the servers that its boards ask}.
    """

    def __init__(self, plan: Plan) -> None:
        named: dict[str, type[PowerDriver]] = dict.fromkeys(plan.power_drivers, UNKNOWN)
        self.power: dict[str, type[PowerDriver]] = {**named, **power.DRIVERS}
        self.boot: dict[str, type[BootDriver]] = {**dict.fromkeys(plan.boot_drivers, Pxe), **boot.DRIVERS}
        self.packages: list[str] = []
        self.loaders: dict[str, Loaders] = {}

    def add(self, source: Source, kind: str) -> None:
        """Load a driver; one whose packages are yet to be installed is taken at its word.

        :raises BadInput: it is wrong.
        """
        self.packages += source.packages
        waits = bool(missing_packages(source.packages))
        if kind == POWER:
            self.power[source.name] = UNKNOWN
            if not waits:
                self.power[source.name] = driver = power.made(source)
                self.packages += driver.packages if source.table else ()
        else:
            self.boot[source.name], self.loaders[source.name] = Pxe, source.loaders
            for file in () if waits else sorted(source.loaders.files.values()):
                if not os.path.isfile(file):
                    what = f"there is no {file} on {THIS_NODE}, which its LOADERS name"
                    raise BadInput(what, source.path, "name the package that has it in its PACKAGES, or correct it")
            if not waits:
                self.boot[source.name] = boot.made(source)

    def has(self, name: str, kind: str) -> bool:
        """Return whether the collection has a driver of that name."""
        return name in (power.DRIVERS if kind == POWER else boot.DRIVERS)


def known(plan: Plan, found: Findings) -> Known:
    """Return all drivers; each file of the plan that is wrong is a defect, and keeps no other from being known."""
    result = Known(plan)
    named: set[tuple[str, str]] = set()
    for one in plan.drivers:
        path = str(one.get("path") or "")
        kind = BOOT if os.path.dirname(path) == FOLDERS[BOOT] else POWER
        name = os.path.splitext(os.path.basename(path))[0]
        named.add((kind, name))
        if result.has(name, kind):  # which words_check.own_drivers says
            continue
        try:
            source = read(os.path.basename(path), str(one.get("text") or "").encode())
            result.add(source, kind)
            if not source.kind:
                what = "does not say for which API it is written, so that no release can tell that it has another one"
                found.note(f"tftp_proxy_{FOLDERS[kind]}, {source.name}", what, f"give it a line {kind.upper()}_API = 1")
        except HeteroError as error:
            found.defect(f"tftp_proxy_{FOLDERS[kind]}, {error.thing}", error.what, error.remedy)
    for kind, entries in ((POWER, plan.pdus), (BOOT, plan.wiring)):
        where = folder.folder_of(kind, plan.drivers_folder)
        used = {one.get("driver") for one in entries.values() if isinstance(one, dict)}
        for name in sorted({os.path.splitext(file)[0] for file in folder.files(where)}):
            if (kind, name) not in named and name in used and not result.has(name, kind):
                _installed(name, kind, where, result, found)
    return result


def _installed(name: str, kind: str, where: str, result: Known, found: Findings) -> None:
    """Add a driver that lies on the node and that the plan does not bring."""
    try:
        source = folder.find(name, where)
        if source is not None:
            result.add(source, kind)
    except HeteroError as error:
        found.defects.append(error)
        if kind == POWER:
            result.power.setdefault(name, UNKNOWN)
        else:
            result.boot.setdefault(name, Pxe)


def loads(plan: Plan, drivers: Known, boards: Sequence[Board], found: Findings) -> None:
    """Add the facts `loaders`, which boards may fetch by name, and `loads`, what DHCP tells boards of such drivers.

    In `loads` a board whose driver says nothing of DHCP is missing.
    """
    files: dict[str, tuple[str, str]] = {}
    for driver, needed in sorted(drivers.loaders.items()):
        for name, source in needed.files.items():
            other, path = files.setdefault(name, (driver, source))
            if path != source:
                what = f"has another {name} in its LOADERS than {other}"
                found.defect(f"tftp_proxy_boot_drivers, {driver}", what, "name it otherwise")
        if (needed.boot_file or needed.options) and not plan.dhcp:
            what = "says what DHCP is to tell its boards, and this proxy gives no addresses"
            found.note(f"tftp_proxy_boot_drivers, {driver}", what, "have the DHCP server of the boards say it")
    found.facts["loaders"] = [
        dict(name=name, source=path, pattern=name.replace(".", "\\.").replace("+", "\\+"))
        for name, (_driver, path) in sorted(files.items())
    ]
    found.facts["loads"] = {}
    for board in boards:
        wire = plan.wiring.get(str(board.id), {})
        own = drivers.loaders.get(str(wire.get("driver") if isinstance(wire, dict) else None))
        if own is not None and (own.boot_file or own.options):
            facts = dict(zip(WORDS, (plan.server, board.id, board.name, board.ip, board.mac)))
            found.facts["loads"][board.name] = dict(boot_file=own.boot_file, options=own.options_of(facts))


def gone(plan: Plan) -> list[str]:
    """Return the paths of the files that an earlier set-up put there, and the plan names no more."""
    try:
        before: Any = read_object(plan.config, SET_UP, any_number).get("drivers")
    except HeteroError:  # there is none yet, or it is written anew
        return []
    now = {one.get("path") for one in plan.drivers}
    old = [path for path in before if isinstance(path, str) and path not in now] if isinstance(before, list) else []
    own = [path for path in old if os.path.dirname(path) in FOLDERS.values()]
    paths = [os.path.join(plan.drivers_folder, path) for path in own]
    return [path for path in paths if os.path.lexists(path)]
