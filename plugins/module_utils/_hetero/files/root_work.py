# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Work on the files of a root from inside it, so that no link of an image or a tenant reaches the node's own files.

A forked child changes its root, does the work and answers. Reads and writes here expect named pipes, device nodes and
huge files in places where small plain files should be. roots/roots.py knows what is put where.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Any, Callable

from ..core.child import in_child

if TYPE_CHECKING:
    from ..core.deadline import Deadline

#: Bytes; no file that is read here has more.
READ_LIMIT = 1 << 20
#: Errors of a path that leads to no readable file.
NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENXIO, errno.EACCES)


def inside(root: str, work: Callable[[], Any], deadline: Deadline) -> Any:
    """Run `work()` in a child process whose root is `root`. Return its answer, which consists of JSON's types.

    :raises HeteroError: `work` raised it, or ended without an answer.
    :raises TimedOut: the deadline passed.
    """

    def there() -> Any:
        os.chroot(root)
        os.chdir("/")
        os.umask(0o022)
        return work()

    # a file system of a tenant's in it may never answer: who waits for that cannot be ended, and has no locks
    return in_child(there, deadline, root, "check the files there, or make the root new", closes=True)


def read_file(path: str) -> str | None:
    """Return the text of a small plain file, or None for anything else."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
        # Not blocking, because a pipe may have taken the file's place meanwhile.
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in NO_FILE:
            return None
        raise
    with open(file, "rb") as plain:
        if not stat.S_ISREG(os.fstat(plain.fileno()).st_mode):
            return None
        return plain.read(READ_LIMIT).decode("utf-8", "surrogateescape")


def write_file(path: str, text: str, mode: int) -> None:
    """Write a plain file that belongs to root. Anything of that name is replaced; a link is not followed."""
    new = f"{path}.hetero-new"
    remove_file(new)
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(text.encode("utf-8", "surrogateescape"))
        file.flush()
        os.fchown(file.fileno(), 0, 0)
        os.fchmod(file.fileno(), mode)
        os.fsync(file.fileno())
    os.replace(new, path)


def remove_file(path: str) -> None:
    """Remove a file or a link; a missing one is no error."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return


def make_folder(path: str, mode: int, exact: bool = False) -> None:
    """Make a folder that belongs to root. An existing one keeps its mode unless `exact`."""
    try:
        os.mkdir(path, mode)
    except FileExistsError:
        if not exact:
            return
    os.chown(path, 0, 0)
    os.chmod(path, mode)


def above(path: str) -> list[str]:
    """Return the folders above a file, from the top on, without the root itself."""
    parts = path.split("/")[1:-1]
    return ["/" + "/".join(parts[: number + 1]) for number in range(len(parts))]
