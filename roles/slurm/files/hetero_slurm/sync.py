# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Slurm believes of its slots against what the nodes have, each minute (hetero-slurm-sync.timer).

Here ends what a kill, a restart of slurmctld, or a person at another playbook has left between the two: an instance of
a slot that is off is ended, a resume whose program is gone is begun again, a slot whose node did not come or went is
switched off, and as many slots are open as there are nodes for them. Only what this controller has made is ended; a
slot whose name somebody else's instance has is closed.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Mapping

import stand_in
from job import tell_to_go
from power import resume, suspend
from slots import Slots

if TYPE_CHECKING:
    from controller import Controller, Node
    from plays import Plays
    from site_file import Pool, Site

#: What a slot says that is closed only because there are fewer nodes than slots.
NONE_FREE = "no node is free"


@dataclass
class Todo:
    """Which slots are to be ended, begun again, switched off, told to go, closed (with a reason) and opened; whose
    roots are used; and which a slurmd on this machine stands in for.
    """

    end: list[str] = field(default_factory=list)
    begin: list[str] = field(default_factory=list)
    off: list[str] = field(default_factory=list)
    go: list[str] = field(default_factory=list)
    used: list[str] = field(default_factory=list)
    close: dict[str, str] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)
    keep: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Seen:
    """What is there.

    :param nodes: what Slurm says of its nodes.
    :param held: {instance: its claim} of those that this controller has made.
    :param others: {instance: whose it is} of the others.
    :param spent: slots whose instance is used up: it is ended before the slot comes.
    :param at_work: slots that another program works on; nothing is done with them.
    """

    nodes: Mapping[str, Node]
    held: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[str, str] = field(default_factory=dict)
    at_work: frozenset[str] = frozenset()
    spent: frozenset[str] = frozenset()


def decide(pool: Pool, seen: Seen, room: tuple[int, int]) -> Todo:
    """Return what is to be done with one pool's slots.

    :param room: (instances of the flavor that could be had now, and at most).
    """
    todo, opened, closed, coming = Todo(), [], [], 0
    if pool.new_root:
        _new_roots(pool, seen, todo)
    nodes, held, at_work = seen.nodes, seen.held, seen.at_work
    for name in pool.slots:
        node = nodes.get(name)
        if node is None:
            continue
        if name in at_work:
            coming += name not in held
        elif "DOWN" in node.state and "POWERING_DOWN" not in node.state and (node.ours or node.slurms):
            todo.off.append(name)  # also one that is off: Slurm opens it as it switches it off once more
        elif node.off:
            if name in held:
                todo.end.append(name)
            elif name in seen.others:
                if not node.state & {"DRAIN", "DOWN"}:
                    todo.close[name] = _others(pool, name, seen.others[name])
            elif "DRAIN" not in node.state and "DOWN" not in node.state:
                opened.append(name)
            elif node.ours:
                closed.append(name)
        elif node.rising:
            coming += name not in held
            if held.get(name, {}).get("state") != "running" or name in seen.spent or not pool.slurmd:
                todo.begin.append(name)
        elif not pool.slurmd and name in held and not node.ending:
            todo.keep.append(name)
    free, most = room
    surplus = len(opened) - max(0, free - coming)
    why = f"{NONE_FREE} for it ({free} free of {most})"
    if surplus > 0:
        todo.close.update(dict.fromkeys(opened[-surplus:], why))
    elif surplus < 0:
        # those last whose board was at fault: their reason tells an operator which one
        closed.sort(key=lambda name: not any(words in nodes[name].reason for words in (NONE_FREE, "no node.")))
        todo.open = closed[:-surplus]
    return todo


def _new_roots(pool: Pool, seen: Seen, todo: Todo) -> None:
    """Note which slots of a pool have a root that is used, and which were not told to go, for slurmctld may be killed
    before it has saved that. An operator's word on a slot stands.
    """
    for name in pool.slots:
        node = seen.nodes.get(name)
        if node is None or name in seen.at_work:
            continue
        if node.up and name in seen.held:
            todo.used.append(name)
        if (node.rising or node.up) and not node.told_to_go and not node.state & {"DOWN", "DRAIN"}:
            todo.go.append(name)


def _others(pool: Pool, name: str, owner: str) -> str:
    number = name.rpartition("-")[2]
    end = f"-e instance={pool.name} -e numbers={number} -e force=true"
    there = f"an instance of this name is there, of {owner}, that this controller did not make"
    return f"{there} (terminate_instance {end})"


def told_apart(
    site: Site, claims: Mapping[str, Any], before: set[str], after: set[str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return ({instance: its claim} of those that this controller has made, {instance: whose it is} of the others).

    :param before: the slots that it had instances of before the nodes were asked. One ended since is neither.
    :param after: the same, now.
    """
    own = {name for name, claim in claims.items() if claim["owner"] == site.owner}
    held = {name: claims[name] for name in own & after}
    return held, {name: str(claim["owner"]) for name, claim in claims.items() if name not in own & (before | after)}


def sync(site: Site, controller: Controller, plays: Plays) -> None:
    """Bring both together once."""
    every, slots = [name for pool in site.pools.values() for name in pool.slots], Slots(site.folder)
    # Asked first: a slot that is begun or ended meanwhile is then one that somebody works on.
    before = slots.every()
    claims, free = plays.held(), plays.free()
    with slots.held(every, 0.0) as ours:
        held, others = told_apart(site, claims, before, slots.every())
        spent = frozenset(name for name in ours if slots.spent(name))
        seen = Seen(controller.nodes(), held, others, frozenset(every) - frozenset(ours), spent)
        found = [decide(pool, seen, free.get(pool.flavor, (0, 0))) for pool in site.pools.values()]
        for todo in found:
            for name, why in todo.close.items():
                controller.set([name], "drain", why)
            if todo.open:
                controller.set(todo.open, "resume")
            if todo.off:
                controller.set(todo.off, "power_down")
            for name in todo.keep:
                stand_in.keep(site, name)
            slots.spend(todo.used)
            tell_to_go(site, controller, todo.go)
    for name in sorted(slots.every() - set(every)):
        if name in claims:
            logging.info("%s is no slot any more, and its instance is there: terminate_instance ends it", name)
        else:
            slots.ended([name])
    end, begin = ([name for todo in found for name in getattr(todo, what)] for what in ("end", "begin"))
    if end:
        logging.info("%s off, and instances of them are there: they end", ", ".join(end))
        suspend(site, controller, plays, end)
    if begin:
        logging.info("%s to come, and nobody brings them: they are begun again", ", ".join(begin))
        resume(site, controller, plays, begin)
