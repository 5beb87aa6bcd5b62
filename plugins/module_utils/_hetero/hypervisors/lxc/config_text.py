# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of a container's configuration, in a folder where anything may lie in its place: a folder, a pipe, a device,
a link to itself, a file of any size. No reader waits for these, or fills the memory with one.
"""

from __future__ import annotations

from ...core.errors import Refused
from ...files.plain_file import read_at

#: Bytes of the largest that is read. Ours have 3,000; LXC's own with a rule for each device have some 10,000.
MOST = 1 << 20
WAY = "correct it: put the container's own file there, or move a folder away that is no container's"


def text_of(path: str) -> str | None:
    """Return the text of the configuration at a path, or at the end of a link there; None where there is no file.

    :raises Refused: what lies there cannot be read, and so nobody can tell whose the folder is.
    """
    try:
        data = read_at(path, MOST + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Refused(f"cannot be read as a container's configuration ({error.strerror})", path, WAY) from error
    if len(data) > MOST:
        what = f"cannot be read as a container's configuration (it has more than {MOST} bytes)"
        raise Refused(what, path, WAY)
    return data.decode("utf-8", "surrogateescape")
