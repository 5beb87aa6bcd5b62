# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a container has when it starts, in a file that its configuration includes and that is valid for one boot of the
host.

The caller knows which devices these are; here they are nodes and rules. The file is rewritten before LXC starts its
containers (`restore`). hooks.py checks it at each start.
"""

from __future__ import annotations

import json
import os
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
from typing import Any, Callable, ContextManager, Dict, List, Sequence, cast

from ...core.errors import HeteroError, Refused, naming, told
from ...core.plays import play
from ...files.whole_file import write_whole
from . import disks, folders, identity, private_nodes
from .liblxc import Container, containers

VERSION = 1
HEADER = "# Written by hetero.compute, and rewritten at each boot of the host: changes made by hand are lost.\n"
DATA = "# hetero.compute: devices "


@dataclass(frozen=True)
class Host:
    """The machine and the boot for which a file is valid, with its drivers' numbers."""

    proc: str = "/proc"
    machine: str = "/etc/machine-id"
    private: str = private_nodes.BASE
    command: str = identity.COMMAND
    disks: str = disks.BASE

    @property
    def boot(self) -> str:
        return _text(os.path.join(self.proc, "sys/kernel/random/boot_id"))

    @property
    def machine_id(self) -> str:
        return _text(self.machine)

    def drivers(self) -> dict[str, str]:
        """Return {"c 195": name} of /proc/devices, as it is now."""
        found, kind = {}, None
        for line in _text(os.path.join(self.proc, "devices")).splitlines():
            words = line.split()
            if line.endswith("devices:"):
                kind = {"Character": "c", "Block": "b"}.get(words[0])
            elif len(words) == 2 and kind:
                # several drivers may share a major
                found[f"{kind} {words[0]}"] = " ".join(filter(None, [found.get(f"{kind} {words[0]}"), words[1]]))
        return found


HERE = Host()


@dataclass(frozen=True)
class Node:
    """A device node: its path in the container, its numbers, owner and mode."""

    path: str
    kind: str
    major: int
    minor: int
    mode: int = 0o666
    uid: int = 0
    gid: int = 0


@dataclass(frozen=True)
class Persisted:
    """What a container is to have.

    :param request: what was asked for, in the caller's form. On another host it counts instead of `gpus`.
    :param gpus: the devices, as the caller identifies them whatever their numbers are.
    :param nodes: their device nodes now.
    :param rules: device rules ("c 195:0 rw").
    """

    request: Any
    gpus: List[Any]
    nodes: Sequence[private_nodes.Node]
    rules: List[str]


@dataclass(frozen=True)
class Written(Persisted):
    """The contents of the file, with what they are valid for.

    :param key: of its container.
    :param boot: the boot of the host to which the numbers belong.
    :param drivers: {"c 195": name} of their majors.
    :param before: rules of former contents since that boot, which LXC may still have read.
    :param refused: why the container cannot start now.
    """

    key: str = ""
    machine: str = ""
    boot: str = ""
    drivers: Dict[str, str | None] = field(default_factory=dict)
    before: List[str] = field(default_factory=list)
    refused: str | None = None
    version: int = VERSION


#: Takes (container, what is written, whether on this machine); returns the same with today's nodes and rules.
Resolve = Callable[[Container, Persisted, bool], Persisted]


def read(container: Container, host: Host | None = None) -> Persisted | None:
    """Return what a container is to have; None if nothing is written, or the file is another container's.

    :param host: if given, what was written on another machine does not count either.
    """
    found = read_file(identity.file_of(container))
    if found is None or found.key != identity.key_of(container) or not (found.nodes or found.gpus):
        return None
    if host is not None and found.machine != host.machine_id:
        return None
    return Persisted(found.request, found.gpus, found.nodes, found.rules)


def read_file(path: str) -> Written | None:
    """Return the contents of a file, or None if there is none."""
    with naming(path):
        try:
            with open(path, encoding="utf-8") as file:
                lines = file.read().splitlines()
        except (FileNotFoundError, NotADirectoryError):
            return None
    try:
        data = json.loads(next(line[len(DATA) :] for line in lines if line.startswith(DATA)))
        known = {one.name for one in fields(Written)}
        if data["version"] != VERSION or set(data) != known:
            raise ValueError(f"version {data['version']}")
        return Written(**dict(data, nodes=[Node(**node) for node in data["nodes"]]))
    except (ValueError, TypeError, KeyError, StopIteration) as error:
        remedy = f"run {play('gpu_host')}, or move it aside and attach those GPUs again"
        raise HeteroError(f"was not written by this version ({error})", path, remedy) from error


def write(container: Container, persisted: Persisted, host: Host = HERE) -> None:
    """Have a container start with this. It must have an id (identity.give_id)."""
    key = identity.key_of(container)
    if key is None:
        raise HeteroError("has no id of its own", container.thing, "give it one first")
    with naming(container.lxcpath):
        folders.mark(container.lxcpath)  # one of an earlier release has none
    identity.follow(container, host.command)
    old = _own(container, key, host)
    nodes = [_node(node) for node in persisted.nodes]
    rules = [str(rule) for rule in persisted.rules]
    drivers = host.drivers()
    before = [*old.before, *old.rules] if old else []
    new = Written(
        request=persisted.request,
        gpus=list(persisted.gpus),
        nodes=nodes,
        rules=rules,
        key=key,
        machine=host.machine_id,
        boot=host.boot,
        drivers={major: drivers.get(major) for major in sorted({f"{node.kind} {node.major}" for node in nodes})},
        before=sorted(set(before) - set(rules)),
    )
    if old == new:
        return
    for node in nodes:
        private_nodes.ensure(container, node, host.private)
    _write(container, new, host)


def remove(container: Container, host: Host = HERE) -> None:
    """Have a container start without devices.

    While it runs the file stays: LXC may have read one with devices, and would use that at a reboot from inside.
    """
    if not os.path.lexists(identity.file_of(container)):
        return
    if identity.key_of(container) is not None and container.init_pid is not None:
        write(container, Persisted(None, [], [], []), host)
        return
    with naming(identity.file_of(container)):
        os.unlink(identity.file_of(container))
    private_nodes.forget(container, host.private)
    container.reload()


def refuse(container: Container, written: Written, text: str, host: Host = HERE) -> None:
    """Have a container not start, for a reason that a person is told."""
    new = replace(written, boot=host.boot, refused=text, drivers={}, before=[])
    if new != written:
        _write(container, new, host)


def restore(
    lxcpath: str,
    resolve: Resolve,
    host: Host = HERE,
    turn: Callable[[Container], ContextManager[object]] = lambda container: nullcontext(),
    chosen: Callable[[Container], bool] = lambda container: True,
) -> dict[str, str | None]:
    """Rewrite what containers start with for this boot of the host, before LXC starts the first.

    :param resolve: takes (container, Persisted, here); returns the Persisted with today's nodes and rules. `here` is
        False for a container from another host, whose identities are of no use, unlike its request. A HeteroError is
        why it cannot have them, and refuses its start.
    :param turn: returns a context manager in which nobody else changes what the container has.
    :param chosen: returns whether a container is meant.
    :returns: {name: None, or why it will not start}.
    """
    done: dict[str, str | None] = {}
    for name in containers(lxcpath):
        try:
            container = Container(name, lxcpath)
            path = identity.file_of(container)
            if not (os.path.lexists(path) and chosen(container)):
                continue
            with turn(container):
                written = read_file(path)
                if written is not None and (written.nodes or written.gpus):
                    done[name] = _restore(container, written, resolve, host)
                elif written is not None:
                    remove(container, host)
        except Exception as error:  # noqa: BLE001 - the others must start whatever is wrong with one
            done[name] = told(error, f"container {name} of {lxcpath}")
    return done


def _restore(container: Container, written: Written, resolve: Resolve, host: Host) -> str | None:
    here = written.machine == host.machine_id
    if written.key != identity.key_of(container):
        if here:
            what = f"is a copy of {written.key.partition('#')[0]}, and was given no GPUs"
            raise Refused(what, container.thing, copy_way(container, written.key))
        written = replace(written, key=identity.give_id(container, host.command), before=[])
    try:
        wanted = resolve(container, Persisted(written.request, written.gpus, written.nodes, written.rules), here)
    except HeteroError as error:
        refuse(container, replace(written, machine=host.machine_id), str(error), host)
        return str(error)
    write(container, wanted, host)
    return None


#: What to do about the copy of a container.
COPY_REMEDY = "attach GPUs to it (lxc_gpu_attach), or take the line lxc.include = …/hetero.d/ out of its config"
#: The same where it lies in the place of the one, and has its id.
MOVED = (
    "where it is the container from now on, such as on another disk, write {number} in place of {old} into the line "
    "'# hetero.compute: id' of {config}; else "
)


def copy_way(container: Container, key: str) -> str:
    """Return what a person does about a container that includes what was written for the one with this key."""
    found = identity.written(container.config_file)
    if found is None or identity.key_by_id(container) != key:
        return COPY_REMEDY
    number = os.stat(container.folder).st_ino
    return MOVED.format(number=number, old=found[1], config=container.config_file) + COPY_REMEDY


def _own(container: Container, key: str, host: Host) -> Written | None:
    """Return what is written, if it is of this container and this boot, else None."""
    try:
        found = read_file(identity.file_of(container))
    except HeteroError:
        return None  # it is replaced
    return found if found is not None and found.key == key and found.boot == host.boot else None


def _write(container: Container, new: Written, host: Host) -> None:
    lines = [HEADER.rstrip(), DATA + json.dumps(dict(vars(new), nodes=[vars(node) for node in new.nodes]))]
    if new.refused is None:
        lines += [f"lxc.cgroup.devices.allow = {rule}" for rule in new.rules]
        if _has_rules(container):
            lines += [f"lxc.cgroup2.devices.allow = {rule}" for rule in new.rules]
        else:
            lines += ["# No rules of cgroup v2: it has none of its own, and one would close all else, /dev/null too."]
        for node in new.nodes:
            source = private_nodes.path_of(container, node.path, host.private)
            # Not "optional": a lost device must stop the start.
            lines.append(f"lxc.mount.entry = {source} {node.path.lstrip('/')} none bind,create=file 0 0")
    path = identity.file_of(container)
    with naming(path):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        write_whole(path, "\n".join(lines) + "\n", 0o600)
    container.reload()


def _has_rules(container: Container) -> bool:
    """Return whether its configuration has other device rules of cgroup v2: then LXC denies what they do not name.

    In version 1 a rule for what is allowed already has no effect.
    """
    if container.get("lxc.cgroup2.devices.deny"):
        return True
    try:
        written = read_file(identity.file_of(container))
    except HeteroError:
        written = None
    others = container.get("lxc.cgroup2.devices.allow").splitlines()
    for rule in written.rules if written is not None else []:
        if rule in others:
            others.remove(rule)
    return bool(others)


def _node(node: private_nodes.Node) -> Node:
    return Node(
        node.path,
        node.kind,
        cast("int", node.major),
        node.minor,
        0o666 if node.mode is None else node.mode,
        node.uid or 0,
        node.gid or 0,
    )


def _text(path: str) -> str:
    with naming(path), open(path, encoding="utf-8", errors="replace") as file:
        return file.read().strip()
