# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Folders and files of one's own (root's, on a node), all made what they are to be in one go, and the services
that must be restarted for it. The caller says what the files hold.

One module run for all of a node's files, because a task a file costs 0.4 s over ssh, and because Ansible's own
template module fails in check mode where the folder of the file is yet to be made.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shlex
import stat
import tempfile
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Collection, Iterator, Mapping, Sequence, TypedDict

from ..core.command import command
from ..core.errors import BadInput, HeteroError, naming
from ..core.json_file import read_object
from ..core.locks import open_turn
from ..files import by_hand
from ..files.package_files import is_as_packaged
from ..files.plain_file import read_plain
from ..files.whole_file import write_whole

if TYPE_CHECKING:
    from ..core.changes import Change


#: In the text of all files that roles and module node_tools write, where their format has room for it.
MARK = b"hetero.compute"


class ToDo(TypedDict):
    """What is to be done with systemd units: names of those to restart, to start and to stop.

    :ivar reload: whether systemd must read its unit files again first.
    """

    restart: list[str]
    start: list[str]
    stop: list[str]
    reload: bool


def keep_folder(path: str, mode: str, change: Change) -> None:
    """Have a folder of one's own with that mode (octal digits)."""
    wanted = dict(kind="folder", mode=mode, owner=_owner(os.geteuid(), os.getegid()))
    found = _found(path, "folder")
    if change.note(path, found, wanted) and not change.check:
        os.makedirs(path, exist_ok=True)
        _own(path, mode)


def check_file(path: str, data: bytes, program: str, variables: Sequence[str] = ()) -> None:
    """Have the program whose file it is to be check these bytes. `path` is not touched.

    :param program: a command whose `%s` becomes the name of a file with them; one that lies there already was taken.
    :param variables: what it is made from, for who must correct it.
    :raises HeteroError: the program does not take them.
    """
    if not program or _holds(path, data):
        return
    with tempfile.TemporaryDirectory(prefix="hetero-files-") as folder:
        scratch = os.path.join(folder, os.path.basename(path))
        with open(scratch, "wb") as file:
            file.write(data)
        remedy = f"correct {', '.join(variables) or 'its variables'}"
        try:
            command([part.replace("%s", scratch) for part in shlex.split(program)], path, remedy)
        except HeteroError as error:
            # by the name that it would have: the scratch file is gone when somebody reads this
            raise HeteroError(error.what.replace(scratch, path), error.thing, error.remedy) from error


def keep_by_hand(path: str, data: bytes, change: Change) -> str | None:
    """Have what lies at `path` stay under another name, before these bytes come in its place, if somebody wrote it.

    :returns: that name; None where nothing is there, or it is the same, has MARK, or is as a package brought it.
    """
    if not os.path.lexists(path) or _holds(path, data):
        return None
    old = read_plain(path)
    if old is not None and (MARK in old or is_as_packaged(path)):
        return None
    seen, name = _found(path, "file"), by_hand.kept_name(path)
    change.note(name, {}, seen)
    return name if change.check else by_hand.keep(path)


def keep_file(path: str, data: bytes, mode: str, change: Change, secret: bool = False, theirs: bool = False) -> bool:
    """Have a regular file with these bytes.

    :param secret: the record shows that it changes, never what it holds.
    :param theirs: the record shows of what is there now only how long it is: somebody else wrote it, and it may hold a
        password. So it is with what has no MARK where these bytes have it.
    :returns: whether it was, or in check mode would be, written.
    """
    before = _found(path, "file")
    after = dict(kind="file", mode=mode, owner=_owner(os.geteuid(), os.getegid()))
    after.update(dict(content="secret") if secret else _shown(data))
    if before.get("kind") == "file":
        with open(path, "rb") as file:
            old = file.read()
        if secret:
            before.update(content="secret" if old == data else "another secret")
        elif theirs or (MARK in data and MARK not in old):
            before.update(content=f"not ours, {len(old)} bytes")
        else:
            before.update(_shown(old))
    if not change.note(path, before, after):
        return False
    if not change.check:
        # a reader sees the old file or the whole new one
        write_whole(path, data, int(mode, 8), (os.geteuid(), os.getegid()))
    return True


def source_bytes(path: str, change: Change) -> bytes | None:
    """Return the bytes of a file on this machine, or None if check mode runs before its package is there."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError as error:
        if change.check:
            return None
        raise BadInput("no such file to copy from", path, "install its package") from error


@contextmanager
def alone_in(folder: str) -> Iterator[None]:
    """Keep other processes that ask for the same from a folder for the block: a flock, which the kernel drops with its
    process. Where there is no such folder yet, nobody has anything in it.
    """
    if not os.path.isdir(folder):
        yield
        return
    with naming(folder):
        opened = open_turn("part", folder)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)  # held for one look and one file
        yield
    finally:
        os.close(opened)


def with_keys(path: str, keys: Mapping[str, Any]) -> bytes | None:
    """Return the bytes of a JSON object's file with these keys set and the others kept, or None if no key is left.

    :param keys: a key whose value is None is taken away.
    """
    there = (
        read_object(path, "correct it, or move it away and run the set-up playbooks again")
        if os.path.lexists(path)
        else {}
    )
    data = {key: value for key, value in {**there, **keys}.items() if value is not None}
    return (json.dumps(data, indent=4, sort_keys=True) + "\n").encode() if data else None


def no_file(path: str, change: Change) -> None:
    """Remove the file at `path`, if there is one."""
    if change.note(path, _found(path, "file"), {}) and not change.check:
        os.unlink(path)


def units_to_do(on: Mapping[str, Sequence[str]], off: Collection[str], changed: Collection[str]) -> ToDo:
    """Return what is to be done with systemd units so that they run with the files that they read at their start.

    A unit that started before one of its files was written is restarted, so that a set-up that was cut off in between
    is made good by the next one.

    :param on: units that are to run and to be enabled, each with its files.
    :param off: units that are to do neither (masked, disabled or unknown).
    :param changed: paths that were written, or in check mode would be.
    """
    todo = ToDo(restart=[], start=[], stop=[], reload=False)
    for name, unit in _units([*on, *off]).items():
        active = unit["ActiveState"] in ("active", "reloading")
        # static: nothing to enable, another unit starts it
        enabled = unit["UnitFileState"] in ("enabled", "generated", "static")
        if name in off:
            if active or not (unit["LoadState"] in ("masked", "not-found") or unit["UnitFileState"] == "disabled"):
                todo["stop"].append(name)
            continue
        todo["reload"] |= unit["NeedDaemonReload"] == "yes"
        if active and _older(unit, on[name], changed):
            todo["restart"].append(name)
        elif not active or not enabled:
            todo["start"].append(name)
    return todo


def _units(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return what systemd knows of the units, as {name: {property: value}}."""
    if not names:
        return {}
    wanted = "Id,LoadState,ActiveState,UnitFileState,NeedDaemonReload,ActiveEnterTimestampMonotonic"
    said = command(["systemctl", "show", f"--property={wanted}", *names], remedy="see: systemctl status")
    return {
        name: dict(line.split("=", 1) for line in block.splitlines())
        for name, block in zip(names, said.strip().split("\n\n"))
    }


def _older(unit: Mapping[str, str], paths: Collection[str], changed: Collection[str]) -> bool:
    """Return whether a running unit started before one of the files was written."""
    now = time.time()
    started = now - (time.monotonic() - int(unit["ActiveEnterTimestampMonotonic"]) / 1e6)
    times = [os.stat(path).st_mtime for path in paths if os.path.exists(path)]
    # a file from the future (a clock that was set back) would be newer for ever
    return bool(set(paths) & set(changed)) or any(started < mtime <= now for mtime in times)


def _found(path: str, wanted: str) -> dict[str, Any]:
    """Return what is at `path` now, as a record for the diff; another kind of thing in its place is refused."""
    try:
        seen = os.lstat(path)
    except FileNotFoundError:
        return {}
    kind = "folder" if stat.S_ISDIR(seen.st_mode) else "file" if stat.S_ISREG(seen.st_mode) else "link"
    if kind != wanted and not (kind == "link" and wanted == "file"):
        raise HeteroError(f"is a {kind}, not a {wanted}", path, "move it away")
    return dict(kind=kind, mode=f"{stat.S_IMODE(seen.st_mode):04o}", owner=_owner(seen.st_uid, seen.st_gid))


def _owner(uid: int, gid: int) -> str:
    return "root" if uid == gid == 0 else f"{uid}:{gid}"


def _shown(data: bytes) -> dict[str, Any]:
    """Return a file's content as the diff shows it: line by line, so that Ansible shows the lines that change."""
    try:
        return dict(lines=data.decode("utf-8").split("\n"))
    except UnicodeDecodeError:
        return dict(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())


def _holds(path: str, data: bytes) -> bool:
    """Return whether a plain file has these bytes."""
    try:
        return read_plain(path) == data
    except OSError:
        return False


def _own(path: str, mode: str) -> None:
    os.chown(path, os.geteuid(), os.getegid())
    os.chmod(path, int(mode, 8))
