# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which guests that were made here have a PCI device by what lies in their folders, and by no domain of libvirt's.

Database and libvirt's files may both be older than a guest, or lost: then only its folder tells what is its own.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Collection
from xml.etree import ElementTree

from ...files.plain_file import read_plain
from . import domains

if TYPE_CHECKING:
    from .paths import Paths

#: The file with a guest's domain as it was made, which is written last.
DESCRIPTION = "domain.xml"
#: Bytes of the largest that is read; ours have 2,000.
MOST = 1 << 20


def description(folder: str) -> ElementTree.Element | None:
    """Return the domain, as it was made, of the guest whose files lie in a folder; None where none do, or that cannot
    be read.
    """
    with contextlib.suppress(OSError, ElementTree.ParseError):
        made = read_plain(os.path.join(folder, DESCRIPTION), MOST)
        return None if made is None else ElementTree.fromstring(made)
    return None


def is_made(name: str, paths: Paths) -> bool:
    """Return whether a guest of that name was made here completely. Its domain may have been removed since."""
    return os.path.exists(os.path.join(paths.guests, name, DESCRIPTION))


def only_by_folder(paths: Paths, but: Collection[str] = ()) -> dict[str, list[str]]:
    """Return {address of a device: names of the guests that have it by what lies in their folders, and of which libvirt
    has no domain}. The database is not asked: its claims of their names may be earlier ones.

    :param but: UUIDs of guests that are left out.
    """
    found: dict[str, list[str]] = {}
    known = {*domains.uuids(paths), *but}
    for name in sorted(os.listdir(paths.guests)) if os.path.isdir(paths.guests) else ():
        made = description(os.path.join(paths.guests, name))
        # else it is a copy of another's, or what libvirt has of it tells
        if made is not None and made.findtext("name") == name and made.findtext("uuid") not in known:
            for address in domains.addresses(made):
                found.setdefault(address, []).append(name)
    return found
