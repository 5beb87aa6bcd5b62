# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Work on the files of a root from inside it, so that no link in an image or of a tenant reaches the proxy's own files.

A forked child changes its root there, does the work and answers; reads and writes here also expect named pipes, device
nodes and huge files where plain small files should be. What is put where is for roots/roots.py.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Any, Callable

from ..core.child import in_child

if TYPE_CHECKING:
    from ..core.deadline import Deadline

#: More than any file that is read here has.
READ_LIMIT = 1 << 20
#: What is said of a path that leads to no file that can be read.
NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENXIO, errno.EACCES)


def inside(root: str, work: Callable[[], Any], deadline: Deadline) -> Any:
    """Run `work()` in a child process whose root is `root`; its answer is of JSON's types.

    :raises HeteroError: what the work raised, or that it ended without an answer.
    """

    def there() -> Any:
        os.chroot(root)
        os.chdir("/")
        os.umask(0o022)
        return work()

    return in_child(there, deadline, root, "check the files there, or make the root new")


def read_file(path: str) -> str | None:
    """The text of a small plain file, None where there is none or it is something else."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
        # Not blocking, for a pipe that took the file's place in between.
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
    """Put a plain file there, owned by root; whatever had the name before is replaced, not written through."""
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
    try:
        os.unlink(path)
    except FileNotFoundError:
        return


def make_folder(path: str, mode: int, exact: bool = False) -> None:
    """A folder of root's; one that is there keeps its mode unless `exact`."""
    try:
        os.mkdir(path, mode)
    except FileExistsError:
        if not exact:
            return
    os.chown(path, 0, 0)
    os.chmod(path, mode)
