# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proxy's images: each imported once, checked, kept read-only under its hash, and found by name.

Knows what an image consists of and makes an import all or nothing. How a board's root is made from one is for roots.py.
"""

from __future__ import annotations

import fcntl
import hashlib
import http.client
import json
import os
import re
import shutil
import stat
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass

from ..command import command
from ..deadline import Deadline
from ..errors import BadInput, HeteroError, TimedOut
from ..whole_file import write_whole
from .archive import unpack
from .tree import CHUNK, copy_folder, file_hash, folder_hash

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
HASH = re.compile(r"[0-9a-f]{64}")
#: Suffixes that a name does not take over from its archive.
SUFFIXES = (".tar.gz", ".tar.xz", ".tar.bz2", ".tgz", ".txz", ".tbz2", ".tbz", ".tar")
#: Bytes of the store's file system that an import leaves free: the state database may lie on it too.
KEEP_FREE = 256 << 20
#: Unpacking and a slow download; a caller with a deadline of its own gives it.
IMPORT_TIME = 1800.0
CONTENT = "pack image.json, kernel, root/ and, if there is one, initrd at the top of the archive"
RAM_CONTENT = 'pack image.json ({"ram": true}), kernel and initrd, and no root/, at the top of the archive'


@dataclass(frozen=True)
class Image:
    """An image in the store. `kernel` and `initrd` (None where there is none), `root` (None: a RAM image) are paths."""

    hash: str
    name: str
    arch: str
    cmdline: str
    kernel: str | None
    initrd: str | None
    root: str | None

    @property
    def ram(self):
        """Whether all of it is in kernel and initrd: a system of the proxy's own, not for instances."""
        return self.root is None


def is_source(text):
    """Whether an `image` argument says where an image comes from (a path or URL), not its name in the store."""
    return "/" in text


def default_name(source):
    """The name of an image that was given none: its file's name without suffixes."""
    name = os.path.basename(source.split("?")[0].rstrip("/"))
    return next((name[: -len(suffix)] for suffix in SUFFIXES if name.endswith(suffix)), name)


class ImageStore:
    """Images below a folder (root only, 0700): <sha256>/ and names/<name>.

    :param kernels: whether an image must have a kernel, which those for containers do without.
    """

    def __init__(self, folder, kernels=True):
        self.folder = folder
        self.kernels = kernels

    def names(self):
        """{name: hash} of all images."""
        folder = os.path.join(self.folder, "names")
        if not os.path.isdir(folder):
            return {}
        found = {name: self._read_name(name) for name in sorted(os.listdir(folder)) if NAME.fullmatch(name)}
        return {name: hash for name, hash in found.items() if hash}

    def get(self, name):
        """The image of that name, or of that hash; BadInput lists the names there are."""
        hash = name if HASH.fullmatch(name) else NAME.fullmatch(name) and self._read_name(name)
        if not hash or not os.path.isdir(self._path(hash)):
            known = ", ".join(self.names()) or "none"
            what = f"no such image in the store (known: {known})"
            by = "import it: board_image with its path or URL"
            raise BadInput(what, name, by if self.kernels else "give the path of one on this node")
        return self._image(hash, name)

    def import_image(self, source, name, checksum=None, arch=None, change=None, progress=None, deadline=None):
        """Take an image into the store under a name; one whose hash is there already is only named.

        :param source: tar, folder, or http, https or file URL; a URL needs `checksum` ("sha256:…").
        :param arch: overrides the archive's image.json; this makes another image of the same archive.
        :param change: a Change; in its check mode nothing is fetched or written.
        :param progress: called with a text, now and then.
        :returns: the Image, or None where check mode cannot show what is not there yet.
        """
        deadline = deadline or Deadline(IMPORT_TIME)
        say = progress or (lambda text: None)
        if not NAME.fullmatch(name) or HASH.fullmatch(name):
            raise BadInput("is no name for an image", repr(name), "use letters, digits, '.', '_' and '-', at most 128")
        expected = _checksum(checksum)
        url = "://" in source
        if url and not expected:
            raise BadInput("needs a checksum", source, "give checksum: sha256:… of the archive")
        content = expected if url else _hash(source)
        if expected and content != expected:
            raise BadInput(f"has sha256 {content}, not {expected}", source, "check the file, or the checksum")
        hash = _image_hash(content, arch)
        before = self._read_name(name)
        stored = before is not None and os.path.isdir(self._path(before))
        after = {"hash": hash, "stored": True}
        changed = change is None or change.note(f"image {name}", {"hash": before, "stored": stored}, after)
        if change is not None and change.check:
            return self._image(hash, name) if os.path.isdir(self._path(hash)) else None
        if changed:
            with _writing(self.folder), self._locked(deadline, say):
                if not os.path.isdir(self._path(hash)):
                    self._take_in(source, content, hash, arch, say, deadline)
                self._write_name(name, hash)
        return self.get(name)

    # ---- taking in

    def _take_in(self, source, content, hash, arch, say, deadline):
        folder = self._path(f"{hash}.tmp.{os.getpid()}")
        download = folder + ".archive"
        try:
            os.mkdir(folder, 0o700)
            if "://" in source:
                _download(source, download, content, say, deadline)
                self._unpack(download, folder, say, source)
            elif os.path.isdir(source):
                copy_folder(source, folder, self._room(), lambda done: say(f"{done >> 20} MiB copied"))
                _unchanged(source, folder_hash(folder), content)
            else:
                self._unpack(source, folder, say, source)
                _unchanged(source, file_hash(source), content)
            _check(folder, source, arch, self.kernels)
            os.chmod(folder, 0o555)
            command(["sync", "-f", folder], folder, "check the disk", timeout=max(1.0, deadline.left))
            os.rename(folder, self._path(hash))
        finally:
            _remove(folder)
            _remove(download)

    def _unpack(self, archive, folder, say, source):
        try:
            unpack(archive, folder, self._room(), lambda done: say(f"{done >> 20} MiB unpacked"))
        except HeteroError as error:
            raise type(error)(error.what, source, error.remedy) from error

    def _room(self):
        free = os.statvfs(self.folder)
        return max(0, free.f_bavail * free.f_frsize - KEEP_FREE)

    @contextmanager
    def _locked(self, deadline, say):
        """One import at a time. What lies there unfinished was left by a killed one: only the holder makes such."""
        os.makedirs(os.path.join(self.folder, "names"), mode=0o700, exist_ok=True)
        os.chmod(self.folder, 0o700)
        lock = os.open(self._path(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _take(lock, self.folder, deadline, say)
            for entry in os.listdir(self.folder):
                if ".tmp." in entry:
                    _remove(self._path(entry))
            yield
        finally:
            os.close(lock)

    # ---- what is there

    def _path(self, entry):
        return os.path.join(self.folder, entry)

    def _read_name(self, name):
        try:
            with open(os.path.join(self.folder, "names", name), encoding="ascii") as file:
                hash = file.read(65).strip()
        except (FileNotFoundError, NotADirectoryError, UnicodeDecodeError):
            return None
        return hash if HASH.fullmatch(hash) else None

    def _write_name(self, name, hash):
        write_whole(os.path.join(self.folder, "names", name), f"{hash}\n")

    def _image(self, hash, name):
        folder = self._path(hash)
        about = _about(folder, folder)
        kernel, initrd = (os.path.join(folder, name) for name in ("kernel", "initrd"))
        return Image(
            hash=hash,
            name=name,
            arch=about["arch"],
            cmdline=about.get("cmdline", ""),
            kernel=kernel if os.path.exists(kernel) else None,
            initrd=initrd if os.path.exists(initrd) else None,
            root=None if about.get("ram") else os.path.join(folder, "root"),
        )


def _checksum(text):
    if text is None:
        return None
    kind, colon, value = text.partition(":")
    if kind != "sha256" or not HASH.fullmatch(value.lower()):
        raise BadInput("is no checksum", repr(text), "write sha256: and 64 hexadecimal digits")
    return value.lower()


@contextmanager
def _writing(folder):
    """Errors of the store's file system as errors that name the store."""
    try:
        yield
    except OSError as error:
        what = f"cannot be written ({error.strerror or error})"
        raise HeteroError(what, folder, "check space and permissions there") from error


def _unchanged(source, now, content):
    if now != content:
        raise BadInput("changed while it was imported", source, "import it again when nothing writes to it")


def _hash(source):
    if not os.path.exists(source):
        raise BadInput("no such file or folder on this node", source, "copy it there, or give a URL with its checksum")
    return folder_hash(source) if os.path.isdir(source) else file_hash(source)


def _image_hash(content, arch):
    """An image is its archive and what was said over its image.json."""
    return content if arch is None else hashlib.sha256(f"{content}\narch={arch}".encode()).hexdigest()


def _take(lock, folder, deadline, say):
    told = False
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            if deadline.passed:
                what = f"another import still runs after {deadline.seconds:g} s"
                raise TimedOut(what, folder, "wait for it, or raise timeout") from error
        if not told:
            say("waiting for another import")
            told = True
        deadline.nap()


def _download(url, path, expected, say, deadline):
    digest = hashlib.sha256()
    size = 0
    opener = urllib.request.build_opener()
    try:
        with opener.open(url, timeout=min(30.0, max(0.1, deadline.left))) as answer, open(path, "wb") as file:
            chunk = answer.read(CHUNK)
            while chunk:
                if deadline.passed:
                    what = f"not fetched within {deadline.seconds:g} s ({size >> 20} MiB came)"
                    raise TimedOut(what, url, "raise timeout")
                digest.update(chunk)
                file.write(chunk)
                if (size + len(chunk)) >> 26 > size >> 26:
                    say(f"{(size + len(chunk)) >> 20} MiB fetched")
                size += len(chunk)
                chunk = answer.read(CHUNK)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise HeteroError(f"cannot be fetched ({error})", url, "check the URL from this node, and its disk") from error
    if digest.hexdigest() != expected:
        what = f"came with sha256 {digest.hexdigest()} ({size} bytes), not {expected}"
        raise BadInput(what, url, "check the checksum, or fetch again")


def _check(folder, source, arch, kernels):
    """Check what an image must have, and write an overriding arch into it."""
    about = _about(folder, source)
    if arch is not None:
        about["arch"] = arch
        with open(os.path.join(folder, "image.json"), "w", encoding="utf-8") as file:
            json.dump(about, file, indent=2)
    if not isinstance(about.get("arch"), str) or not re.fullmatch(r"[A-Za-z0-9_.-]+", about["arch"]):
        raise BadInput("image.json: arch must be a word", source, 'write {"arch": "tilepro64"}, or give arch')
    # It becomes part of a boot entry: a line break would begin a command of its own there.
    cmdline = about.get("cmdline", "")
    if not isinstance(cmdline, str) or not re.fullmatch(r"[ -~]*", cmdline):
        raise BadInput("image.json: cmdline must be one line of ASCII", source, 'write {"cmdline": "quiet"}')
    ram = about.get("ram", False)
    if not isinstance(ram, bool):
        raise BadInput("image.json: ram must be true or false", source, RAM_CONTENT)
    content = RAM_CONTENT if ram else CONTENT
    for name, needed in (("kernel", kernels or ram), ("initrd", ram)):
        path = os.path.join(folder, name)
        if not os.path.lexists(path) and not needed:
            continue
        if not os.path.isfile(path):
            raise BadInput(f"{name}: no such file in it", source, content)
        if os.stat(path).st_nlink > 1:
            # Also a file of the root: its mode is the root's own.
            shutil.copyfile(path, f"{path}~")
            os.replace(f"{path}~", path)
        # in.tftpd serves only what everybody may read.
        os.chmod(path, 0o444)
    root = os.path.join(folder, "root")
    if ram and os.path.lexists(root):
        raise BadInput("is a RAM image and holds root, which nothing would use", source, content)
    if not ram and not os.path.isdir(root):
        raise BadInput("root: no such folder in it", source, content)


def _about(folder, source):
    path = os.path.join(folder, "image.json")
    if not os.path.isfile(path) or os.path.getsize(path) > CHUNK:
        there = ", ".join(sorted(os.listdir(folder))[:8]) or "nothing"
        raise BadInput(f"image.json: no such file in it (found: {there})", source, CONTENT)
    try:
        with open(path, encoding="utf-8") as file:
            about = json.load(file)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"image.json is not JSON ({error})", source, 'write {"arch": "tilepro64"}') from error
    if not isinstance(about, dict):
        raise BadInput("image.json is no JSON object", source, 'write {"arch": "tilepro64"}')
    return about


def _remove(path):
    """Remove a file or folder that may not be there; links in it are not followed."""
    if not os.path.lexists(path):
        return
    if stat.S_ISDIR(os.lstat(path).st_mode):
        shutil.rmtree(path)
    else:
        os.unlink(path)
