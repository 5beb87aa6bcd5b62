# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where an image is imported from: a tar or folder on this node, which is opened once, or a tar on a web server.

Nothing that a tenant can write is a source. The caller knows which folders these are; links and mounts that lead into
them are noticed here. store.py knows what the content means.
"""

from __future__ import annotations

import hashlib
import os
import stat
import urllib.parse
from typing import Iterable, Iterator

from ..core.deadline import Deadline
from ..core.errors import BadInput, HeteroError, Refused, TimedOut
from ..core.this_node import THIS_NODE
from ..files.mounts import place_of, places_below
from ..files.scratch import leave_room, spare
from ..files.tree import copy_folder
from ..files.walk import CHUNK, RAISE, file_hash, folder_hash
from ..site.image_names import checksum_of
from .archive import unpack
from .disk_image import EXPORT
from .disk_signs import LARGEST

#: Schemes of URLs for urllib, which uses the proxy server of the environment.
SCHEMES = ("http", "https")
#: Why nothing is imported from a folder. Tenants cannot write to all of them (the TFTP tree).
KEPT = "where tenants' files are kept, or what their machines said"
COPY = "copy it to a folder that only operators can write, such as /srv/images"


def opened(source: str, expected: str | None, closed: Iterable[str], deadline: Deadline) -> Local | Remote:
    """Open a source as a context manager.

    :param expected: the sha256 that it must have; a URL needs one.
    :param closed: folders and files with tenants' data, from which nothing is imported.
    :param deadline: until when what is on this node is read for its sum.
    """
    path = _path_of(source, bool(expected))
    # a URL without a checksum was refused above
    return Remote(source, str(expected)) if path is None else Local(path, deadline, closed)


def image_hash(content: str, arch: str | None, kernel: str | None) -> str:
    """Return an image's hash: its source's, together with an overriding arch and the hash of what gives its kernel."""
    more = [f"{word}={value}" for word, value in (("arch", arch), ("kernel", kernel)) if value is not None]
    return hashlib.sha256("\n".join([content, *more]).encode()).hexdigest() if more else content


def mistakes(source: str, checksum: str | None) -> Iterator[BadInput]:
    """Yield what is wrong with a source and its checksum, without opening the source."""
    try:
        checksum_of(checksum)
    except BadInput as error:
        yield error
    try:
        path = _path_of(source, checksum is not None)
        if path is not None and not os.path.exists(path):
            yield _missing(path)
    except BadInput as error:
        yield error


def _path_of(source: str, has_checksum: bool) -> str | None:
    """Return the path of a source on this node, or None for a URL."""
    if "://" not in source:
        return source
    if not has_checksum:
        raise BadInput("needs a checksum", source, "give checksum: sha256:… of the archive")
    try:
        parts = urllib.parse.urlsplit(source)
    except ValueError as error:
        raise BadInput(f"is no URL ({error})", source, "check how it is written") from error
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        return urllib.parse.unquote(parts.path)
    if parts.scheme not in SCHEMES:
        raise BadInput("is no address that images are fetched from", source, "give a path, or a http or https URL")
    return None


def _missing(path: str) -> BadInput:
    return BadInput(f"no such file or folder on {THIS_NODE}", path, "copy it there, or give a URL with its checksum")


class Local:
    """A tar or folder on this node. One descriptor serves to hash it and to unpack or copy it."""

    def __init__(self, path: str, deadline: Deadline, closed: Iterable[str] = ()) -> None:
        self.path = path
        try:
            # not blocking: a named pipe would wait for a writer
            self.file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise _missing(path) from error
        except (OSError, ValueError) as error:
            raise BadInput(f"cannot be read ({error})", path, "check the path") from error
        try:
            status = os.fstat(self.file)
            kind = status.st_mode
            if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
                raise BadInput("is neither a file nor a folder", path, "give a tar or a folder")
            self.is_folder = stat.S_ISDIR(kind)
            _must_be_ours(path, self.file, closed)
            # holes cost whoever makes them nothing, and whoever reads them as long as data
            if not self.is_folder and status.st_size > LARGEST and status.st_blocks * 512 < status.st_size:
                what = f"has {status.st_size >> 30} GiB with its holes; {LARGEST >> 30} GiB is the most"
                raise BadInput(what, path, EXPORT)
            self.content = self._hash(deadline)
        except BaseException:
            os.close(self.file)
            raise

    def __enter__(self) -> Local:
        return self

    def __exit__(self, *exc: object) -> None:
        os.close(self.file)

    def put(self, folder: str, room: int, deadline: Deadline) -> None:
        """Unpack or copy the source's content into an empty folder.

        :param room: bytes that it may have.
        """
        if self.is_folder:
            copy_folder(self.file, folder, room, deadline=deadline)
            now = folder_hash(folder, deadline)
        else:
            _unpack(self.file, self.path, folder, room, deadline)
            now = self._hash(deadline)
        if now != self.content:
            raise BadInput("changed while it was imported", self.path, "import it again when nothing writes to it")

    def _hash(self, deadline: Deadline) -> str:
        return folder_hash(self.file, deadline) if self.is_folder else file_hash(self.file, deadline, self.path)


class Remote:
    """A tar on a web server. The sum of its content is known before it is fetched."""

    def __init__(self, url: str, expected: str) -> None:
        self.url, self.content = url, expected

    def __enter__(self) -> Remote:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def put(self, folder: str, room: int, deadline: Deadline) -> None:
        """Fetch the tar to a file beside the folder, and unpack it into the folder."""
        download = f"{folder}.archive"
        try:
            _download(self.url, download, self.content, deadline)
            with open(download, "rb") as file:
                _unpack(file.fileno(), self.url, folder, min(room, spare(folder)), deadline)
        finally:
            if os.path.lexists(download):
                os.unlink(download)


def _must_be_ours(path: str, file: int, closed: Iterable[str]) -> None:
    """Raise Refused if what is open as `file`, or below it, may be a tenant's."""
    place = place_of(file)
    # what is mounted below it may be of the same file system, which the walk through it does not notice
    mounts = places_below(f"/proc/self/fd/{file}/.")[1:] if stat.S_ISDIR(os.fstat(file).st_mode) else []
    inside = os.path.join(os.path.realpath(path), "")
    for folder in closed:
        if os.path.realpath(folder).startswith(inside):  # also if it is a mounted file system
            raise Refused(f"holds {folder}, {KEPT}", path, COPY)
        for theirs in places_below(folder):
            if place.is_in(theirs):
                what = f"lies in {folder}, {KEPT}"
                raise Refused(what, path, COPY)
            if theirs.is_in(place) or any(one.is_in(theirs) or theirs.is_in(one) for one in mounts):
                raise Refused(f"holds {folder}, {KEPT}", path, COPY)


def _unpack(archive: int, name: str, folder: str, room: int, deadline: Deadline) -> None:
    try:
        unpack(archive, folder, room, deadline)
    except HeteroError as error:
        raise type(error)(error.what, name, error.remedy, **error.facts) from error


def _download(url: str, path: str, expected: str, deadline: Deadline) -> None:
    # Imported here, because all modules that know images would otherwise load them: a seventh of their start time. They
    # belong to Python itself, so they are still there for a worker whose module's files are gone (core/background.py).
    import http.client
    import urllib.request

    digest = hashlib.sha256()
    size = 0
    opener = urllib.request.build_opener()
    try:
        with opener.open(url, timeout=min(30.0, max(0.1, deadline.left))) as answer, open(path, "wb") as file:
            # what has come by now: a server that sends byte by byte would hold a read of a whole chunk for ever
            chunk = answer.read1(CHUNK)
            while chunk:
                if deadline.passed:
                    what = f"not fetched within {deadline.seconds:g} s ({size >> 20} MiB came)"
                    raise TimedOut(what, url, RAISE)
                digest.update(chunk)
                leave_room(file.fileno(), size, CHUNK, url)
                file.write(chunk)
                size += len(chunk)
                chunk = answer.read1(CHUNK)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise HeteroError(
            f"cannot be fetched ({error})", url, f"check the URL from {THIS_NODE}, and its disk"
        ) from error
    if digest.hexdigest() != expected:
        what = f"came with sha256 {digest.hexdigest()} ({size} bytes), not {expected}"
        raise BadInput(what, url, "check the checksum, or fetch again")
