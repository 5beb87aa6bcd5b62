# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of a move on the host that an instance leaves (move_step.py): what moves is `described`; it is `leaving`,
so off and kept off; pieces of its root are `planned` and `read`; at last it is `gone` from here, or, once `recalled`,
`back`.
"""

from __future__ import annotations

import os
import secrets
import time
from typing import TYPE_CHECKING, Any

from ..core.deadline import Deadline
from ..core.errors import BadInput, HeteroError, Refused
from ..core.lines import line
from ..core.plays import play
from ..core.this_node import THIS_NODE
from ..drivers.boot import ssh
from ..files import sparse_copy
from ..hypervisors.lxc import new_container
from ..site import instance_states, moves
from ..site.leases import over
from .lifecycle import bring_down, must_know_the_lease
from .move_step import LOOK, Result, Step, end, must_not_end
from .moved_roots import root_of
from .verb_options import Options

if TYPE_CHECKING:
    from .work import Work

#: States in which an instance has a root that may move.
MOVABLE = (
    instance_states.RUNNING,
    instance_states.STARTING,
    instance_states.STOPPING,
    instance_states.STOPPED,
    instance_states.ERROR,
    instance_states.LEAVING,
)
NOT_MADE = "is {state}, and what is not made, or is being made or ended, does not move"
START = f"{play('start_instance', instance='{name}')} brings it up; then run this again"
COMES = (
    "{note}, and was never started here: it goes on where both hosts are asked: have the other one in the inventory, "
    "and leave it out by no without="
)
ENDS_HERE = f"where that has no claim of it any more, {play('terminate_instance', instance='{name}')} ends what is here"
WHOLE_WAY = (
    f"where that has no claim of it any more, put a newer copy of {THIS_NODE}'s database back, for what is here may be "
    f"all of it; or, once nobody needs that, {play('terminate_instance', instance='{name}')} ends it"
)
LEASE_WAY = (
    f"{moves.BACK} has it where it was; then {play('extend_instance', instance='{name}', hours='HOURS')} says anew "
    f"when its lease ends; then {play('migrate_instance', instance='{name}')} moves it"
)
NO_ROOT = "its former root is not here any more: it does not come back"
GOES = "its former root is being removed here: it does not come back"
NO_ROOT_WAY = f"{play('migrate_instance', instance='{name}')} goes on with the one on the other host"
NOT_LEAVING = "is {state} here, and does not move: nothing of it is removed"
ON = "still runs after its stop"
STOP = "nothing of it is copied: see on its host what it waits for, and end it there; then run this again"
OTHER_KEY = "shows another host key than it was given, and so could not prove on another host that it is up"
KEY_WAY = (
    "have its tenant put the former key back into /etc/ssh; or, once the tenant agrees, "
    f"{play('rebuild_instance', instance='{name}', fresh='true')} makes it anew, with a key that is known"
)
RUNS_HERE = "runs here, although it has moved to another host: nothing of it is removed"
RUNS_WAY = "see who has started it, and end it once nothing in it is needed; then run this again"
NOT_IT = "what runs on the other host has another host key than this one, as one that was made anew there since has"
NOT_IT_WAY = (
    "nothing of the former root is removed: "
    f"{play('terminate_instance', instance='{name}', without='{node}')} removes that alone, once nobody needs it"
)
NOT_ITS_COPY = "what runs on the other host is no copy of this root as it left, and may be older"
#: Seconds in which a running instance shows its key; one that is silent moves all the same.
PATIENCE = 6.0


def described(step: Step) -> Result:
    """Return what moves; raise Refused if something of the instance would stay behind.

    With `force`, of one that leaves and is to be taken back, nothing is asked but where it was to go.
    """
    with step.work() as work:
        if step.asked.force and work.claim.state == instance_states.LEAVING:
            return dict(came=dict(_of_claim(work), files={}, kinds=[], bytes=0))
        came = _described(work)
        _must_have_its_key(work)
        return dict(came=came)


def _described(work: Work) -> Result:
    claim = work.claim
    must_not_end(work)
    if claim.state == instance_states.ARRIVING:
        work.must_be_own()  # or the database is older than its start here
        if not work.is_made:
            work.must_not_be_lost()
            way = WHOLE_WAY if os.path.lexists(work.sign) else ENDS_HERE
            raise Refused(COMES.format(note=claim.note), claim.instance, way.format(name=claim.instance))
        return dict(_of_claim(work), comes_from=moves.comes_from(claim.note), files={}, kinds=[], bytes=0)
    if claim.state not in MOVABLE:
        raise Refused(NOT_MADE.format(state=claim.state), claim.instance, START.format(name=claim.instance))
    work.must_not_be_lost()
    _must_know_its_lease(work)
    late = over(claim.instance, claim.expires, time.time())
    if late or claim.host_key is None or not work.is_made:
        # no verb but the move says anew when that of one that leaves ends
        way = LEASE_WAY if late and claim.state == instance_states.LEAVING else START
        raise Refused(late or NOT_MADE.format(state=claim.state), claim.instance, way.format(name=claim.instance))
    root = root_of(work)
    of_root = root.must_be_movable()
    return dict(_of_claim(work), root=of_root, kinds=root.kinds, files=root.sizes, bytes=root.bytes)


def _of_claim(work: Work) -> Result:
    """Return what the claim of an instance says of it to the other host, and to the play."""
    claim = work.claim
    fields = ("instance", "request", "owner", "kind", "flavor", "image", "image_hash", "ssh_public_key", "created")
    told = {name: getattr(claim, name) for name in (*fields, "expires", "host_key", "state")}
    leaves = claim.state == instance_states.LEAVING
    ran, told["other"] = (moves.ran(claim.note), moves.host_of(claim.note)) if leaves else (_runs(work), "")
    told["departure"] = claim.departure if leaves and _is_as_it_left(work) else None
    return dict(told, node=work.host.name, cpu_arch=work.host.cpu_arch, now=time.time(), ran=ran)


def _must_know_its_lease(work: Work) -> None:
    """Raise Refused where nobody knows the end of its lease. Of one that leaves no verb says that anew."""
    try:
        must_know_the_lease(work)
    except Refused as error:
        if work.claim.state != instance_states.LEAVING:
            raise
        raise Refused(error.what, work.claim.instance, LEASE_WAY.format(name=work.claim.instance)) from error


def _must_have_its_key(work: Work) -> None:
    """Raise Refused where a running instance shows another host key than that of its claim."""
    if work.container.running:
        try:
            ssh.answers(work.address, work.claim.host_key, Deadline(PATIENCE))
        except ssh.WrongHostKey as error:
            name = work.claim.instance
            raise Refused(OTHER_KEY, name, KEY_WAY.format(name=name)) from error


def _runs(work: Work) -> bool:
    return work.container.running or work.claim.state in (instance_states.RUNNING, instance_states.STARTING)


def leaving(step: Step) -> Result:
    """Stop the instance, have nothing start it, and prove that it is off. From then on only this run moves it."""
    with step.work() as work:
        step.must_be_as_seen(work)
        if work.claim.state == instance_states.LEAVING and not step.change.check:
            work.put(mover=step.asked.run)  # first of all: where this fails, this run takes it back
        told = _described(work)
        if step.change.check:
            text = "would be stopped, and kept off" if told["ran"] else "is off, and would be kept so"
            return dict(came=told, lines=[line(work.claim.instance, step.host.name, "", text)])
        name, was = work.claim.instance, work.claim.state
        root, runs = root_of(work), work.container.running
        # also of one that was on its way to a third host before: who looks later has to ask the present one
        note = moves.leaving_note(step.asked.other, told["ran"])
        departure = work.claim.departure if was == instance_states.LEAVING and not runs else None
        work.put(state=instance_states.LEAVING, note=note, mover=step.asked.run, departure=departure)
        # a root that was let go before is not touched again: the copy of it goes on
        if was != instance_states.LEAVING or runs or not root.is_let_go:
            work.autostart = False
            work.correct([new_container.CONFIGURATION], lambda parts: None)  # it does not start with its host
            if work.container.running:
                bring_down(work, Options(timeout=step.asked.timeout, soft_timeout=step.asked.soft_timeout), state=None)
        if work.container.running:
            raise HeteroError(ON, name, STOP)
        root.let_go()
        if departure is None or not _is_as_it_left(work):
            work.put(departure=_new_departure(root.stamp))
        if step.change.note(name, {"state": was}, {"state": instance_states.LEAVING}):
            work.report(moves.PHASE, f"is off, and stays so while its root moves to {step.asked.other}")
        told.update(state=work.claim.state, departure=work.claim.departure, files=root.sizes, bytes=root.bytes)
        return dict(came=told)


def _new_departure(stamp: str) -> str:
    """Return what no other departure has, and at last how the root was then; a letter goes before, or Ansible would
    make numbers of some.
    """
    return f"d{secrets.token_hex(16)}.{stamp}"


def _is_as_it_left(work: Work) -> bool:
    """Return whether nothing was written to the root since it was switched off, such as by one who started it, and none
    from before that was put in its place.
    """
    return root_of(work).is_as((work.claim.departure or "").partition(".")[2])


def planned(step: Step) -> Result:
    """Return which pieces of which file are to be sent, by what the new host has."""
    with step.left() as work:
        wanted = []
        for name, path in root_of(work).files.items():
            has = {int(number): str(sum) for number, sum in (step.asked.has.get(name) or {}).items()}
            wanted += [[name, number] for number in sparse_copy.wanted(path, has)]
        return dict(todo=wanted)


def read(step: Step) -> Result:
    """Return a piece of a file."""
    with step.left() as work:
        name, number = step.asked.piece["file"], int(step.asked.piece["number"])
        return dict(piece=dict(sparse_copy.read(_file(work, name), number), file=name))


def digested(step: Step) -> Result:
    """Return the sums of the whole files."""
    with step.left() as work:
        return dict(digests={name: sparse_copy.digest(path) for name, path in root_of(work).files.items()})


def gone(step: Step) -> Result:
    """End the claim of an instance that runs on the other host by now, and has proven its key there; remove its former
    root.
    """
    if step.host.store.claim_of(step.asked.instance) is None:
        return {}
    with step.work() as work:
        if work.claim.state not in (instance_states.LEAVING, instance_states.ENDING):
            raise Refused(NOT_LEAVING.format(state=work.claim.state), step.asked.instance, LOOK)
        if work.claim.state == instance_states.LEAVING:
            step.must_be_its_run(work)
            if work.container.running:
                raise Refused(RUNS_HERE, step.asked.instance, RUNS_WAY)
            is_it = step.asked.host_key == work.claim.host_key
            is_of_it = work.claim.departure and step.asked.departure == work.claim.departure
            if not (is_it and is_of_it and _is_as_it_left(work)):
                way = NOT_IT_WAY.format(name=step.asked.instance, node=step.asked.other)
                raise Refused(NOT_ITS_COPY if is_it else NOT_IT, step.asked.instance, way)
        work.must_be_own()
        end(work, moves.GONE.format(host=step.asked.other))
        return {}


def recalled(step: Step) -> Result:
    """Have the former root stay, before anything is given up on the other host; raise Refused where it is not here.

    From then on only this run moves it: one before that is about to remove this root is refused.
    """
    with step.work() as work:
        step.must_be_as_seen(work)
        if work.claim.state == instance_states.ENDING:
            raise Refused(GOES, step.asked.instance, NO_ROOT_WAY.format(name=step.asked.instance))
        _must_be_here(work)
        step.take_up(work)
        return {}


def back(step: Step) -> Result:
    """Have the instance be this host's alone again; it is stopped. Return whether it ran before."""
    with step.work() as work:
        ran = moves.ran(work.claim.note)
        if work.claim.state == instance_states.LEAVING:
            step.must_be_its_run(work)
            _must_be_here(work)
            step.change.note(step.asked.instance, {"state": work.claim.state}, {"state": instance_states.STOPPED})
            if not step.change.check:  # what was copied is no copy of it any more
                work.put(state=instance_states.STOPPED, note="", departure=None)
            work.report(moves.PHASE, f"stays on {step.host.name}")
            return dict(ran=ran)
        return dict(ran=False)


def _must_be_here(work: Work) -> None:
    """Raise Refused where the former root is not here."""
    if not work.is_made:
        raise Refused(NO_ROOT, work.claim.instance, NO_ROOT_WAY.format(name=work.claim.instance))


def _file(work: Work, name: Any) -> str:
    files = root_of(work).files
    if name not in files:
        raise BadInput(f"is {name!r}", "file", f"give one of {', '.join(files)}")
    return files[str(name)]
