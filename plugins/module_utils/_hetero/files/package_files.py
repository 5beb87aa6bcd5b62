# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration files of Debian packages that nobody has changed."""

from __future__ import annotations

import hashlib
import shutil

from ..core.command import command

#: dpkg-query(1): of each package, lines of path and MD5 of its configuration files, as it brought them.
LIST = ["dpkg-query", "--show", "--showformat=${Conffiles}\n"]


def is_as_packaged(path: str) -> bool:
    """Return whether a file is a package's and as that brought it; False where packages are not Debian's.

    :raises HeteroError: the packages cannot be asked for.
    """
    if not shutil.which(LIST[0]):
        return False
    files = dict(line.split()[:2] for line in command(LIST, path).splitlines() if line.strip())
    if path not in files:
        return False
    with open(path, "rb") as file:
        # what dpkg writes down; it guards against nobody
        return hashlib.md5(file.read()).hexdigest() == files[path]
