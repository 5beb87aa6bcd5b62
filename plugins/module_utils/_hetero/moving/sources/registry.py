# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sources by name. The imports are static because Ansible ships only what it sees imported.

A new one is a file beside this one, with a function `read(asked)` that returns a Site, and its line here.
"""

from __future__ import annotations

from typing import Callable, NamedTuple

from ..documents import Asked
from ..source_site import Site
from . import csv_file, ironic, labgrid, lava, maas, netbox


class Source(NamedTuple):
    """A kind of source.

    :param needs: the option that says where it is, `src` or `url`.
    """

    read: Callable[[Asked], Site]
    needs: str = "src"


SOURCES = {
    "csv": Source(csv_file.read),
    "ironic": Source(ironic.read),
    "labgrid": Source(labgrid.read),
    "lava": Source(lava.read),
    "maas": Source(maas.read),
    "netbox": Source(netbox.read, needs="url"),
}
