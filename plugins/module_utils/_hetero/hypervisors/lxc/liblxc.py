# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers of LXC as this host has them: configuration, state, device rules, start and end.

All except the start is done in this process. Others know what belongs into a container, and what its files are.
"""

from __future__ import annotations

import _thread
import ctypes
import os
import re
import tempfile
import weakref
from dataclasses import dataclass
from typing import Any, Callable

from ...core.command import Limits, ended
from ...core.deadline import Deadline
from ...core.errors import BadInput, HeteroError, TimedOut, naming
from ...devices.cgroup import mounts, trees
from . import monitors, own_file_systems
from .liblxc_calls import ANSWER, Library
from .monitors import ANSWER_TIME

LXCPATH = "/var/lib/lxc"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
#: Seconds after which an init is asked again to end.
ASK_AGAIN = 5.0
#: Seconds from the signal that kills a container's init to its monitor's end; and to remove a root.
STOP_TIME = 30.0
#: Seconds after which one that has not ended is pushed again; without frozen processes it has ended by then.
PUSH_AGAIN = 0.2
DESTROY_TIME = 300.0
#: The beginning of a line of LXC's log, up to its level.
RECORD = re.compile(r"\S+ .*?\d{14}\.\d+ +(?P<level>[A-Z]+) +(?P<rest>.*)")
HOOK_SAID = " produced output: "


@dataclass(frozen=True)
class IdMap:
    """A line of lxc.idmap: `count` ids from `inside` are the host's ids from `outside`; kind is "u" or "g"."""

    kind: str
    inside: int
    outside: int
    count: int


class Container:
    """A container by its name and the folder of all containers. It need not exist.

    Its configuration is read when it is first needed, and again after `reload()`.

    :param library: with False liblxc need not be there before LXC is asked.
    """

    def __init__(self, name: str, lxcpath: str = LXCPATH, library: bool = True) -> None:
        if not NAME.fullmatch(name):
            raise BadInput("is no name for a container", repr(name), "use letters, digits, '.', '_' and '-'")
        self.name = name
        self.lxcpath = os.path.normpath(lxcpath)
        if library:
            Library.get()
        self._struct: Any = None
        self._close: Callable[[], object] | None = None
        self._id_map: list[IdMap] | None = None

    def __str__(self) -> str:
        return f"container {self.name}"

    @property
    def thing(self) -> str:
        """Its name in errors."""
        return str(self) if self.lxcpath == LXCPATH else f"container {self.name} of {self.lxcpath}"

    @property
    def lock_name(self) -> str:
        """The name of the lock for giving devices to it and taking them back."""
        return "lxc" + self.folder.replace("/", "-")

    # ---- what is set

    @property
    def folder(self) -> str:
        return os.path.join(self.lxcpath, self.name)

    @property
    def config_file(self) -> str:
        return os.path.join(self.folder, "config")

    @property
    def defined(self) -> bool:
        return os.path.isfile(self.config_file)

    def reload(self) -> None:
        """Forget what was read of its configuration."""
        if self._close is not None:
            self._close()
        self._struct = self._close = self._id_map = None

    def get(self, key: str) -> str:
        """Return a key of its configuration, or "". Several values stand in a line each."""
        answer = ctypes.create_string_buffer(ANSWER)
        struct = self._open()
        size = struct.contents.get_config_item(struct, key.encode(), answer, ANSWER)
        if size >= ANSWER:
            raise HeteroError(f"{key} is longer than {ANSWER} letters", self.thing, "shorten it")
        return os.fsdecode(answer.value).rstrip("\n") if size > 0 else ""

    @property
    def root(self) -> str:
        """The folder with its root, or with the upper layer of an overlay, or where the host mounts its disk
        (disks.py).

        The last is an empty folder for a device that only LXC mounts.
        """
        # liblxc leaves out the kind (confile.c, set_config_rootfs_path): of "lvm:/dev/vg/box" it returns /dev/vg/box.
        path = self.get("lxc.rootfs.path")
        folders = [one for one in (path, path.rsplit(":", 1)[-1]) if one.startswith("/") and os.path.isdir(one)]
        return folders[0] if folders else os.path.join(self.folder, "rootfs")

    @property
    def id_map(self) -> list[IdMap]:
        """Its id map; empty for a privileged container."""
        if self._id_map is None:
            found = (line.split() for line in self.get("lxc.idmap").splitlines())
            self._id_map = [IdMap(kind, *(int(number) for number in numbers)) for kind, *numbers in found]
        return self._id_map

    @property
    def unprivileged(self) -> bool:
        return bool(self.id_map)

    @property
    def root_owner(self) -> tuple[int, int]:
        """Return (user id, group id) of the container's root on this host."""
        return self.host_id("u", 0), self.host_id("g", 0)

    def host_id(self, kind: str, number: int) -> int:
        """Return the host's id of a user ("u") or group ("g") of the container; its root's for one that it does not
        have.
        """
        lines = [line for line in self.id_map if line.kind == kind]
        if not lines:
            return number
        for wanted in (number, 0):
            for line in lines:
                if line.inside <= wanted < line.inside + line.count:
                    return line.outside + wanted - line.inside
        raise HeteroError("its lxc.idmap has no root", self.thing, "write one that begins with 0")

    # ---- whether it runs

    @property
    def state(self) -> str:
        """RUNNING, STOPPED, STARTING, STOPPING, ABORTING, FREEZING, FROZEN or THAWED."""
        self._monitored_by_root()
        return self._ask("state").decode()

    @property
    def running(self) -> bool:
        return self.state not in ("STOPPED", "STARTING")

    @property
    def init_pid(self) -> int | None:
        """The process id of its init on this host, or None if it does not run."""
        self._monitored_by_root()
        pid = self._ask("init_pid")
        return pid if pid > 0 else None

    def _monitored_by_root(self) -> None:
        """Raise HeteroError if another account of this machine answers in place of its monitor."""
        owner = monitors.owner(self.name, self.lxcpath)
        if owner not in (None, 0):
            what = f"user id {owner} of this machine answers in place of its monitor"
            remedy = f"end who has its socket: ss -xlp | grep {monitors.address_of(self.name, self.lxcpath)}"
            raise HeteroError(what, self.thing, remedy)

    def running_item(self, key: str) -> str:
        """Return a key with which the running container was started, or "". Its file may differ by now."""
        pointer = self._ask("get_running_config_item", key.encode())
        return (Library.get().text(pointer) or "").rstrip("\n")

    # ---- what it may open

    def allow(self, rule: str) -> None:
        """Add a device rule to the running container ("c 195:0 rw").

        With cgroup v2 this makes a container without rules deny all else (lxc.cgroup2.devices), so callers evaluate
        first.
        """
        self._set_rule("devices.allow", rule)

    def deny(self, rule: str) -> None:
        """Remove a device rule.

        With cgroup v2 one that equals no rule has no effect, so callers evaluate afterwards.
        """
        self._set_rule("devices.deny", rule)

    def _set_rule(self, item: str, rule: str) -> None:
        done, number = self._asked("set_cgroup_item", item.encode(), str(rule).encode())
        if not done:
            why = Library.get().said() or (os.strerror(number) if number else "liblxc says no more")
            remedy = "it must run, and its cgroup's parent must allow the device"
            raise HeteroError(f"{item} = {rule} was not taken ({why})", self.thing, remedy)

    # ---- start and end

    def start(self, timeout: float = 60.0) -> None:
        """Start it by lxc-start. A monitor that is started from this process would keep its memory, files and name.

        :param timeout: seconds.
        :raises HeteroError: it did not start; the text has what a hook of its start said.
        """
        self._must_be_defined()
        with tempfile.NamedTemporaryFile(prefix="hetero-lxc-", suffix=".log") as log:
            argv = ["lxc-start", "-P", self.lxcpath, "-n", self.name, "-o", log.name, "-l", "DEBUG"]
            try:
                done = ended(argv, self.thing, "lxc-start says why", Limits(timeout))
            except TimedOut as error:
                raise TimedOut(error.what, self.thing, "its start goes on: see its hooks, or raise timeout") from error
            if done.returncode != 0:
                said, errors = _words(log.read().decode("utf-8", "replace"))
                raise HeteroError(
                    said or f"does not start: {errors or done.stderr.strip() or 'lxc-start does not say why'}",
                    self.thing,
                    None if said else f"see its configuration, {self.config_file}",
                    log=errors,
                )
        self.reload()

    def shutdown(self, timeout: float = 60.0) -> None:
        """Ask its init to end (lxc.signal.halt), and wait for the end.

        :raises TimedOut: it still runs.
        """
        if self.state == "STOPPED":
            return
        deadline = Deadline(timeout)
        # Repeated, because an init that has just begun does not know the signal yet, and the kernel drops it.
        while not self._shut_down(deadline.within(ASK_AGAIN)):
            if deadline.passed:
                remedy = "stop it by force, or raise timeout; does its init know the signal lxc.signal.halt?"
                raise TimedOut(f"still runs {timeout:g} s after it was asked to end", self.thing, remedy)
        self._wait_stopped(Deadline(ANSWER_TIME))

    def _shut_down(self, deadline: Deadline) -> bool:
        seconds = max(1, round(deadline.seconds))  # liblxc counts whole ones
        return self._ask("shutdown", seconds, timeout=seconds + ANSWER_TIME)

    def stop(self, timeout: float = STOP_TIME) -> None:
        """End it at once, even if it has frozen itself."""
        if self.state == "STOPPED":
            return
        deadline, cgroups, id_map = Deadline(timeout), self._cgroups(), self.id_map

        def push() -> None:
            trees.end_all(cgroups, deadline)
            own_file_systems.end_all(id_map, cgroups, deadline)

        if not self._ask("stop", timeout=timeout, meanwhile=push) and self.state != "STOPPED":
            raise HeteroError(f"cannot be stopped ({Library.get().said()})", self.thing, "see ps and dmesg")
        self._wait_stopped(Deadline(timeout), push)

    def _cgroups(self) -> dict[str, str]:
        """Return {version: folder} of the cgroups in which only it is; {} if it has no init to tell."""
        pid = self.init_pid
        try:
            return mounts.alone_in(pid, self.name) if pid else {}
        except HeteroError:
            return {}

    def reboot(self, timeout: float = 60.0) -> None:
        """End and start it. LXC's own reboot would use the configuration of the last start and not the file."""
        deadline = Deadline(timeout)
        self.shutdown(timeout)
        self.start(max(1.0, deadline.left))

    def destroy(self) -> None:
        """Remove its root and its folder; it must not run."""
        if not self.defined:
            return
        if not self._ask("destroy", timeout=DESTROY_TIME) or os.path.lexists(self.config_file):
            why = Library.get().said() or f"it is {self.state}"
            raise HeteroError(f"cannot be destroyed ({why})", self.thing, "stop it first, and see who uses its root")
        self.reload()

    def wait_running(self, timeout: float) -> None:
        """Wait for the end of its start.

        :raises TimedOut: it does not run after `timeout` seconds.
        """
        if not self._ask("wait", b"RUNNING", max(1, int(timeout)), timeout=timeout):
            raise TimedOut(f"is {self.state}, not RUNNING, after {timeout:g} s", self.thing, "see its log")

    def _wait_stopped(self, deadline: Deadline, meanwhile: Callable[[], None] | None = None) -> None:
        seconds = max(1, int(deadline.left))
        if not self._ask("wait", b"STOPPED", seconds, timeout=seconds + ANSWER_TIME, meanwhile=meanwhile):
            raise TimedOut(f"is {self.state}, not STOPPED", self.thing, "see its log")

    # ---- asking

    def _must_be_defined(self) -> None:
        if not self.defined:
            known = ", ".join(containers(self.lxcpath)[:10]) or "none"
            raise BadInput(f"no such container (known: {known})", self.thing, "check name and lxcpath")

    def _open(self) -> Any:
        if self._struct is None:
            self._must_be_defined()
            Library.get().said()
            struct = Library.get().new(os.fsencode(self.name), os.fsencode(self.lxcpath))
            if not struct:
                why = Library.get().said() or "liblxc says no more"
                remedy = "correct it; a file that it includes must be there"
                raise HeteroError(f"its configuration cannot be read ({why})", self.config_file, remedy)
            self._struct = struct
            self._close = weakref.finalize(self, Library.get().put, struct)
        return self._struct

    def _ask(
        self,
        function: str,
        *arguments: object,
        timeout: float = ANSWER_TIME,
        meanwhile: Callable[[], None] | None = None,
    ) -> Any:
        return self._asked(function, *arguments, timeout=timeout, meanwhile=meanwhile)[0]

    def _asked(
        self,
        function: str,
        *arguments: object,
        timeout: float = ANSWER_TIME,
        meanwhile: Callable[[], None] | None = None,
    ) -> tuple[Any, int]:
        """Call a function of liblxc in limited time; return (its result, the error number after it).

        :param meanwhile: is called now and then until the result is there.
        """
        struct = self._open()
        answer: list[tuple[Any, int]] = []
        done = _thread.allocate_lock()
        done.acquire()

        def call() -> None:
            try:
                answer.append((getattr(struct.contents, function)(struct, *arguments), ctypes.get_errno()))
            finally:
                done.release()

        # As threading.Thread does, but without waiting for the thread's begin.
        _thread.start_new_thread(call, ())
        deadline = Deadline(timeout)
        while not done.acquire(timeout=min(PUSH_AGAIN, deadline.left) if meanwhile else timeout):
            if meanwhile is None or deadline.passed:
                remedy = "is it in a hook of its start, or its monitor stopped (ps, '[lxc monitor]')?"
                raise TimedOut(f"its monitor did not answer ({function}) within {timeout:g} s", self.thing, remedy)
            meanwhile()
        return answer[0]


def containers(lxcpath: str = LXCPATH) -> list[str]:
    """Return the names of all containers that are defined in a folder, sorted. For none liblxc need not be there."""
    with naming(lxcpath):
        names = os.listdir(lxcpath) if os.path.isdir(lxcpath) else []
    some = any(os.path.exists(os.path.join(lxcpath, name, "config")) for name in names)
    return sorted(Library.get().defined(lxcpath)) if some else []


def running(lxcpath: str = LXCPATH) -> list[str]:
    """Return the names of those that run, sorted. Claims of accounts without rights do not count."""
    folder = os.path.normpath(lxcpath)
    return sorted(name for place, name in monitors.of_root() if os.path.normpath(place) == folder)


def _words(log: str) -> tuple[str | None, str]:
    """Return (what a hook said before LXC gave up, or None; LXC's errors, or "") of a log."""
    said, script, errors, reading = [], None, [], False
    for line in log.splitlines():
        record = RECORD.match(line)
        if record is None:
            if reading:
                said.append(line.strip())  # a hook's further lines
            continue
        text = record.group("rest").split(" - ", 2)[-1]
        reading = HOOK_SAID in text
        if reading:
            # LXC logs each piece that it reads, which may be part of a line
            name, part = text.split(HOOK_SAID, 1)
            said = [*said, part.strip()] if name == script else [part.strip()]
            script = name
        elif record.group("level") == "ERROR":
            errors.append(text)
    refused = any("Failed to run lxc.hook" in error for error in errors)
    return " ".join(filter(None, said)) if refused else None, "; ".join(errors[:4])
