# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One node against a flavor, from the results of board_info and host_info: why it can never serve it, why it cannot at
present, and for how many instances it has room. What is free is a hint; the owner's claim decides.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, Iterable, Iterator, Mapping

from ..core.errors import BadInput
from ..core.spelling import in_spans
from ..images.capacity import Promises, no_image, root_size, without_room
from ..images.delivery import undelivered
from ..site import board_states, boot_sources
from ..site.instance import age
from ..site.kinds import BOARD, BY_HYPERVISOR, CONTAINER, KINDS
from . import compute_hosts, fit
from .extra_specs import satisfies

#: What nodes with boards are called in texts.
BOARDS = BOARD.nodes
#: What nodes of a kind are called in texts → what several instances of that kind are called.
SEVERAL = {kind.nodes: kind.several for kind in KINDS.values()}
#: Room of a host for instances that ask for nothing limited.
PLENTY = 500
IN_USE = "in use"
#: The score of a free board that is being checked: others come first.
LAST = -1
WITHHELD = "given to nobody"
#: What is said in brief of boards that only an operator can make free.
STUCK = (board_states.ERROR, board_states.MAINTENANCE, WITHHELD)
NO_ROOM = "without room for a root"


@dataclass(frozen=True)
class Verdict:
    """What is known of one node for a flavor.

    :param owner: the machine that it belongs to, by its name in the inventory.
    :param kind: what such nodes are called, a key of kinds.INSTANCES.
    :param never: why it can never serve the flavor; empty if it can.
    :param busy: why it cannot at present.
    :param brief: the same in a word or two, equal for many nodes.
    :param room: how many instances it takes now; `most`: how many it would take if nobody else had any of it.
    :param limits: what of it has no more room than that, one or more texts; empty for what serves one instance only.
    :param score: how often it did what was asked of it lately, 0 to 100; 100 where that is not known.
    :param stuck: how many of `most` it takes only once an operator has done something.
    """

    owner: str
    kind: str
    name: str
    never: tuple[str, ...] = ()
    busy: tuple[str, ...] = ()
    brief: str = ""
    room: int = 0
    most: int = 0
    limits: tuple[str, ...] = ()
    score: int = 100
    stuck: int = 0

    @property
    def possible(self) -> int:
        """Return how many instances it would take if nobody else had any of it, and no operator did anything."""
        return max(0, self.most - self.stuck)


def board_verdict(
    flavor: dict[str, Any],
    board: dict[str, Any],
    owner: str,
    tolerance: float = fit.TOLERANCE,
    disk: bool = False,
    image: str | None = None,
    images: dict[str, Any] | None = None,
) -> Verdict:
    """Return the Verdict of a board.

    :param board: a board in a result of board_info.
    :param disk: whether it is to boot from its own disk.
    :param image: the image that it is to run.
    :param images: the images of its proxy, if they are known.
    """
    never = fit.rejections(flavor, board, tolerance)
    if disk and not board.get("disks"):
        never.append(fit.NO_DISK)
    if image and images is not None and not never:
        never += filter(None, [no_image(image, images, str(board.get("arch")))])
        source = boot_sources.DISK if disk else boot_sources.NFS
        lacks = None if never else undelivered(image, images, board["id"], board.get("boot"), source)
        never += [": ".join(lacks)] if lacks else []
    busy, brief = _busy(board)
    room = 0 if never or busy else 1
    score = (board.get("health") or {}).get("score", 100)
    if board_states.is_checked(board["state"], board.get("note")):
        score = LAST
    most, stuck = 0 if never else 1, int(brief in STUCK)
    return Verdict(owner, BOARDS, board["name"], tuple(never), tuple(busy), brief, room, most, score=score, stuck=stuck)


def _with_room(found: list[Verdict], sizes: dict[str, int], roots: dict[str, Any]) -> Iterator[Verdict]:
    """Yield verdicts of a proxy's boards, with room for roots taken into account, which all of them share.

    :param sizes: {board name: bytes of its root}.
    :param roots: what board_info says of roots.
    """
    limits = (roots["there"], roots["overcommit"])
    now, alone = Promises(roots["promised"], *limits), Promises(0, *limits)
    never = {name: now.why(size) for name, size in sizes.items() if now.never(size)}
    full = without_room(now, {one.name: sizes[one.name] for one in found if one.room})
    most = without_room(alone, {one.name: sizes[one.name] for one in found if one.most})
    for one in found:
        name = one.name
        if name in never and not one.never:
            one = Verdict(one.owner, one.kind, name, (never[name],))
        elif name in full:
            one = replace(one, busy=(full[name],), brief=NO_ROOM, room=0)
        yield replace(one, most=0) if name in most else one


def no_board(board: int | None, results: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a line that says which boards there are, where the only wanted one is on no node; else none.

    :param results: as of `verdicts`.
    """
    ids = {str(one.get("item", "a node")): [its["id"] for its in one["boards"]] for one in results if one.get("boards")}
    if board is None or any(board in own for own in ids.values()):
        return []
    there = [f"{node} has {in_spans(own)}" for node, own in ids.items()]
    return [f"there is no board {board}: {'; '.join(there) or 'no node has any'}"]


def _busy(board: dict[str, Any]) -> tuple[list[str], str]:
    """Return (why a board cannot be claimed at present, the same in brief)."""
    state, instance, now = board["state"], board.get("instance"), time.time()
    since, claimed = board.get("since_seconds") or 0, now - (board.get("created") or now)
    withheld = board.get("withheld")
    if not instance and board_states.is_checked(state, board.get("note")):
        return ([withheld], WITHHELD) if withheld else ([], "")  # its check ends where its owner has no other
    words = board_states.why_not_free(state, board.get("note") or "", instance, since, claimed)
    if words is None:
        return ([withheld], WITHHELD) if withheld else ([], "")
    return [words], IN_USE if instance and state not in (board_states.ERROR, board_states.MAINTENANCE) else state


def host_verdict(flavor: dict[str, Any], host: dict[str, Any], owner: str) -> Verdict:
    """Return the Verdict of a compute host.

    :param host: a result of host_info.
    """
    hypervisor, name = compute_hosts.hypervisor_for(flavor, host), host.get("name") or owner
    kind = BY_HYPERVISOR[hypervisor].nodes if hypervisor in BY_HYPERVISOR else f"{hypervisor} hosts"
    never, busy, rooms = compute_hosts.rejections(flavor, host), [], [(PLENTY, PLENTY, PLENTY, "")]
    for key, unit in fit.AMOUNTS.items():
        want, have = flavor.get(key) or 0, host["capacity"][key]
        if want:
            left = f"{have['free']} of {have['total']} {unit} left"
            rooms.append((have["free"] // want, have["total"] // want, have["total"] // want, left))
            if have["free"] < want:
                busy.append(f"{want} {unit} wanted, {have['free']} of {have['total']} left")
    if not never:
        for found in _devices(flavor, host, hypervisor):
            never += found.never
            busy += found.busy
            rooms.append((found.room, found.most, found.possible, found.left))
    if never:
        return Verdict(owner, kind, name, tuple(never))
    nows, mosts, possibles, _lefts = zip(*rooms)
    room, most = min(nows), min(mosts)
    limits = tuple(left for now, _most, _possible, left in rooms if left and now == room)
    brief, room = (IN_USE, 0) if busy else ("", room)
    return Verdict(owner, kind, name, (), tuple(busy), brief, room, most, limits, stuck=most - min(possibles))


@dataclass(frozen=True)
class _Found:
    """What a host has of one kind of devices that a flavor asks for; `left` says how many of them are free, `possible`
    is what Verdict.possible says.
    """

    never: list[str]
    busy: list[str]
    room: int
    most: int
    possible: int
    left: str = ""


def _devices(flavor: dict[str, Any], host: dict[str, Any], hypervisor: str) -> Iterator[_Found]:
    """Yield what a host has of a container flavor's GPUs, or of each alias of a guest flavor."""
    if hypervisor == CONTAINER.hypervisor:
        yield from _gpus(flavor, host["gpus"])
        return
    for alias, count in compute_hosts.aliases_of(flavor):
        fitting = [one for one in host.get("devices") or () if alias in str(one["arch"]).split(", ")]
        if len(fitting) < count:
            yield _Found([f"has {len(fitting) or 'no'} of alias {alias}, {count} wanted"], [], 0, 0, 0)
        else:
            yield _counted(fitting, count, f"{count} × {alias}", alias)


def _gpus(flavor: dict[str, Any], gpus: list[dict[str, Any]]) -> Iterator[_Found]:
    """Yield what there is of one architecture. All GPUs of an instance have one: the one with the most free GPUs."""
    count, requirement = compute_hosts.gpu_count(flavor), compute_hosts.gpu_arch(flavor)
    if not count:
        return
    if requirement is None:
        yield _counted(gpus, count, f"{count} GPU{'s' if count != 1 else ''}", "GPUs")
        return
    archs = sorted({gpu["arch"] for gpu in gpus if gpu["arch"] and satisfies(gpu["arch"], requirement)})
    found = []
    for arch in archs:
        own = [gpu for gpu in gpus if gpu["arch"] == arch]
        found.append(_counted(own, count, f"{count} {arch} GPU{'s' if count != 1 else ''}", f"{arch} GPUs"))
    yield max(found, key=lambda one: (one.room, one.most))


def _counted(devices: list[dict[str, Any]], count: int, asked: str, called: str) -> _Found:
    """Return what there is of devices of one kind, `count` for each instance.

    :param asked: what an instance wants of them.
    :param called: what they are called.
    """
    whys = {one["address"]: _why_not(one) for one in devices}
    free = sum(why is None for why in whys.values())
    told = fit.by_reason(whys)
    fit_ones = [one for one in devices if not _unfit(one)]
    most, possible = len(fit_ones) // count, sum(bool(one["healthy"]) for one in fit_ones) // count
    left = f"{free} of {len(devices)} {called} free{f' ({told})' if told else ''}"
    return _Found([], [f"{asked} wanted: {told}"] if free < count else [], free // count, most, possible, left)


def _unfit(device: dict[str, Any]) -> str | None:
    """Return why a GPU never fits (`unsupported`), or None. Other PCI devices may be bound for guests at any time."""
    return device.get("unsupported") if "uuid" in device else None


def _why_not(device: dict[str, Any]) -> str | None:
    """Return why a device is not free, or None.

    A holder that is no instance may be gone: the owner looks when it claims.
    """
    if device.get("unsupported"):
        return device["unsupported"]
    if not device["healthy"]:
        return f"is not healthy: {device['why_unhealthy']}"
    if device.get("instance"):
        return f"allocated to {device['instance']} since {age(time.time() - (device.get('since') or time.time()))}"
    return None


def verdicts(
    flavor: dict[str, Any],
    results: Iterable[Any],
    board: int | None = None,
    tolerance: float = fit.TOLERANCE,
    disk: bool = False,
    image: str | None = None,
) -> list[Verdict]:
    """Return a Verdict of each node in the results of board_info and host_info, in their order.

    :param results: of a looped task, with the owner as `item`; single boards and hosts are taken too.
    :param board: id of the only wanted board; others are left out.
    :param image: the image that a board is to run; None checks none.
    """
    found = []
    for result in results:
        owner = str(result.get("item") or "") if isinstance(result, dict) else ""
        if not isinstance(result, dict) or result.get("failed") or result.get("unreachable"):
            what = f"{owner or 'a node'} has no answer of board_info or host_info"
            raise BadInput(what, "nodes", "leave out what could not be asked")
        if isinstance(result.get("boards"), list):
            asked = [one for one in result["boards"] if board in (None, one["id"])]
            images, roots = result.get("images"), result.get("roots")
            own = [board_verdict(flavor, one, owner, tolerance, disk, image, images) for one in asked]
            if roots and not disk:
                sizes = {one["name"]: root_size(flavor, one.get("local_gb"), roots.get("root_gb", 0)) for one in asked}
                own = list(_with_room(own, sizes, roots))
            found += own
        elif "capacity" in result:
            found.append(host_verdict(flavor, result, owner or str(result.get("name"))))
        elif "state" in result and "cpu_info" in result:
            if board in (None, result["id"]):
                found.append(board_verdict(flavor, result, owner, tolerance, disk))
        else:
            raise BadInput(
                "is no result of board_info or host_info", owner or "a node", "give results of these modules"
            )
    return found
