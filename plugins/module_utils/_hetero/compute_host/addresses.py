# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the addresses of all containers and guests of a host from their own files, for a database that was lost, or is
older, does not have all of them.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from ..core.errors import HeteroError
from ..files.plain_file import read_at
from ..hypervisors.libvirt.guest_folder import DESCRIPTION, MOST

if TYPE_CHECKING:
    from ..claims.host.config import HostConfig

#: The lines that hypervisors/lxc/new_container.py and hypervisors/libvirt/guests.py write.
OF_CONTAINER = re.compile(r"^lxc\.net\.\d+\.ipv4\.address\s*=\s*([0-9.]+)", re.MULTILINE)
OF_GUEST = re.compile(r"\bip=([0-9.]+):")
UNREAD = "cannot be read ({why}), and so nobody can tell which address is in use by it"
WAY = "correct it, or move its folder away where it is nobody's"


def addresses_there(config: HostConfig) -> set[str]:
    """Return the addresses of all containers and guests.

    :param config: as read_config returns it.
    :raises HeteroError: a file cannot be read. Any address may be its container's, so none can be given.
    """
    containers = _found(config.lxc.lxcpath, "config", OF_CONTAINER)
    return {*containers, *_found(config.kvm.guests_folder, DESCRIPTION, OF_GUEST)}


def _found(folder: str, name: str, pattern: re.Pattern[str]) -> list[str]:
    found: list[str] = []
    for entry in os.listdir(folder) if os.path.isdir(folder) else []:
        path = os.path.join(folder, entry, name)
        try:
            data = read_at(path, MOST + 1)
        except (FileNotFoundError, NotADirectoryError):
            continue  # nothing was made in that folder, or the file was just removed
        except OSError as error:
            raise HeteroError(UNREAD.format(why=error.strerror), path, WAY) from error
        if len(data) > MOST:
            raise HeteroError(UNREAD.format(why=f"it has more than {MOST} bytes"), path, WAY)
        found += pattern.findall(data.decode("utf-8", "replace"))
    return found
