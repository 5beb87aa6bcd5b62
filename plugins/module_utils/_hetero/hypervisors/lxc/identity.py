# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A container's key, which neither a new container of the same name nor a copy has.

It contains an id in the container's configuration, which is valid only in the folder with the inode number beside it: a
copy lies in another folder. Beside the id are the lines that include what persistence.py writes and that run hooks.py.
"""

from __future__ import annotations

import os
import re
import shlex
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Collection, Iterable, NamedTuple, Pattern, Protocol, cast

from ...core import known_status
from ...core.child import in_child
from ...core.deadline import Deadline
from ...core.errors import EXHAUSTED, HeteroError, Refused, TimedOut, naming
from ...files.whole_file import as_before, write_whole
from . import folders, monitors
from .config_text import text_of

if TYPE_CHECKING:
    from .liblxc import Container

FOLDER = "hetero.d"
FILE = "devices.conf"
#: The command of this host, and its verb that LXC's hooks run.
COMMAND = "/usr/local/sbin/hetero"
VERB = "gpu-start"
#: Hooks that are used: the first may refuse the start, the second sees the container as it will be.
HOOKS = ("pre-start", "start-host")
IF_THERE = """/bin/sh -c '[ ! -e "$0" ] || exec "$@"'"""
ID = re.compile(r"^# hetero\.compute: id (?P<id>[0-9a-f]{32}) of folder (?P<folder>\d+)$", re.MULTILINE)
#: The folder of a container, by the path that was given with its id.
INCLUDED = re.compile(rf"^lxc\.include = (/.*)/{FOLDER}/$", re.MULTILINE)
#: Of a container whose folder was moved while it runs.
RUNS = "runs, and was started in {former}: LXC knows it by that path alone"
RUNS_WAY = (
    "nothing of it is changed: move its folder back there, and name that path; or, where it is to stay here, end it "
    "(lxc-stop -P {lxcpath} -n {name}); then run this again"
)
#: Of a container where another one may run by its path, in whose place it was made: LXC asks that one in its name.
RUNS_ANOTHER = (
    "process {pid} runs by its path, and has another root: another container's folder lay here at its start, or it has "
    "changed its root since"
)
RUNS_ANOTHER_WAY = (
    "nothing of it is changed: end what runs (lxc-stop -P {lxcpath} -n {name}); or, where another container's folder "
    "lay here, move that back here and this one out of its place; then run this again"
)
#: Folders between the root of a container and one in it that its init has as its root: more are not looked at.
DEPTH = 40
#: Seconds to look at these.
LOOK_TIME = 5.0
#: The collection's lines in a configuration that name the folder, and all of them, also those of a container that was
#: copied.
BY_PATH = rf"lxc\.include\s*=.*/{FOLDER}/\s*|lxc\.hook\..*/{FOLDER}/{FILE}'? .* {VERB} .*"
OURS = re.compile(rf"^(# hetero\.compute: .*|{BY_PATH})\n?", re.MULTILINE)


class InFolder(Protocol):
    """A container by its folder and the file of its configuration."""

    @property
    def folder(self) -> str: ...
    @property
    def config_file(self) -> str: ...


class Notes(Protocol):
    """What is written down in the host's database, and beside it (claims/host/store.py)."""

    def made(self) -> Collection[str]: ...
    def marked(self) -> folders.Marks: ...
    def note_marked(self, folder: str, mark: str | None = None) -> None: ...


class Folder(NamedTuple):
    """A container's folder, without LXC: a host of guests has none, and it takes not every name."""

    folder: str

    @property
    def config_file(self) -> str:
        return os.path.join(self.folder, "config")


def folder_of(container: Container) -> str:
    """Return the folder that its configuration includes."""
    return os.path.join(container.folder, FOLDER)


def file_of(container: Container) -> str:
    return os.path.join(folder_of(container), FILE)


def key_of(container: InFolder) -> str | None:
    """Return lxcpath/name#id, or None for a container that does not exist, has no id or has another's.

    :raises Refused: its configuration cannot be read.
    """
    found = written(container.config_file)
    try:
        number = os.stat(container.folder).st_ino
    except (FileNotFoundError, NotADirectoryError):
        return None
    return f"{container.folder}#{found[0]}" if found and found[1] == number else None


def key_by_id(container: InFolder) -> str | None:
    """Return the key that a container has by its configuration, also where its folder is a copy of the one with that
    key: whether it is the same container, nobody but a person can say.

    :raises Refused: its configuration cannot be read.
    """
    found = written(container.config_file)
    return f"{container.folder}#{found[0]}" if found else None


def must_be_seen(lxcpath: str, keys: Collection[str], marked: folders.Marks) -> None:
    """Raise Refused if some of these containers were made in a folder, and nothing that is seen there now says that it
    is still the one: none of them lies there, and it shows no sign (`folders.is_seen`).
    """
    here = _in_folder(lxcpath, keys)
    if not here or folders.is_seen(lxcpath, marked):
        return
    if not any(map(_lies_there, here)):
        raise folders.unseen(lxcpath, os.path.basename(here[0].rpartition("#")[0]), marked)


def must_be_no_more(lxcpath: str, keys: Collection[str], marked: folders.Marks) -> None:
    """Raise Refused if some of these containers, of which none is seen in its place, may be on a file system that is
    not mounted.
    """
    must_be_seen(lxcpath, keys, marked)
    for key in _in_folder(lxcpath, keys):
        folder = key.rpartition("#")[0]
        point = folders.not_mounted(folder)
        if point:
            raise folders.covered(point, os.path.basename(folder))


def note_marks(lxcpaths: Iterable[str], notes: Notes, sure: bool = False) -> None:
    """Write down which of these folders have the mark now: where it is missing later, another is seen there.

    Its id is written down as well once all containers that the database knows there are seen there, or a person said
    that they are no more: until then, it may be the mark of another folder, such as the bare point of a mount.

    :param sure: whether these are the folders that they were, as the container that is worked on lies there.
    """
    for lxcpath in filter(folders.is_marked, lxcpaths):
        marked, found = notes.marked(), folders.id_in(lxcpath)
        if found is not None and found == marked.get(lxcpath):
            continue
        here = _in_folder(lxcpath, notes.made())
        is_it = sure or folders.is_gone(lxcpath, marked)
        with suppress(Refused):  # of a configuration that cannot be read nobody can tell
            is_it = is_it or (bool(here) and all(map(_lies_there, here)))
        if is_it and found is None:
            with suppress(OSError):  # on a full disk, the next look does it
                found = folders.mark_anew(lxcpath)
        if is_it and found is not None:
            notes.note_marked(lxcpath, found)
        elif lxcpath not in marked:
            notes.note_marked(lxcpath)


def _in_folder(lxcpath: str, keys: Iterable[str]) -> list[str]:
    return sorted(key for key in keys if os.path.dirname(key.rpartition("#")[0]) == lxcpath)


def _lies_there(key: str) -> bool:
    """Return whether the container with a key lies in its place, or a copy of it."""
    return key_by_id(Folder(key.rpartition("#")[0])) == key


def id_of(key: str | None) -> str | None:
    """Return the id in a container's key, which stays the same where its folder is moved; None of none."""
    return key.rpartition("#")[2] if key else None


def written(configuration: str) -> tuple[str, int] | None:
    """Return (id, inode number of the folder for which it is valid) of a configuration, or None.

    The number is another folder's where the configuration lies in a copy of a container's folder.

    :param configuration: the path of that file.
    :raises Refused: it cannot be read.
    """
    found = ID.findall(text_of(configuration) or "")
    return (str(found[-1][0]), int(found[-1][1])) if found else None


def give_id(container: Container, command: str = COMMAND) -> str:
    """Give a container an id of its own and have its configuration include the folder; return the key.

    LXC accepts a missing folder, because its name ends with a slash; a missing file would be an error, also for lxc-ls.
    Without the file the hooks do nothing. Their lines are here and not in the file, because what LXC has read at a
    start counts until the monitor ends, and the file may be written meanwhile.
    """
    with naming(container.config_file):
        number = os.stat(container.folder).st_ino
    _write_lines(container, OURS, [f"# hetero.compute: id {uuid.uuid4().hex} of folder {number}"], command)
    return cast("str", key_of(container))


def follow(container: Container, command: str = COMMAND) -> None:
    """Have the lines of a container that has an id name its folder, which was moved since; LXC would find nothing by
    the former path. Its id stays, and so do the lines where they are right.
    """
    if not includes(container):
        _write_lines(container, re.compile(rf"^({BY_PATH})\n?", re.MULTILINE), [], command)


def _write_lines(container: Container, former: Pattern[str], lines: list[str], command: str) -> None:
    """Write lines into a configuration, in place of former ones, and those that name the folder."""
    path = container.config_file
    with naming(path):
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            text = former.sub("", file.read())
        lines = [*lines, f"lxc.include = {folder_of(container)}/"]
        # LXC has a shell run one command, and adds the container's name, "lxc", and the hook's name.
        run = f"{shlex.quote(file_of(container))} {command} {VERB} {shlex.quote(container.lxcpath)} {container.name}"
        lines += [f"lxc.hook.{hook} = {IF_THERE} {run}" for hook in HOOKS]
        os.makedirs(folder_of(container), mode=0o700, exist_ok=True)
        end = "" if text.endswith("\n") or not text else "\n"
        write_whole(path, text + end + "\n".join(lines) + "\n", **as_before(path, 0o600))
        folders.mark(container.lxcpath)
    container.reload()


def includes(container: Container) -> bool:
    """Return whether its configuration has the line that includes the folder."""
    return f"lxc.include = {folder_of(container)}/" in (text_of(container.config_file) or "").splitlines()


def must_be_called_so(container: Container) -> None:
    """Raise Refused where a container was given its id in the same folder by another path, such as through a link, or
    runs by it: by this one it would count as another, and LXC does not see whether it runs.
    """
    others = () if container.init_pid else monitors.of_root()
    runs = [os.path.join(*place) for place in others if place[1] == container.name]
    for former in [*INCLUDED.findall(text_of(container.config_file) or ""), *runs]:
        if former != container.folder and os.path.isdir(former) and os.path.samefile(former, container.folder):
            what = f"is the same as {former}, which runs, or was given its GPUs, or its id, by that path"
            raise Refused(what, container.folder, f"give lxcpath {os.path.dirname(former)}")


def must_run_by_no_other(container: Container) -> None:
    """Raise Refused if a container was moved while it runs: LXC knows it by the path by which it was given its id, and
    by this one it would seem stopped. A copy of it is another.
    """
    for former in INCLUDED.findall(text_of(container.config_file) or "") if key_of(container) else ():
        if former != container.folder and runs_by(former):
            lxcpath, name = os.path.split(former)
            way = RUNS_WAY.format(lxcpath=shlex.quote(lxcpath), name=name)
            raise Refused(RUNS.format(former=former), container.folder, way)


def runs_by(former: str) -> bool:
    """Return whether a container runs by the path of a folder that is no more there: it was moved while it ran."""
    lxcpath, name = os.path.split(former)
    return not os.path.lexists(former) and monitors.owner(name, lxcpath) == 0


def was_moved(key: str, now: str, marked: folders.Marks) -> bool:
    """Return whether the container with a key is the one with another key, as its folder was moved since. Not where it
    runs by its former path; nor where it may still be there, on a file system that is not mounted: what is seen
    elsewhere would be a copy of it.
    """
    former, path = key.rpartition("#")[0], now.rpartition("#")[0]
    if former == path or id_of(key) != id_of(now):
        return False
    if os.path.lexists(former) or folders.not_mounted(former) or runs_by(former):
        return False
    lxcpath = os.path.dirname(former)
    return folders.is_seen(lxcpath, marked) or folders.was_moved(lxcpath, os.path.dirname(path), marked)


def runs_another(container: Container, pid: int) -> bool:
    """Return whether another one may run by a container's path than the one that lies there: its folder was moved aside
    while it runs, and this one made in its place. The root with which what runs was started tells, for its init may go
    on in a folder of it, and the configuration may name another one for the next start.

    Where that root is no folder that is seen here, such as an overlay or a device, it is the same one that the
    configuration names; or else the container has had its id in this place.

    :param pid: the init that LXC names.
    :raises OSError: there is no process or file left for the look.
    """
    root = container.running_item("lxc.rootfs.path")
    try:
        if root.startswith("/") and os.path.isdir(root):
            seen = known_status.status(root)
            above = _above(pid, container.thing)
            if [seen.st_dev, seen.st_ino] in above:
                return False
            # an empty one may be the point where this host mounts its disk no more
            if above and (os.listdir(root) or seen.st_dev == above[0][0]):
                return True
        elif root == container.get("lxc.rootfs.path") and _is_whole(root):
            return False
    except ProcessLookupError:  # it has ended meanwhile
        return False
    except OSError as error:
        if error.errno in EXHAUSTED:
            raise
        # its root was removed meanwhile, or nothing can be told of it
    return key_of(container) is None or not includes(container)


def _above(pid: int, thing: str) -> list[list[int]]:
    """Return [[number of its file system, inode]] of a process's root and the folders above it; [] of one of which that
    cannot be told, such as where it goes from one program to the next, and a file system of its own answers nothing.

    :raises ProcessLookupError: it has ended.
    :raises OSError: there is no process left for the look.
    """

    def seen() -> list[tuple[int, int]]:
        # it may have gone into a file system whose server, a program of its own, answers nothing
        folders = [known_status.status(f"/proc/{pid}/root/{'../' * up}") for up in range(DEPTH)]
        return [(folder.st_dev, folder.st_ino) for folder in folders]

    try:
        return list(in_child(seen, Deadline(LOOK_TIME), thing, "see its processes", closes=True))
    except TimedOut:
        return []
    except HeteroError as error:
        if _goes_on(pid):
            return []
        raise ProcessLookupError(error.what) from error


def _goes_on(pid: int) -> bool:
    """Return whether a process has not ended; its root's name is the kernel's own, and nobody is asked for it."""
    try:
        return bool(os.readlink(f"/proc/{pid}/root"))
    except OSError:
        return False


def _is_whole(root: str) -> bool:
    """Return whether a root is there, or all layers of an overlay; also of one whose name is no path."""
    return not root.startswith("/") or os.path.exists(root) or all(map(os.path.exists, root.split(":")))


def must_run_itself(container: Container) -> None:
    """Raise Refused if another one may run by a container's path: that one's processes would be worked on."""
    pid = container.init_pid
    if pid and runs_another(container, pid):
        way = RUNS_ANOTHER_WAY.format(lxcpath=shlex.quote(container.lxcpath), name=container.name)
        raise Refused(RUNS_ANOTHER.format(pid=pid), container.folder, way)


def settles(container: Container) -> bool:
    """Return whether LXC runs the hooks when a running container reboots from inside: it had them when it started.

    Without them such a reboot takes away what was given since.
    """
    return f" {VERB} " in container.running_item(f"lxc.hook.{HOOKS[1]}")
