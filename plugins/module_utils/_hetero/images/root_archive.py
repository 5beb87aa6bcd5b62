# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Archives of images for boards that unpack their root to a disk. Each is made once and kept under the image's hash.

Beside each archive lies what the board's copy is checked by: its sum, its size, and the sums of some of its files.
roots/disk_root.py adds what belongs to one instance (host name, keys).
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from dataclasses import asdict, dataclass
from typing import IO, TYPE_CHECKING

from ..core.command import Limits, command, ended
from ..core.deadline import Deadline
from ..core.errors import FULL, HeteroError, TimedOut
from ..core.locks import holder_of, taken
from ..files.walk import file_hash
from ..files.whole_file import write_whole
from .image_root import root_of

if TYPE_CHECKING:
    from .store import Image

#: Files that an instance has of its own, and files that nobody should get from an image.
LEFT_OUT = (
    "./etc/hostname",
    "./etc/machine-id",
    "./etc/ssh/ssh_host_*_key",
    "./etc/ssh/ssh_host_*_key.pub",
    "./root/.ssh/authorized_keys",
)
#: Files that are compared on the board; comparing all would take as long as unpacking.
SAMPLE = 64
#: Seconds to read an archive once more (a gigabyte takes about 10).
COUNT_TIME = 600.0


@dataclass(frozen=True)
class Archive:
    """An archive: its path, sum and size; the bytes and names of its files; {name: sum} of some of them."""

    path: str
    sha256: str
    size: int
    unpacked: int
    names: list[str]
    sample: dict[str, str]


def archive_of(folder: str, image: Image, deadline: Deadline) -> Archive:
    """Return the archive of an image's root below `folder`; make it if it is missing."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = os.path.join(folder, f"{image.hash}.tar.gz")
    with open(os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "rb") as lock:
        _take(lock, image, deadline)
        found = _read(path)
        return found or _make(path, image, deadline)


def stored_archive(folder: str, image: Image) -> Archive | None:
    """Return the archive, or None if it was not made yet."""
    return _read(os.path.join(folder, f"{image.hash}.tar.gz"))


def _read(path: str) -> Archive | None:
    try:
        with open(f"{path}.json", encoding="utf-8") as file:
            found = Archive(path=path, **json.load(file))
    except (FileNotFoundError, ValueError, TypeError):
        return None
    return found if os.path.exists(path) and os.path.getsize(path) == found.size else None


def _make(path: str, image: Image, deadline: Deadline) -> Archive:
    partial, root = f"{path}.partial", root_of(image)
    # --format=gnu: every tar on a board can read it. Fast compression: the board's link is slower than this.
    argv = ["tar", "--create", "--format=gnu", "--numeric-owner", "--sort=name", "--use-compress-program=gzip -n -4"]
    argv += [f"--exclude={name}" for name in LEFT_OUT] + ["--anchored", f"--file={partial}"]
    _pack([*argv, f"--directory={root}", "."], path, deadline)
    listing = command(["tar", "--list", "--quoting-style=literal", f"--file={partial}"], path, timeout=COUNT_TIME)
    names = [name.rstrip("/") or "." for name in listing.split("\n") if name]
    files = [name for name in names if _plain(os.path.join(root, name))]
    chosen = files[:: max(1, len(files) // SAMPLE)][:SAMPLE]
    made = Archive(
        path=path,
        sha256=file_hash(partial, Deadline(COUNT_TIME)),
        size=os.path.getsize(partial),
        unpacked=sum(os.lstat(os.path.join(root, name)).st_size for name in files),
        names=names,
        sample={name: _sum(os.path.join(root, name)) for name in chosen},
    )
    os.replace(partial, path)
    about = {field: value for field, value in asdict(made).items() if field != "path"}
    write_whole(f"{path}.json", json.dumps(about))
    return made


def _pack(argv: list[str], path: str, deadline: Deadline) -> None:
    """Have tar write the archive. Its last line only says that it ends, so one about a full disk is shown instead."""
    remedy = "check the space there"
    done = ended(argv, path, remedy, Limits(max(1.0, deadline.left)))
    if done.returncode:
        said, full = done.stderr.strip().splitlines() or ["nothing"], [os.strerror(code) for code in FULL]
        why = next((line for line in said if any(words in line for words in full)), said[0])
        raise HeteroError(f"tar ended with {done.returncode} and said: {why}", path, remedy)


def _plain(path: str) -> bool:
    """Return whether this is a plain file that is not empty, with a name that sha256sum prints unchanged."""
    if "\n" in path or "\\" in path or not os.path.lexists(path):
        return False
    status = os.lstat(path)
    return stat.S_ISREG(status.st_mode) and status.st_size > 0


def _sum(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def _take(lock: IO[bytes], image: Image, deadline: Deadline) -> None:
    if not taken(lock.fileno(), deadline):
        what = f"is still being packed by {holder_of(lock.fileno())} after {deadline.seconds:g} s"
        raise TimedOut(what, f"image {image.name}", "wait for it, or raise timeout")
