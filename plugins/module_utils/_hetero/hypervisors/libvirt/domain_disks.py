# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which disks domains have, of the running guests also by libvirt's own files, which takes no call of virsh."""

from __future__ import annotations

import os
import shlex
from contextlib import suppress
from typing import TYPE_CHECKING, Iterable
from xml.etree.ElementTree import Element

from ...core.errors import HeteroError, Refused
from ...devices.pci.domains import described, files
from . import own_disk
from .guest_folder import DISK

if TYPE_CHECKING:
    from ...devices.pci.paths import Paths

RENAMED = "by its UUID this is guest {name} under another name"
RENAMED_WAY = (
    "nothing is touched: end it (virsh shutdown {other}), and, once it is down, give it its name again (virsh "
    "domrename {other} {name}); then run this again"
)
USES = "runs from {disk}, which is the disk of guest {name}"
USES_WAY = "nothing is touched: end that domain first (virsh shutdown {other}), then run this again"


#: If it runs from another disk than it would start from.
LEAVES = (
    "it runs from {paths}, and would start again from {own}: what its guest writes is in the former alone: remove "
    "neither; once it is stopped, have it start from the former ({editor}), or put that in place of the latter"
)


def disks_of(domain: Element) -> list[str]:
    """Return the paths of a domain's disks, and words for those that libvirt names by none, such as a pool's volume."""
    found = []
    for disk in domain.iterfind("devices/disk"):
        source = disk.find("source")
        if source is not None and disk.get("device", "disk") in ("disk", "lun"):
            found.append(source.get("file") or source.get("dev") or _words(disk, source))
    return found


def _words(disk: Element, source: Element) -> str:
    words = [source.get(key) for key in ("pool", "volume", "protocol", "name") if source.get(key)]
    return f"{'/'.join(filter(None, words)) or 'a disk'} ({disk.get('type')})"


def running(name: str, paths: Paths) -> Element:
    """Return the domain of that name as it runs; an empty one of none that does."""
    found = None
    with suppress(HeteroError):
        found = described(os.path.join(paths.running_domains, f"{name}.xml"))
    return Element("domain") if found is None else found


def leaves(folder: str, paths: Iterable[str], editor: str) -> str | None:
    """Return, in words, which disks a guest runs from in place of its own, with all that was written since; else None.

    :param paths: those of the disks of the domain as it runs; what is in none of them any more was moved since.
    :param editor: in words, by what a person changes what it starts with.
    """
    others = own_disk.other_disks(folder, [path for path in paths if not os.path.isabs(path) or os.path.exists(path)])
    words = dict(paths=", ".join(others), own=os.path.join(folder, DISK), editor=editor)
    return LEAVES.format(**words) if others else None


def must_have_one_name(name: str, uuid: str, disk: str, paths: Paths) -> None:
    """Raise Refused if a domain of another name is this guest, or runs from its disk.

    :param uuid: of its domain.
    :param disk: the path of its disk.
    """
    for folder in (paths.running_domains, paths.domains):
        for path in files(folder):
            domain = None
            with suppress(HeteroError):  # what libvirt cannot read either is no domain
                domain = described(path)
            if domain is None or domain.findtext("name") in (None, name):
                continue
            other = domain.findtext("name", "")
            words = dict(name=name, other=shlex.quote(other), disk=disk)
            if domain.findtext("uuid") == uuid:
                raise Refused(RENAMED.format(**words), f"domain {other}", RENAMED_WAY.format(**words))
            if folder == paths.running_domains and any(own_disk.is_one(path, disk) for path in disks_of(domain)):
                raise Refused(USES.format(**words), f"domain {other}", USES_WAY.format(**words))
