# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which disks domains have, and what lies on a guest's: by libvirt's own files, which takes no call of virsh."""

from __future__ import annotations

import os
import shlex
import struct
from contextlib import suppress
from typing import TYPE_CHECKING, Callable, Iterable, Iterator, Sequence
from xml.etree import ElementTree

from ...core.errors import HeteroError, Refused
from ...devices.pci.domains import described, files
from ...files.plain_file import read_at
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
OVERLAY = "has {path}, an overlay on {disk}, without which nothing of it can be read: that is the disk of guest {name}"
OVERLAY_WAY = (
    "nothing is touched: have the overlay hold all of that itself (virsh blockpull {other} {path} --wait while that "
    "domain runs, qemu-img rebase -b '' {path} while it does not), or undefine the domain where nobody needs it; then "
    "run this again"
)
UNFOUND = (
    "has volume {volume} of pool {pool}, of which libvirt has no description that can be read: whether it lies on "
    "{disk}, the disk of guest {name}, cannot be told"
)
UNFOUND_WAY = (
    "nothing is touched: describe the pool again (virsh pool-define-as {pool} dir --target FOLDER, with the folder in "
    "which the volume lies), or undefine the domain where nobody needs it; then run this again"
)
UNSEEN = (
    "has {file}, and by /etc/fstab a file system is to be at {point}, which is not mounted: whether it lies on {disk}, "
    "the disk of guest {name}, cannot be told"
)
UNSEEN_WAY = "nothing is touched: mount it, or undefine the domain where nobody needs it; then run this again"
#: In the header of an overlay (qemu, docs/interop/qcow2.txt): what it begins with, and that what is below it is an
#: overlay, too. What else is there, such as a guest's disk, may begin with anything.
MAGIC, AGAIN = b"QFI\xfb", b"\xe2\x79\x2a\xca\0\0\0\x05qcow2"
#: Bytes in which its header lies, and overlays over one another.
HEADER, MOST = 4096, 100
#: If it runs from another disk than it would start from.
LEAVES = (
    "it runs from {paths}, and would start again from {other}: what its guest writes is in the former alone: remove "
    "neither; once it is stopped, have it start from the former ({editor}), or put that in place of the latter"
)


def disks_of(domain: Element) -> list[str]:
    """Return the paths of a domain's disks, and words for those that libvirt names by none, such as a pool's volume."""
    return [path for _disk, path in _disks(domain)]


def _disks(domain: Element) -> Iterator[tuple[Element, str]]:
    for disk in domain.iterfind("devices/disk"):
        source = disk.find("source")
        if source is not None and disk.get("device", "disk") in ("disk", "lun"):
            yield disk, source.get("file") or source.get("dev") or _words(disk, source)


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
    for folder, other, domain in _others(name, paths):
        words = dict(name=name, other=shlex.quote(other), disk=disk)
        if domain.findtext("uuid") == uuid:
            raise Refused(RENAMED.format(**words), f"domain {other}", RENAMED_WAY.format(**words))
        if folder == paths.running_domains:
            _must_be_no_overlay(other, domain, name, disk)
            if _has(disks_of(domain), disk):
                raise Refused(USES.format(**words), f"domain {other}", USES_WAY.format(**words))


def must_carry_none(name: str, disk: str, paths: Paths, not_mounted: Callable[[str], str | None]) -> None:
    """Raise Refused if a disk of another domain, whether or not that runs, is an overlay on this guest's, or may be.

    :param not_mounted: returns where, at a path or above it, a file system is to be mounted and is not; else None.
    """
    for _folder, other, domain in _others(name, paths):
        _must_be_no_overlay(other, domain, name, disk)
        for one, path in _disks(domain):
            if one.find("driver[@type='qcow2']") is None:
                continue
            source = one.find("source[@pool]")
            if source is not None and _pool_of(source, paths) is None:
                pool, volume = shlex.quote(source.get("pool", "")), source.get("volume")
                what = UNFOUND.format(volume=volume, pool=pool, disk=disk, name=name)
                raise Refused(what, f"domain {other}", UNFOUND_WAY.format(pool=pool))
            for file in filter(os.path.isabs, [path, *_below(path)]):
                point = None if os.path.lexists(file) else not_mounted(file)
                if point:
                    what = UNSEEN.format(file=file, point=point, disk=disk, name=name)
                    raise Refused(what, f"domain {other}", UNSEEN_WAY)


def _must_be_no_overlay(other: str, domain: Element, name: str, disk: str) -> None:
    for one, path in _disks(domain):
        driver, below = one.find("driver"), [source.get("file", "") for source in one.iter("source")][1:]
        if driver is not None and driver.get("type") == "qcow2":
            below += _below(path)
        if _has(below, disk):
            way = OVERLAY_WAY.format(other=shlex.quote(other), path=shlex.quote(path))
            raise Refused(OVERLAY.format(path=path, disk=disk, name=name), f"domain {other}", way)


def _others(name: str, paths: Paths) -> Iterator[tuple[str, str, Element]]:
    """Yield (folder, name, description) of domains by libvirt's files, but of those of this name."""
    for folder in (paths.running_domains, paths.domains):
        for path in files(folder):
            domain = None
            with suppress(HeteroError):  # what libvirt cannot read either is no domain
                domain = described(path)
            other = "" if domain is None else domain.findtext("name", "")
            if domain is not None and other not in ("", name):
                _name_volumes(domain, paths)
                yield folder, other, domain


def _name_volumes(domain: Element, paths: Paths) -> None:
    """Write the paths of a domain's disks that are named by pool and volume into its description, as libvirt finds
    them: by its files of pools.
    """
    for source in domain.iterfind("devices/disk/source[@pool]"):
        pool = _pool_of(source, paths)
        target = None if pool is None else pool.findtext(".//target/path")
        if target:
            source.set("file", os.path.join(target, source.get("volume", "")))


def _pool_of(source: Element, paths: Paths) -> Element | None:
    """Return what libvirt's files say of a volume's pool; None where it has none that can be read."""
    for folder in (paths.running_domains, paths.domains):
        file = os.path.join(os.path.dirname(folder), "storage", f"{source.get('pool')}.xml")
        with suppress(OSError, ElementTree.ParseError):
            return ElementTree.parse(file).getroot()
    return None


def _below(path: str) -> list[str]:
    """Return the files on which an overlay lies, one below another."""
    found: list[str] = []
    head = AGAIN
    while AGAIN in head and len(found) < MOST:
        head = b""
        with suppress(OSError):
            head = read_at(path, HEADER, device=True)
        magic, _version, begin, size = struct.unpack(">4sIQI", head[:20].ljust(20, b"\0"))
        if magic != MAGIC or not begin:
            break
        path = os.path.join(os.path.dirname(path), os.fsdecode(head[begin : begin + size].partition(b"\0")[0]))
        head = head[:begin]
        found.append(path)
    return found


def _has(paths: Iterable[str], disk: str) -> bool:
    return any(own_disk.is_one(path, disk) for path in paths if path)
