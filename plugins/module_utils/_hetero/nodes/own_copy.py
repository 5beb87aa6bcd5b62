# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The copies of the collection on a node: made of what plugin_utils/node_copy.py packs, removed when no command starts
from them any more.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tarfile
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Iterator, Mapping

from ..core.deadline import Deadline
from ..core.errors import BadInput, TimedOut, naming
from ..core.locks import holder_of, open_turn, taken
from .tools import PACKAGE, name_of

if TYPE_CHECKING:
    from ..core.changes import Change

NAME = re.compile(r"[0-9a-f]{16}(~|\Z)")
#: Of one that is being written, or that a writer has left which was killed.
SCRATCH = re.compile(r"[0-9a-f]{16}~")
#: Seconds that a set-up waits for another one's work here, which takes one.
PATIENCE = 120.0
#: Where releases before these had their only one.
EARLIER = os.path.join(PACKAGE, "node", "tools.py")
#: Made by Python beside what it reads.
CACHE = "__pycache__"


@contextmanager
def in_turn(folder: str) -> Iterator[None]:
    """Hold the folder for the block: one set-up at a time works in it, and has commands start from there.

    :raises TimedOut: another one holds it for longer than PATIENCE.
    """
    with naming(folder):
        file = open_turn("copy", folder)
    try:
        if not taken(file, Deadline(PATIENCE)):
            what = f"another set-up ({holder_of(file)}) works in it since {PATIENCE:g} s"
            raise TimedOut(what, folder, "wait for that, or end it, then run this again")
        yield
    finally:
        os.close(file)


def keep_copy(folder: str, archive: str, change: Change) -> str:
    """Have the copy that an archive holds in `folder`, and return its path.

    A copy whose files do not match its name is made anew. It is there as a whole or not at all.

    :raises BadInput: the archive cannot be read.
    """
    code = _unpacked(archive)
    path = os.path.join(folder, name_of(code))
    with naming(path):
        found = _read(path)
        if change.note(path, dict(files=len(found), whole=found == code), dict(files=len(code), whole=True)):
            if not change.check:
                _write(path, code)
    return path


def remove_others(folder: str, copy: str, change: Change) -> None:
    """Remove copies of other releases; nothing else that may lie in the folder is touched."""
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        path = os.path.join(folder, name)
        earlier = name == PACKAGE and os.path.exists(os.path.join(folder, EARLIER))
        if path != copy and (earlier or (NAME.match(name) and _is_copy(path))):
            change.note(path, dict(kind="folder"), {})
            if not change.check:
                with naming(path):
                    shutil.rmtree(path)


def _is_copy(path: str) -> bool:
    """Return whether a folder holds a whole or partial copy of the collection, and nothing else."""
    return os.path.isdir(path) and not os.path.islink(path) and {*os.listdir(path)} <= {PACKAGE, "ansible"}


def _unpacked(archive: str) -> dict[str, bytes]:
    code = {}
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                file = tar.extractfile(member)
                if file is not None:
                    code[member.name] = file.read()
    except (OSError, tarfile.TarError) as error:
        raise BadInput(f"cannot be unpacked ({error})", archive, "call this module by a play or by ansible") from error
    return code


def _read(path: str) -> dict[str, bytes | None]:
    """Return {path below it: bytes} of a copy, None for what is no file; it is empty if there is no copy."""
    found = {}
    for base, folders, names in os.walk(path) if not os.path.islink(path) else ():
        folders[:] = [name for name in folders if name != CACHE]
        for name in names:
            found[os.path.relpath(os.path.join(base, name), path)] = _content(os.path.join(base, name))
    return found


def _content(path: str) -> bytes | None:
    if not stat.S_ISREG(os.lstat(path).st_mode):
        return None
    with open(path, "rb") as file:
        return file.read()


def _write(path: str, code: Mapping[str, bytes]) -> None:
    folder, own = os.path.split(path)
    for name in os.listdir(folder):
        if SCRATCH.match(name) and _is_copy(os.path.join(folder, name)):
            shutil.rmtree(os.path.join(folder, name))
    scratch = tempfile.mkdtemp(prefix=f"{own}~", dir=folder)
    before = os.umask(0o022)  # everybody reads it, and root alone writes it: what is in it runs as root
    try:
        os.chmod(scratch, 0o755)
        for name, data in code.items():
            os.makedirs(os.path.dirname(os.path.join(scratch, name)), exist_ok=True)
            with open(os.path.join(scratch, name), "xb") as file:
                file.write(data)
        os.sync()
        _make_way(path)
        os.rename(scratch, path)
    except OSError:
        shutil.rmtree(scratch)
        raise
    finally:
        os.umask(before)


def _make_way(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)
