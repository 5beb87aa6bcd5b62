# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which disks domains have, of the running guests also by libvirt's own files, which takes no call of virsh."""

from __future__ import annotations

import os
import shlex
from contextlib import suppress
from typing import TYPE_CHECKING

from ...core.errors import HeteroError, Refused
from ...devices.pci.domains import described, files

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


def disks_of(domain: Element) -> list[str]:
    """Return the paths of a domain's disks."""
    sources = domain.iterfind("devices/disk[@device='disk']/source")
    return [path for source in sources for path in (source.get("file"), source.get("dev")) if path]


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
            if folder == paths.running_domains and any(_is_same(one, disk) for one in disks_of(domain)):
                raise Refused(USES.format(**words), f"domain {other}", USES_WAY.format(**words))


def _is_same(path: str, disk: str) -> bool:
    return os.path.exists(path) and os.path.exists(disk) and os.path.samefile(path, disk)
