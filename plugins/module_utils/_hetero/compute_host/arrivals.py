# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of a move on the host to which an instance moves (move_step.py): its claim is `arriving`; copies are
`begun` and `written`; they are `taken` as its root. Then it is `migrated`: started; and `settled`, before its former
root is removed. Where it never was started, all is `given_up`.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, Mapping

from ..claims.host.claim_records import Arrival
from ..claims.host.store import CLAIM_PHASE
from ..core.errors import BadInput, HeteroError, Refused
from ..files import sparse_copy
from ..roots.machine_identity import must_be_keys
from ..site import instance_states, moves
from ..site.image_names import HASH, valid_image
from ..site.instance import age, valid_instance
from ..site.kinds import CONTAINER, OF_HOSTS
from ..site.moves import GOES_ON, PHASE
from ..site.node_clock import SLACK
from ..site.owners import number_of
from .claim_request import ClaimRequest
from .host_claims import present
from .lifecycle import bring_up, each
from .move_step import LOOK, MAY_HAVE_RUN, OTHER_RUN, VERB, WORD, Asked, Result, Step, end, must_not_end
from .moved_roots import NAMES, must_have_room, root_of

if TYPE_CHECKING:
    from ..core.changes import Change
    from .host import Host
    from .verb_options import Options
    from .work import Work

ANOTHER = "another instance of that name is here (claimed by {owner})"
OTHER_NAME = "end one of the two; then run this again"
OTHER_KINDS = "gets {found}, and has {wanted}"
NOT_HERE = "its root was not copied here as a whole, or was removed again: nothing is made in its place"
HERE = "has its root here already"
NOT_THIS_MOVES = "has a whole root here that is no copy of the one that leaves: which is newer only people can say"
NOT_THIS_MOVES_WAY = "nothing of the two is started, copied or removed: run this again, which says what ends either"
ANOTHER_NAME = "is {name}, and what moves is {instance}"
OTHER_ARCH = "is of {other}, and this host is {own}: nothing of it would start here"
CLOCK = "its clock shows {more} than that of {other}, and a lease ends by the clock of its host: it would end {when}"
CLOCK_WAY = "have a time server keep both clocks (timedatectl); then run this again"
SETTLED = "its former root goes, for it runs here"
IS_SETTLED = "runs here for good, and its former root is removed, or is about to be: nothing of it is given up"
NOT_UP = "is {state} here, and its former root stays until it runs"
#: Events of an instance that are looked through for the one that says so.
EVENTS = 500


def arriving(step: Step) -> Result:
    """Claim for the instance what it needs, as its tenant would who asked for it here."""
    came = step.asked.came
    name = valid_instance(came["instance"])
    if name != step.asked.instance:
        raise BadInput(ANOTHER_NAME.format(name=name, instance=step.asked.instance), "came", "pass on what moves")
    _must_be_alike(step)
    old = step.host.store.claim_of(name)
    if old is not None and old.created != step.asked.created:
        raise Refused(ANOTHER.format(owner=old.owner), name, OTHER_NAME)
    claimed: Result = dict(lines=[])
    if old is None:
        must_have_room(step.host.config.disks(str(came["kind"])), int(came["bytes"]))
        claimed = present(step.host, _request(step.asked), step.change)
        if step.change.check:
            return dict(lines=claimed["lines"])
    with step.work() as work:
        must_not_end(work)
        step.must_be_as_seen(work)
        if work.claim.state != instance_states.ARRIVING:  # by the same run that was seen, and which goes on
            raise Refused(OTHER_RUN, name, LOOK)
        _must_be_of_this_move(work, came["departure"])
        if not step.change.check:
            work.put(mover=step.asked.run)
        if not work.is_made:
            try:
                root_of(work).must_be_takeable(came["root"])
                found = root_of(work).kinds
                if found != list(came["kinds"]):
                    words = [" ".join(kinds) or "no device" for kinds in (found, came["kinds"])]
                    what = OTHER_KINDS.format(found=words[0], wanted=words[1])
                    raise Refused(what, step.host.name, "choose another host: -e node=HOST")
                work.must_start()
            except HeteroError:
                if old is None:
                    step.host.store.release(name)
                raise
        return dict(lines=claimed["lines"], state=work.claim.state)


def _must_be_of_this_move(work: Work, departure: str | None) -> None:
    """Raise Refused where a root is whole here that is no copy of the one which leaves, as after this host was lost, or
    where that was put back from a backup.

    :param departure: of the root that leaves, as that host has just said; where it said nothing, nobody knows.
    """
    if work.is_made and (not departure or work.claim.departure != departure):
        raise Refused(NOT_THIS_MOVES, work.claim.instance, NOT_THIS_MOVES_WAY)


def _must_be_alike(step: Step) -> None:
    """Raise Refused where nothing of the other host's architecture runs here, or a lease would end at another time."""
    host, came, now = step.host, step.asked.came, time.time()
    if came["cpu_arch"] != host.cpu_arch:
        what = OTHER_ARCH.format(other=came["cpu_arch"], own=host.cpu_arch)
        raise Refused(what, host.name, "choose another host: -e node=HOST")
    off = now - float(came["now"])
    if came.get("expires") is not None and abs(off) > SLACK:
        more = f"{age(abs(off))} {'more' if off > 0 else 'less'}"
        what = CLOCK.format(more=more, other=step.asked.other, when="too early" if off > 0 else "too late")
        raise Refused(what, host.name, CLOCK_WAY)


def _request(asked: Asked) -> ClaimRequest:
    """Return the request for an instance that comes from another host."""
    came, now = asked.came, time.time()
    instance, request, expires = str(came["instance"]), valid_instance(came["request"]), _expires(came)
    if came["kind"] not in OF_HOSTS:
        raise BadInput(f"is {came['kind']!r}", "kind", f"give one of {', '.join(OF_HOSTS)}")
    must_be_keys(str(came["host_key"]))
    number = None if request == instance else number_of(instance, request)
    arrival = Arrival(
        created=asked.created,
        expires=expires,
        note=moves.FROM.format(host=asked.other),
        gpu_arch=(list(came["kinds"]) or [None])[0] if came["kind"] == CONTAINER.section else None,
        first_id=came["root"].get("first_id"),
        mover=asked.run,
    )
    return ClaimRequest(
        request if number else instance,
        asked.owner or str(came["owner"]),
        dict(came["flavor"]),
        str(came["image"]),
        str(came["ssh_public_key"]),
        count=max(2, number) if number else 1,
        numbers=(number,) if number else (),
        lease_hours=None if expires is None else max(1 / 60, (expires - now) / 3600),
        kind=str(came["kind"]),
        arrives=arrival,
    )


def begun(step: Step) -> Result:
    """Make the empty copies, or go on with them; return which pieces they have, or that the root is `taken` already."""
    with step.arrives() as work:
        _must_be_of_this_move(work, step.asked.came["departure"])
        if work.is_made:
            return dict(taken=True, has={})
        work.put(expires=_expires(step.asked.came))  # its lease may have been extended before it left
        root = root_of(work)
        root.begin()
        folder, has = os.path.dirname(work.sign), {}
        for name, size in step.asked.came["files"].items():
            pieces = sparse_copy.begin(_path(work, folder, name), int(size))
            has[name] = {str(number): sum for number, sum in pieces.items()}
        return dict(taken=False, has=has)


def written(step: Step) -> Result:
    """Write a piece of a copy."""
    with step.arrives() as work:
        if work.is_made:
            raise Refused(HERE, step.asked.instance, GOES_ON.format(name=step.asked.instance))
        sparse_copy.write(_path(work, os.path.dirname(work.sign), step.asked.piece["file"]), step.asked.piece)
        step.change.note(step.asked.instance, {"piece": ""}, {"piece": str(step.asked.piece["number"])})
        return {}


def taken(step: Step) -> Result:
    """Compare the whole copies with their sources, and make the container or guest of them. It is not started."""
    with step.arrives() as work:
        if work.is_made:
            return {}
        folder, start = os.path.dirname(work.sign), time.monotonic()
        for name in step.asked.came["files"]:
            sparse_copy.must_be(_path(work, folder, name), str(step.asked.digests.get(name)))
        key = root_of(work).take(step.asked.came["root"])
        work.put(container=key, departure=str(step.asked.came["departure"]), **_as_it_left(step.asked.came))
        step.change.note(step.asked.instance, {"root": ""}, {"root": f"of {step.asked.other}"})
        work.report(PHASE, f"its root is here, the same as on {step.asked.other}", time.monotonic() - start)
        return {}


def _as_it_left(came: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a claim that may have changed since it was made here and before the instance left: a move
    that was cut off between these goes on days later.
    """
    for name in ("host_key", "ssh_public_key"):
        must_be_keys(str(came[name]))
    valid_image(str(came["image"]))
    hash = came["image_hash"]
    if hash is not None and not HASH.fullmatch(hash):
        raise BadInput("is no hash of an image", "image_hash", "see whether the other host is sound")
    same = {name: str(came[name]) for name in ("host_key", "ssh_public_key", "image")}
    return dict(same, image_hash=hash, expires=_expires(came))


def _expires(came: Mapping[str, Any]) -> float | None:
    ends = came.get("expires")
    return None if ends is None else float(ends)


def settled(step: Step) -> Result:
    """Write down that the former root goes. From then on no word gives up what is here: of the two roots, the play and
    an operator who thinks that it has died would remove one each. Where the database is put back, it is this run that
    the claim's record names, and not the one for which that word was given.
    """
    with step.work() as work:
        if work.claim.state != instance_states.RUNNING or not work.is_made:
            raise Refused(NOT_UP.format(state=work.claim.state), step.asked.instance, LOOK)
        was_settled = _is_settled(work)
        if was_settled and not step.is_as_seen(work):
            return {}  # another run did so since this one looked, and nobody who looked before that gives it up
        step.must_be_as_seen(work)
        step.take_up(work)
        if not was_settled:
            work.report(PHASE, SETTLED)
            step.change.note(step.asked.instance, {"settled": False}, {"settled": True})
        return {}


def _is_settled(work: Work) -> bool:
    """Return whether the former root goes, by the events since the instance was claimed here."""
    for event in reversed(work.host.store.newest_events(work.claim.instance, EVENTS)):
        if (event.phase, event.text) == (PHASE, SETTLED):
            return True
        if event.phase == CLAIM_PHASE:
            return False
    return False


def given_up(step: Step) -> Result:
    """End the claim here, with all that was copied, of an instance that was never started here. A whole copy goes only
    where the root that it was made of is still as it left.

    With `force`, an operator's word, also of one that was started, and whatever the former root is.
    """
    claim = step.host.store.claim_of(step.asked.instance)
    if claim is None or claim.created != step.asked.created:
        return {}
    with step.work() as work:
        never = (instance_states.ARRIVING, instance_states.ENDING)
        if work.claim.state not in never and not step.asked.force:
            raise Refused(MAY_HAVE_RUN, step.asked.instance, WORD.format(name=step.asked.instance))
        if work.claim.state not in never and _is_settled(work):
            raise Refused(IS_SETTLED, step.asked.instance, GOES_ON.format(name=step.asked.instance))
        if work.claim.state != instance_states.ENDING:  # a word that was given for another move is none for this one
            step.must_be_its_run(work)
            if not step.asked.force:
                _must_be_of_this_move(work, step.asked.departure)
        work.must_be_own()
        end(work, "its claim and its copy here are given up")
        return {}


def migrated(host: Host, request: str, options: Options, change: Change) -> Result:
    """Start an instance whose root was `taken` here; from then on its tenant may write to it."""

    def one(work: Work) -> None:
        must_not_end(work)
        if work.claim.state == instance_states.LEAVING:
            moves.must_not_move(work.claim.instance, work.claim.state, work.claim.note)
        if not work.is_made:  # whatever its state: a start would make an empty one, for which the former root would go
            work.must_not_be_lost()
            raise Refused(NOT_HERE, work.claim.instance, GOES_ON.format(name=work.claim.instance))
        if work.claim.state == instance_states.ARRIVING:
            work.must_start()
            if not change.check:
                work.move(instance_states.STARTING)
                root_of(work).release()
        bring_up(work)

    return each(host, request, VERB, options, change, one)


def _path(work: Work, folder: str, name: Any) -> str:
    """Return the path of a copy, whose name another host says."""
    if name not in NAMES[work.claim.kind]:
        raise BadInput(f"is {name!r}", "file", f"give one of {', '.join(NAMES[work.claim.kind])}")
    return os.path.join(folder, str(name))
