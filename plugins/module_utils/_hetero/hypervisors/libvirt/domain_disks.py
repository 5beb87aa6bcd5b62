# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which disks domains have, of the running guests also by libvirt's own files, which takes no call of virsh."""

from __future__ import annotations

import os
import shlex
from contextlib import suppress
from typing import TYPE_CHECKING, Iterable, Sequence

from ...core.errors import HeteroError, Refused
from ...devices.pci.domains import described, files
from . import own_disk
from .guest_folder import DISK

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

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
    "it runs from {paths}, and would start again from {other}: what its guest writes is in the former alone: remove "
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


def disks_by_file(name: str, folder: str) -> list[str]:
    """Return `disks_of` the domain of that name, by what libvirt has of it in one of its folders."""
    found = None
    with suppress(HeteroError):
        found = described(os.path.join(folder, f"{name}.xml"))
    return [] if found is None else disks_of(found)


def leaves(folder: str, paths: Iterable[str], next_start: Sequence[str], editor: str) -> str | None:
    """Return, in words, which disks a guest runs from, and would not start from again; None where it has its own one.

    :param paths: those of its disks as it runs. A file that is not there was moved since.
    :param next_start: those of its domain as it is defined.
    :param editor: in words, by what a person changes what it starts with.
    """
    there = [path for path in paths if not os.path.isabs(path) or os.path.exists(path)]
    others = own_disk.other_disks(folder, there)
    found = [path for path in others if not any(own_disk.is_one(path, one) for one in next_start)]
    other = ", ".join(next_start) or os.path.join(folder, DISK)
    return LEAVES.format(paths=", ".join(found), other=other, editor=editor) if found else None


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
            if folder == paths.running_domains and any(own_disk.is_one(one, disk) for one in disks_of(domain)):
                raise Refused(USES.format(**words), f"domain {other}", USES_WAY.format(**words))
