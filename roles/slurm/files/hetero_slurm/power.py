# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slots on and off. Of one hostlist all slots of a flavor are one play, and flavors go side by side.

What Slurm asked for may be stale when its turn comes, as a program waits for others that work on the same slots. So
each asks Slurm again once it has them: nothing is ended that a job may have, or made that nobody waits for.
What is there already is seen by the playbooks: run again, they go on. A slot for which there is no node goes back to
Slurm with the reason, and `sync` gives it back when there is one.
"""

from __future__ import annotations

import contextlib
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Callable, Iterable, Mapping, Sequence

import stand_in
from job import AT_WORK, tell_to_go
from site_file import SiteError
from slots import Slots

if TYPE_CHECKING:
    from controller import Controller
    from plays import Ended, Plays
    from site_file import Pool, Site

#: Plays for one hostlist. With partial=true each takes what there is; after one that got nothing there is no other.
TRIES = 3
GONE = "its job has gone while it got its login"


def resume(site: Site, controller: Controller, plays: Plays, names: Sequence[str]) -> None:
    """Bring up the instances of slots; what a suspend of the same slot still ends is waited for."""
    until, slots = time.monotonic() + site.resume_seconds, Slots(site.folder)
    # First: whatever is killed from here on, no second job gets what comes up.
    tell_to_go(site, controller, _coming(site, controller, names))
    with slots.held(names, site.resume_seconds) as had:
        nodes = controller.some(names)
        rising = [name for name in names if name in nodes and nodes[name].rising]
        for name in sorted(set(rising) - set(had)):
            slots.close(name, AT_WORK)
            controller.take_out(name, AT_WORK)
        _say(set(names) - set(rising), "Slurm waits for no such node any more: nothing is done")
        bring_up = _BringUp(site, controller, plays, slots, until)
        _side_by_side(bring_up.pool, site, [name for name in had if name in rising])


class _BringUp:
    """One resume: what its plays have in common."""

    def __init__(self, site: Site, controller: Controller, plays: Plays, slots: Slots, until: float) -> None:
        self.site, self.controller, self.plays, self.slots, self.until = site, controller, plays, slots, until

    def pool(self, pool: Pool, numbers: Sequence[int]) -> None:
        """Bring up one flavor's; where the nodes do not say what there is, the slots go back to Slurm with that."""
        wanted = {f"{pool.name}-{number}": number for number in numbers}
        for name in wanted:
            self.slots.closed(name)  # what it was closed for by a program that was killed, or before a job that ran
        if not pool.slurmd:
            self.slots.spend(name for name in wanted if self._is_anothers(name))
        try:
            missing = self._without_spent(pool, wanted)
        except SiteError as error:
            self._take_out(dict.fromkeys(wanted, str(error)))
            return
        self._bring_up(pool, missing)

    def _bring_up(self, pool: Pool, missing: dict[str, int]) -> None:
        self.slots.have(missing)
        play = None
        for _try in range(TRIES):
            if not missing:
                return
            play = self.plays.provision(pool, missing.values(), max(1.0, self.until - time.monotonic()))
            up, others = self._done(play, missing)
            for name in sorted(up):
                why = self._hand_over(pool, name, up[name])
                if why:
                    others[name] = why
            self._take_out(others)
            missing = {name: number for name, number in missing.items() if name not in up and name not in others}
            if not (up or others):
                break
        self._take_out({name: play.why(name) for name in missing if play})

    def _hand_over(self, pool: Pool, name: str, node: str) -> str:
        """Say where a slot is; where its board runs no slurmd, after its job's user was let in, and before it begins.

        Returns why there is no login, where the board is at fault, or nobody waits for it.
        """
        if pool.slurmd:
            self.controller.note([name], f"{name} is on {node}")
            return ""
        jobs = self.controller.jobs_on(name)
        if not jobs and self.slots.spent(name):
            # an operator has switched it off meanwhile: with a slurmd it would be up again to Slurm
            _say([name], "switched off while it came up: the suspend that waits for this ends it")
            return ""
        try:
            way = stand_in.let_in(self.site, self.slots, name, jobs)
        except (SiteError, OSError) as error:
            return str(error)
        now = self.controller.jobs_on(name) if jobs else jobs
        if now != jobs:
            # its login is another user's: without a slurmd nothing begins there, and who comes next ends it first
            self.slots.spend([name])
            logging.info("%s: %s", name, GONE)
            return "" if now else GONE
        self.controller.note([name], f"{name} is on {node}: {way}")
        stand_in.start(self.site, name)
        return ""

    def _is_anothers(self, name: str) -> bool:
        """Return whether another job's user has a login in what there is of a slot, which then is no new root."""
        lent = self.slots.lent(name)
        return bool(lent) and any(job.number != lent for job in self.controller.jobs_on(name))

    def _without_spent(self, pool: Pool, wanted: dict[str, int]) -> dict[str, int]:
        """End what is used up of these slots; return those that can come, and take the others out."""
        spent = {name: number for name, number in wanted.items() if self.slots.spent(name)}
        wanted = self._without_unknown(spent.keys() - self.slots.every(), wanted)
        spent = {name: number for name, number in wanted.items() if self.slots.spent(name)}
        if not spent:
            return wanted
        ended = _end(self.site, self.plays, self.slots, pool, spent.values())
        left = spent.keys() - ended
        self._take_out(dict.fromkeys(left, "what it had before cannot be ended: see hetero-slurm.log"))
        return {name: number for name, number in wanted.items() if name not in left}

    def _without_unknown(self, names: Iterable[str], wanted: dict[str, int]) -> dict[str, int]:
        """Take those slots out whose instance is there, and by no record of this controller's: it is not its to end."""
        names = set(names)
        held = self.plays.held() if names else {}
        there = names & held.keys()
        why = "an instance of this name is there, of {}, that this controller did not make"
        self._take_out({name: why.format(held[name]["owner"]) for name in sorted(there)})
        self.slots.ended(names - there)
        return {name: number for name, number in wanted.items() if name not in there}

    def _done(self, play: Ended, wanted: Mapping[str, int]) -> tuple[dict[str, str], dict[str, str]]:
        """Return ({instance: node} of what runs, {instance: whose it is} of what is somebody else's).

        Of a play that failed the nodes say it, as it handed nothing over. While one of them does not answer nothing is
        known to run, and what does ends with its slot.
        """
        said = play.running()
        if play.rc == 0:
            return {name: said[name] for name in wanted if name in said}, {}
        try:
            held = self.plays.held()
        except SiteError as error:
            logging.info("%s", error)
            return {}, {}
        there = {name: held[name] for name in wanted if name in held}
        others = {name: f"an instance of this name is there, of {claim['owner']}" for name, claim in there.items()
                  if claim["owner"] != self.site.owner}  # fmt: skip
        up = {name: claim["name"] for name, claim in there.items() if claim["state"] == "running"}
        return {name: node for name, node in up.items() if name not in others}, others

    def _take_out(self, why: Mapping[str, str]) -> None:
        for name, words in why.items():
            logging.info("%s has no node: %s", name, words)
            with contextlib.suppress(OSError):  # a full disk; Slurm has the reason, as long as it has the slot on
                self.slots.close(name, words)
            self.controller.take_out(name, words)


def _coming(site: Site, controller: Controller, names: Sequence[str]) -> list[str]:
    """Return those whose roots are new, and that Slurm waits for."""
    new = [name for name in names if site.slot(name)[0].new_root]
    nodes = controller.some(new) if new else {}
    return [name for name in new if name in nodes and nodes[name].rising]


def suspend(site: Site, controller: Controller, plays: Plays, names: Sequence[str]) -> None:
    """End the instances of slots. One that a play cannot end stays, and `sync` tries again."""
    slots = Slots(site.folder)
    # First: a resume of the same slot whose turn comes before this one's ends them then, and no job gets an old root.
    slots.spend(names)
    with slots.held(names, site.resume_seconds + site.suspend_seconds) as had:
        left = [name for name in had if slots.spent(name)]
        _say(set(had) - set(left), "a resume has ended what there was, and brought up anew")
        nodes = controller.some(left) if left else {}
        unwanted = [name for name in left if name in nodes and nodes[name].ending]
        _say(set(left) - set(unwanted), "Slurm has jobs for it, or knows no such node: it stays")
        for name in unwanted:
            why = slots.closed(name)
            if why:
                controller.set([name], "drain", why)
        ours = [name for name in unwanted if slots.had(name)]
        slots.ended(set(unwanted) - set(ours))  # and nothing of them is this controller's to end

        def end(pool: Pool, numbers: Sequence[int]) -> None:
            ended = _end(site, plays, slots, pool, numbers)
            if ended:
                controller.note(sorted(ended), "")

        _side_by_side(end, site, ours)


def _end(site: Site, plays: Plays, slots: Slots, pool: Pool, numbers: Iterable[int]) -> set[str]:
    """End the instances of one flavor's slots; return the slots of which nothing is left that is this controller's.

    An instance of such a name that is somebody else's keeps a play from ending the others: it is left out.
    """
    wanted = {f"{pool.name}-{number}": number for number in numbers}
    stand_in.end(site, wanted)
    rc = plays.terminate(pool, wanted.values(), site.suspend_seconds).rc
    if rc:
        held = plays.held()
        others = {name for name in wanted if name in held and held[name]["owner"] != site.owner}
        _say(others, "an instance of this name is somebody else's: it stays")
        rest = {name: number for name, number in wanted.items() if name not in others}
        if others:
            slots.ended(others)
            rc = plays.terminate(pool, rest.values(), site.suspend_seconds).rc if rest else 0
    if rc:
        return set()
    slots.ended(wanted)
    return set(wanted)


def _side_by_side(work: Callable[[Pool, Sequence[int]], None], site: Site, names: Sequence[str]) -> None:
    groups = site.by_pool(names)
    with ThreadPoolExecutor(max(1, len(groups))) as threads:
        done = [threads.submit(work, site.pools[pool], numbers) for pool, numbers in groups.items()]
    for one in done:
        one.result()


def _say(names: Iterable[str], what: str) -> None:
    told = ", ".join(sorted(names))
    if told:
        logging.info("%s: %s", told, what)
