# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files that a guest boots with: whether they are there, and whether its domain names those in its own folder.

guests.py makes them. Where a domain names files in another folder, the error says how it comes to use its own.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Sequence
from xml.sax.saxutils import escape

from ...core.errors import Refused
from ...core.printable import brief_words
from . import own_disk
from .domain_disks import disks_of
from .guest_folder import DESCRIPTION, DISK, must_have

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from .domain import Libvirt
    from .guests import Spec

#: Of a domain that names files in another folder than the guest's: all of them may have been moved, or copied.
NOT_THERE = "has {path}, which is not there, in place of {own}"
MOVED_WAY = (
    "move it back; or, where its folder was moved for good, and is no copy that may be older, have it use what lies "
    "there ({line}); then run this again"
)
ASTRAY = (
    "domain {name} has {path} in place of {own}: what its guest writes is in the former alone: remove neither; once it "
    "is stopped, put that disk into its folder, and have it use it there (mv --backup=numbered {path} {own} && {line})"
)
#: Of one that may be an overlay on the disk in the folder, a device, or data beside the root.
UNSURE = (
    "domain {name} has {paths}, and not {own}, which lies in its folder: what its guest writes is not in the latter. "
    "Nothing is touched: remove none of them, and move none over another, for one may lie on another (a snapshot), or "
    "be a device, or data: see virsh domblklist {name} and qemu-img info --backing-chain; end a snapshot by virsh "
    "blockcommit; then have the domain use a whole root in its folder (by virsh edit {name})"
)
USE = "virsh dumpxml {name} --inactive --security-info | sed 's#{old}#{new}#g' | virsh define /dev/stdin"
USE_LATER = "sed -i 's#{old}#{new}#g' {file}"
BY_HAND = "by {editor}, which is to name {own} as its {word}; other disks stay as they are; nothing is touched"
#: Paths in which neither sed nor a shell sees more than their text.
TYPED = re.compile(r"[A-Za-z0-9/._+:@-]+")


def must_boot(spec: Spec, starts: Element, libvirt: Libvirt) -> None:
    """Raise Refused if a file is missing with which a guest that was made boots; libvirt says so only at its start.

    :param starts: what guests.next_start says of it.
    """
    own = {word: spec.file(word) for word in ("kernel", "initrd")}
    files = [(word, path) for word in own for path in [starts.findtext(f"os/{word}")] if path]
    others = own_disk.other_disks(spec.folder, disks_of(starts))
    files += [("root", path) for path in others if os.path.basename(path) == DISK]
    own["root"] = spec.file(DISK)
    must_have("root", own["root"])
    for word, path in files:
        if not os.path.exists(path) and os.path.exists(own[word]):
            is_defined = libvirt.domain(spec.name).defined
            thing = f"domain {spec.name}" if is_defined else spec.file(DESCRIPTION)
            editor = own_disk.editor_of(spec.name, spec.folder, is_defined)
            # where the root is there, what lies in the guest's folder may be older
            line = None if any(map(os.path.exists, others)) else _use(spec, starts, path, own[word], is_defined)
            by_hand = BY_HAND.format(editor=editor, word=word, own=escape(own[word], {"'": "&apos;"}))
            way = MOVED_WAY.format(line=line or by_hand)
            way = _unsure(spec, others) if word == "root" and len(others) > 1 else way
            raise Refused(NOT_THERE.format(path=path, own=own[word]), thing, way)
        must_have(word, path)


def astray(spec: Spec, starts: Element) -> str | None:
    """Return, in words, where the disk is that a guest's domain has in place of the one in its folder; else None.

    :param starts: what guests.next_start says of it.
    """
    paths, own = own_disk.other_disks(spec.folder, disks_of(starts)), spec.file(DISK)
    if not paths:
        return None
    path = paths[0]
    is_elsewhere = os.path.isfile(path) and not os.path.islink(path) and not path.startswith(f"{spec.folder}/")
    line = _use(spec, starts, path, own, True) if is_elsewhere else None
    return ASTRAY.format(name=spec.name, path=path, own=own, line=line) if line else _unsure(spec, paths)


def _unsure(spec: Spec, paths: Sequence[str]) -> str:
    return UNSURE.format(name=spec.name, paths=", ".join(paths), own=spec.file(DISK))


def _use(spec: Spec, starts: Element, path: str, own: str, is_defined: bool) -> str | None:
    """Return the command line by which a guest starts with its own file in place of that at `path`, and with all that
    lies beside that; None where it might do more than that, or could not be typed as it is printed.
    """
    alike = os.path.basename(path) == os.path.basename(own)
    old, new = (os.path.join(os.path.dirname(one), "") if alike else one for one in (path, own))
    if not _has_one_plain_disk(starts) or not TYPED.fullmatch(old + new) or old in new:
        return None
    line = (USE if is_defined else USE_LATER).format(name=spec.name, old=old, new=new, file=spec.file(DESCRIPTION))
    return line if brief_words(f"({line});") == f"({line});" else None


def _has_one_plain_disk(domain: Element) -> bool:
    """Return whether a domain has one disk alone, as guests are made: in a raw file, which lies on no other one."""
    disks = domain.findall("devices/disk")
    plain = domain.findall("devices/disk[@type='file']/driver[@type='raw']/../source[@file]")
    names = [os.path.basename(source.get("file", "")) for source in plain]
    return len(disks) == 1 and names == [DISK] and domain.find("devices/disk/backingStore/source") is None
