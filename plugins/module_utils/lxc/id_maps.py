# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ids that a container's users have on this host, and files whose owners are shifted to them.

The range is root's in /etc/subuid and /etc/subgid (subuid(5)); who writes it there is for the set-up.
"""

from __future__ import annotations

import os
import re
import stat

from ..errors import BadInput, naming
from .liblxc import IdMap

#: As many as users of Debian's have numbers for (base-passwd: up to 65535).
COUNT = 65536
FILES = (("u", "/etc/subuid"), ("g", "/etc/subgid"))


def of_root(files=FILES):
    """[IdMap]: the first COUNT ids of root's range; BadInput where root has no such range."""
    return [IdMap(kind, 0, _first(path), COUNT) for kind, path in files]


def _first(path):
    with naming(path), open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            found = re.fullmatch(r"(?:root|0):(\d+):(\d+)", line.strip())
            if found and int(found.group(2)) >= COUNT:
                return int(found.group(1))
    raise BadInput(f"gives root no {COUNT} ids", path, "run the set-up playbook hetero.compute.gpu_host on this node")


def shift(folder, id_map, thing):
    """Give all files of a folder to the host's ids of their owners; links are not followed, modes stay.

    :param id_map: [IdMap]; with none nothing is done.
    :raises BadInput: a file's owner has no id in the map.
    """
    if not id_map:
        return
    first = {line.kind: line.outside for line in id_map}
    seen = set()
    with naming(folder):
        _give(folder, None, os.lstat(folder), first, seen, thing)
        for _path, names, others, where in os.fwalk(folder, follow_symlinks=False):
            for name in names + others:
                status = os.stat(name, dir_fd=where, follow_symlinks=False)
                _give(name, where, status, first, seen, thing)


def _give(name, where, status, first, seen, thing):
    if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
        # Of several names for one file, the first that comes shifts it.
        if (status.st_dev, status.st_ino) in seen:
            return
        seen.add((status.st_dev, status.st_ino))
    if max(status.st_uid, status.st_gid) >= COUNT:
        owner = f"{status.st_uid}:{status.st_gid}"
        raise BadInput(f"{name} belongs to {owner}, which no user of a container is", thing, f"use ids below {COUNT}")
    os.chown(name, first["u"] + status.st_uid, first["g"] + status.st_gid, dir_fd=where, follow_symlinks=False)
    if stat.S_ISREG(status.st_mode) and status.st_mode & (stat.S_ISUID | stat.S_ISGID):
        # chown(2) takes these away.
        os.chmod(name, stat.S_IMODE(status.st_mode), dir_fd=where)
