# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boot drivers by name: those of the collection, and those of a site's own in a folder of this node.

A new one of the collection is a file in this folder, a test, and its lines below.

Its imports are static because Ansible ships only what it sees imported.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Mapping

from ...core.errors import BadInput, HeteroError
from ...images.delivery import Means
from ...roots.ram import ram_image_name
from ..outside import folder as outside
from ..outside.loading import load, must_fit
from ..outside.source import BOOT, Source
from . import api
from .driver import BootDriver
from .fake import Fake
from .own_drivers import Unloaded, broke_off, guarded
from .pxe import Pxe
from .tilera import Tilera
from .uboot import Uboot

if TYPE_CHECKING:
    from ...site.boards_file import Board
    from .proxy_node import BootNode

DRIVERS: dict[str, type[BootDriver]] = {driver.name: driver for driver in (Pxe, Uboot, Tilera, Fake)}
#: Vendor in a board's cpu_info (small letters) → driver, for boards whose wiring names none. Other boards have DEFAULT.
BY_VENDOR = {"tilera": Tilera.name}
DEFAULT = Pxe.name
#: Where role tftp_proxy puts the files of variable `tftp_proxy_boot_drivers`.
OWN_FOLDER = outside.folder_of(BOOT)


def driver_of(name: str) -> type[BootDriver] | None:
    """Return a driver, of the collection, else of the site; None for a name that is neither's.

    :raises BadInput: the site's file is no driver.
    :raises Refused: somebody else may have written it.
    """
    if name in DRIVERS:
        return DRIVERS[name]
    source = outside.find(name, OWN_FOLDER)
    return None if source is None else made(source)


def made(source: Source) -> type[BootDriver]:
    """Return the class of a site's own driver; raise BadInput where its file is wrong."""
    must_fit(source, BOOT, api.API, api.OLDEST)
    return guarded(load(source, api, BootDriver), source.name, source.path)


def default_driver(board: Board) -> str:
    """Return the name of the driver of a board whose wiring names none."""
    return BY_VENDOR.get(str(board.cpu_info.get("vendor")).lower(), DEFAULT)


def proves_keys(
    wire: Mapping[str, Any], board: Board | None, drivers: Mapping[str, type[BootDriver]] = DRIVERS
) -> bool:
    """Return whether the driver of a board's wiring proves a RAM system's host key; of no known driver, True.

    :param drivers: all that there are, a site's own among them.
    """
    driver = drivers.get(wire.get("driver") or (default_driver(board) if board else DEFAULT))
    return driver is None or driver.ram_keys


class BootDrivers:
    """The drivers of one call. Boards with the same driver share one object.

    :param wanted: a driver's name for all boards, or "auto" for what each board's wiring says.
    :param kernel_source: "tftp" or "flash" for all boards, or "auto" for what each board's wiring says.
    """

    def __init__(self, proxy: BootNode, wanted: str = "auto", kernel_source: str = "auto") -> None:
        self._proxy = proxy
        self._wanted = wanted
        self._kernel_source = kernel_source
        self._made: dict[str, BootDriver] = {}

    def of(self, board: Board) -> BootDriver:
        """Return the driver of a board; raise BadInput if there is no such driver or the wiring asks too much of it."""
        name = self._wanted
        if name == "auto":
            name = self._proxy.wiring(board).driver or default_driver(board)
        if name not in self._made:
            kind = driver_of(name)
            if kind is None:
                known = ", ".join(sorted({*DRIVERS, *outside.names(BOOT, OWN_FOLDER)}))
                what = f"no such boot driver: {name} (known: {known})"
                raise BadInput(what, board.name, "name another in tftp_proxy_boards")
            try:
                self._made[name] = kind(self._proxy)
            except HeteroError:
                raise
            except (Exception, SystemExit) as error:  # of a site's own
                raise broke_off(error, board.name, name, os.path.join(OWN_FOLDER, f"{name}.py")) from error
            self._made[name].kernel_source = self._kernel_source
        driver = self._made[name]
        if driver.from_flash(board) and not driver.flash:
            what = f"boot driver {name} knows no kernel_source flash"
            raise BadInput(what, board.name, "take it out of tftp_proxy_boards, or name driver tilera there")
        return driver

    def to_look(self, board: Board) -> BootDriver:
        """Return the driver of a board that is only looked at; where it cannot be had, one whose `fault` says why."""
        try:
            return self.of(board)
        except HeteroError as error:
            return Unloaded(self._proxy, error)

    def to_watch(self, board: Board) -> BootDriver:
        """Return the driver by which it is seen what a board asks for: its own, else one that any firmware needs."""
        try:
            return self.of(board)
        except HeteroError:
            return self._made.setdefault(DEFAULT, DRIVERS[DEFAULT](self._proxy))

    def means(self, board: Board) -> Means | None:
        """Return how a board gets what it boots; None where its wiring is wrong, which is said when it is booted."""
        try:
            driver = self.of(board)
            flash = driver.from_flash(board)
        except HeteroError:  # also of a site's file that must not be run
            return None
        return Means(
            driver=driver.name,
            arguments=driver.passes_arguments,
            flash=flash,
            cmdline=bool(self._proxy.wiring(board).cmdline),
            ram_image=ram_image_name(self._proxy, board),
            ram_keys=driver.ram_keys,
        )
