# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The life of instances that are claimed here, in containers and in KVM guests: made, started, with their devices,
reached by ssh; stopped, made anew, ended.

Each verb works on the instances of a request, each under its lock; the failure of one does not stop the others. A verb
that was killed anywhere completes when it is run again: each step is written down before it is done, and looks first.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator

from ..core import askers
from ..core.deadline import Deadline
from ..core.errors import BadInput, HeteroError, Refused, TimedOut, is_full, naming
from ..core.lines import line
from ..core.locks import lock
from ..core.plays import play
from ..core.reserve import is_short
from ..core.this_node import THIS_NODE
from ..hypervisors.lxc import new_container
from ..roots.cloud_init import SEEDED, must_be_user_data, must_have_cloud_init
from ..roots.machine_identity import must_be_keys
from ..site import instance_states
from ..site.image_names import valid_image
from ..site.instance import NOTHING_TO_REBUILD, lock_of
from ..site.key_prints import with_keys
from ..site.kinds import CONTAINER, GUEST
from ..site.leases import END, ENDS, as_date, end, later, must_be_hours, over, until
from ..site.moves import host_of, is_half, must_not_move
from ..site.node_clock import extend_lease, extended_late
from ..site.owners import is_of, must_be_made, must_own
from .container import ContainerWork
from .guest import GuestWork
from .host_claims import REAPER, shown
from .host_fit import limits_of
from .host_queue import must_be_allowed
from .roots_out_of_sight import must_be_seen
from .told_of_ends import freed, moved_away
from .unclaimed_instances import refuse_unclaimed
from .verb_options import HARD, SOFT, Options
from .work import MADE_ANEW, TO_BE_REMOVED

if TYPE_CHECKING:
    from ..claims.host.claim_records import Claim
    from ..core.changes import Change
    from .host import Host
    from .work import Report, Work

#: A module's result.
Result = Dict[str, Any]
RUNS_NOW = "runs, or ran, since it was looked at: nothing of it is taken back"
STARTS_AGAIN = "it will start with the host again: {error}"
TAKEN_BACK = "; its end, which was cut off before its data were removed, is taken back"
#: {what an instance runs in: the class that works on it}.
KINDS: dict[str | None, type[Work]] = {CONTAINER.section: ContainerWork, GUEST.section: GuestWork}
#: Verbs that do not end an instance; they report where its lease is over.
KEEP = ("start", "reboot", "stop", "rebuild")


def running(host: Host, request: str, options: Options, change: Change) -> Result:
    """Have the instances made and started, with their devices, and answering ssh with the host key they were given."""
    return each(host, request, "start", options, change, bring_up)


def rebooted(host: Host, request: str, options: Options, change: Change) -> Result:
    """End the instances and start them. Claims, data and devices stay."""

    def one(work: Work) -> None:
        if work.is_made and work.container.running:
            work.must_be_whole()
            work.must_start()
            work.must_not_be_newer()
            if not change.check:
                bring_down(work, options)
            elif change.note(work.claim.instance, {"boot": "the present one"}, {"boot": "another one"}):
                work.report(work.word, f"{work.word} would be stopped, and started again")
        bring_up(work)

    return each(host, request, "reboot", options, change, one)


def stopped(host: Host, request: str, options: Options, change: Change) -> Result:
    """End the instances. All that is claimed stays."""

    def one(work: Work) -> None:
        work.must_not_be_lost()
        work.autostart = False
        if work.is_made:
            keep_down(work)
            if work.container.running:
                bring_down(work, options)
        work.move(instance_states.STOPPED)

    return each(host, request, "stop", options, change, one)


def rebuilt(host: Host, request: str, options: Options, change: Change) -> Result:
    """Make the instances anew, of another image or with another key if one was given. Address, flavor, GPUs and lease
    stay.
    """
    if options.image is not None:
        valid_image(options.image)
    if options.ssh_public_key:
        must_be_keys(options.ssh_public_key)
    if options.user_data:
        must_be_user_data(options.user_data)

    def one(work: Work) -> None:
        old = work.claim
        new = dict(image=options.image or old.image, ssh_public_key=options.ssh_public_key or old.ssh_public_key)
        image = work.image(new["image"])
        hash = image.hash
        if options.user_data:
            must_have_cloud_init(image)
        same = new == dict(image=old.image, ssh_public_key=old.ssh_public_key) and hash == old.image_hash
        if not options.fresh:
            work.must_not_be_newer()
        if not same or options.fresh:
            before = dict(shown(host, old), image_hash=old.image_hash, fresh=False)
            change.note(old.instance, before, dict(before, **new, image_hash=hash, fresh=options.fresh))
            work.must_be_own()
            if work.has_root:
                host.images.must_be_whole(image)
                work.must_be_makeable(image)
                work.must_start()
            work.report(work.word, MADE_ANEW.format(image=new["image"]))
            if not change.check:
                work.put(**new, image_hash=TO_BE_REMOVED, state=instance_states.REBUILDING, note="")
                work.must_have_still(image, old)
                work.remove()
        else:  # no event, for a user may ask for this each day
            text = NOTHING_TO_REBUILD.format(name=old.instance, image=old.image, hash=hash)
            work.report(work.word, text, event=False)
        if same or not change.check:
            bring_up(work)

    return each(host, request, "rebuild", options, change, one)


def extended(host: Host, request: str, options: Options, change: Change) -> Result:
    """Let the leases end so many hours from now, or never. An end that removed no data yet is taken back."""
    hours = options.lease_hours
    if hours is None:
        raise BadInput("is missing", "lease_hours", "give hours from now, 0 for no end")
    must_be_hours(hours, "lease_hours", endless=True)
    late = extend_lease(host.store, REAPER, change.check) if hours else ""

    def one(work: Work) -> None:
        state = work.claim.state
        if state == instance_states.ENDING:
            if not work.is_made:
                raise Refused(ENDS, work.claim.instance, END)
            # it is no end any more, and what is missing later is lost
            state = instance_states.RUNNING if work.container.running else instance_states.STOPPED
        host.store.must_be_its_record(work.claim)
        now, old = time.time(), work.claim.expires
        doubt = host.store.doubt_of(work.claim)
        expires = end(hours, None if doubt else old, now)
        limits = limits_of(host)
        must_be_allowed(host, work.claim, limits.longest(work.claim.owner, expires, now))  # it may be nearer than those
        if later(old, expires) != old:
            limits.must_not_be_longer(work.claim.instance, work.claim.owner, hours)
        before = {"expires": f"{as_date(old)} ({doubt[0]})" if doubt else as_date(old), "state": work.claim.state}
        if change.note(work.claim.instance, before, {"expires": as_date(expires), "state": state}):
            # the record, which may know more than an older database, gets no state that does not change
            back = {} if state == work.claim.state else {"state": state}
            said = TAKEN_BACK if back else ""
            work.report("lease", f"lease: {until(expires, now)} (was: {until(old, now)}){said}{late}")
            if not change.check:
                if late:
                    extended_late(host.store, REAPER)
                with host.store.transaction():
                    must_be_allowed(host, work.claim, expires)  # another claim may have come meanwhile
                    work.put(expires=expires, **back)
        work.more["until"] = until(expires, now)

    return each(host, request, "extend", options, change, one)


def absent(host: Host, request: str, options: Options, change: Change) -> Result:
    """End the instances, remove their roots, close and free their devices, and end their claims; each is read back.

    The result's `left` is {instance: host} of those that leave for another host, or have moved there since they were
    looked up.
    """
    left: dict[str, str] = {}

    def one(work: Work) -> None:
        if options.over is not None:
            if work.claim.expires is None or work.claim.expires > options.over:
                return
            must_know_the_lease(work)
        if options.never_ran and not _never_ran(work) and (work.is_made or work.is_lost):
            raise Refused(RUNS_NOW, work.claim.instance, "run this again")
        work.must_be_own()
        must_be_seen(work)
        start = time.monotonic()
        change.note(work.claim.instance, shown(host, work.claim), {})
        if work.claim.state == instance_states.LEAVING:
            left[work.claim.instance] = host_of(work.claim.note)
        devices = host.store.allocations(work.claim.holder)
        what = work.whole if work.is_made else "claim"
        if not change.check:
            work.move(instance_states.ENDING, work.claim.note if is_half(work.claim.state, work.claim.note) else "")
            work.remove()
            work.give_back()
            host.store.release(work.claim.instance, options.owner)
        gone = f"{what} {'would be ' if change.check else ''}removed"
        seconds = None if change.check else time.monotonic() - start
        work.report(work.word, gone + freed(work, devices), seconds)

    done = each(host, request, "release", options, change, one, must_be=False)
    return dict(done, left={**moved_away(host, request, options), **left})


# ---- one instance


def must_know_the_lease(work: Work) -> None:
    """Raise Refused where nobody knows the end of an instance's lease, whose record is lost or contradicts it.

    Where its end was begun, and nothing is there any more, nothing is lost by the rest of it: the record goes first.
    """
    doubt = work.host.store.doubt_of(work.claim)
    if doubt and (work.is_made or work.claim.state != instance_states.ENDING):
        what, remedy = doubt
        raise Refused(what, work.claim.instance, remedy)


def _never_ran(work: Work) -> bool:
    """Return whether an instance never ran, so that nobody can have anything in it, by all that is known of it."""
    if work.kept is None:
        return work.claim.state in instance_states.NEVER_RAN and not work.is_made
    states = {work.claim.state, work.kept.state}
    return states <= set(instance_states.NEVER_RAN) and not (work.is_made and work.has_run())


def bring_up(work: Work) -> None:
    """Bring an instance up; remove one that never ran and cannot be brought up. A rebuild that was cut off is ended."""
    work.must_not_be_newer()
    new, was_made = _never_ran(work), work.is_made
    if not new and work.claim.state in instance_states.NEVER_RAN:
        work.move(instance_states.STARTING)
    try:
        if work.is_left_old:
            work.must_be_own()
            image = work.image(work.claim.image)
            work.host.images.must_be_whole(image)
            work.must_be_makeable(image)
            work.must_start()
            work.report(work.word, MADE_ANEW.format(image=work.claim.image))
            if work.change.check:
                return
            work.remove()
        work.make()
        if work.user_data:
            there = f"user_data {'would be' if work.change.check else 'is'} there for cloud-init"
            work.report("image", SEEDED if was_made else there, event=not was_made)
        if work.change.check and not work.is_made:
            return
        if work.harm:
            work.report("disk", work.harm)
        work.start()
        work.give_devices()
        work.answer()
    except HeteroError as error:
        if work.change.check:
            raise
        if not new:
            work.move(instance_states.ERROR, str(error))
            raise
        work.must_be_own()  # where something else lies in its place, the claim stays as it is until that is moved away
        work.move(instance_states.ENDING)
        work.remove()
        work.give_back()
        work.host.store.release(work.claim.instance)
        what = f"{error.what} ({work.claim.instance} was taken back, nothing of it is left)"
        raise type(error)(what, error.thing, error.remedy, **error.facts) from error
    work.move(instance_states.RUNNING)


def keep_down(work: Work) -> None:
    """Have it not start with its host. A full disk is said, and stands not in the way of its end, which needs none."""
    try:
        work.correct([new_container.CONFIGURATION], lambda parts: None)
    except HeteroError as error:
        # a full disk also keeps the container's own file system from being checked
        if not (is_full(error) or is_short(work.sign)):
            raise
        work.report(work.word, STARTS_AGAIN.format(error=error))


def bring_down(work: Work, options: Options, state: str | None = instance_states.STOPPING) -> None:
    """End an instance by its init, or by force; meanwhile it is in this state, or in the one that it has (None)."""
    start = time.monotonic()
    work.change.note(work.claim.instance, {"state": work.claim.state}, {"state": instance_states.STOPPED})
    if work.change.check:
        work.report(work.word, f"{work.word} would be stopped")
        return
    if work.leaves:
        work.report("disk", work.leaves)
    if state is not None:
        work.move(state)
    said = f"{work.word} stopped"
    try:
        if options.how == HARD:
            work.container.stop()
        else:
            work.container.shutdown(min(options.soft_timeout, work.deadline.left))
    except TimedOut:
        if options.how == SOFT:
            raise
        work.container.stop()
        said = f"{work.word} did not end within {options.soft_timeout:g} s: stopped by force"
    work.report(work.word, said, time.monotonic() - start)


# ---- all instances of a request


def each(
    host: Host,
    request: str,
    verb: str,
    options: Options,
    change: Change,
    one: Callable[[Work], None],
    must_be: bool = True,
) -> Result:
    """Call `one` for each instance of a request, each under its lock; return the module's result.

    :param must_be: raise Refused if there is no such instance, as is done where none has the key that is meant.
    """
    refuse_unclaimed(host, request)
    claims = [claim for claim in host.store.claims() if is_of(vars(claim), request, options.numbers)]
    claims = [claim for claim in claims if not options.names or claim.instance in options.names]
    if not claims and must_be:
        raise Refused(f"no such instance on {THIS_NODE}", request, f"{play('status')} shows who has what")
    claims = with_keys(claims, options.only_key)
    lines: list[Result] = []
    results: list[Result] = []
    for claim in claims:
        report = reporter(host, claim.instance, change, lines)
        work = work_of(host, claim, change, Deadline(options.timeout), report)
        work.user_data = options.user_data
        failure: Result = dict(failed=False)
        try:
            must_own(claim, options.owner)
            must_be_made(claim, options.created)
            with naming(claim.instance), held(work, verb, work.deadline):
                work.read()
                if verb not in ("release", "migrate") or options.never_ran:
                    must_not_move(claim.instance, work.claim.state, work.claim.note)
                ended = over(claim.instance, work.claim.expires, time.time()) if verb in KEEP else None
                if ended:
                    report("lease", ended, event=False)
                one(work)
        except HeteroError as error:
            again = options.over is not None and host.store.was_told(claim.instance, "error", str(error))
            report("error", str(error), event=not again)  # the reaper takes a turn each few minutes
            failure = dict(failed=True, error=str(error), failure=error.failure)
        results.append(dict(work.result, **failure))
    failed = [result["error"] for result in results if result["failed"]]
    done = dict(change.result, instances=results, lines=lines)
    return dict(done, failed=True, msg="; ".join(failed)) if failed else done


def work_of(host: Host, claim: Claim, change: Change, deadline: Deadline, report: Report) -> Work:
    """Return the work on an instance, by what the instance runs in."""
    return KINDS[claim.kind](host, claim, change, deadline, report)


@contextmanager
def held(work: Work, verb: str, deadline: Deadline) -> Iterator[None]:
    """Hold the lock of an instance, whose work then has begun; hold none in check mode, which changes nothing."""
    if work.change.check:
        yield
        return
    waiting = partial(work.report, "wait")
    with lock(work.host.config.run_folder, lock_of(work.claim.instance), verb, work.host.actor, deadline, waiting):
        askers.asked_by(None)  # no lock of its devices is refused to it from now on
        yield


def reporter(host: Host, instance: str, change: Change, lines: list[Result]) -> Report:
    def report(phase: str, text: str, seconds: float | None = None, event: bool = True) -> None:
        seconds = None if seconds is None else round(seconds, 3)
        if event and not change.check:
            host.store.event(instance, phase, text, seconds)
        lines.append(line(instance, host.name, "", text, seconds))

    return report
