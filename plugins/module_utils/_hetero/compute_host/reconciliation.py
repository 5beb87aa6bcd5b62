# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the records of a host's instances with what is there: the container or guest, whether it runs, and which key
answers ssh.

It reports what it found and mends what is safe; nothing is started, ended or written into a root.
hypervisors/lxc_gpus/gpu_reconciliation.py checks who can open which GPU, and domains.py which domain has which device.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Dict, Iterator, Sequence

from ..core.deadline import Deadline
from ..core.errors import HeteroError, Refused
from ..core.locks import BUSY, held_by
from ..core.plays import play
from ..drivers.boot import ssh
from ..hypervisors.lxc import folders, identity, new_container
from ..hypervisors.lxc.liblxc import containers
from ..hypervisors.lxc_gpus.restoration import begin_anew
from ..site import instance_states
from ..site.instance import lock_of
from ..site.leases import as_date, until
from ..site.moves import is_half, must_not_move
from .domains import audit
from .lifecycle import held, must_know_the_lease, work_of
from .unclaimed_instances import of_no_instance

if TYPE_CHECKING:
    from ..core.changes import Change
    from .host import Host
    from .work import Work

#: The findings about an instance, as the module returns them.
Look = Dict[str, Any]
PHASE = "reconcile"
#: Seconds that a running container may take to prove its key; it runs on this machine, so this is short.
PATIENCE = 6.0
#: Seconds in which libvirt answers all that is asked of a guest, beside those for which another verb is waited for.
LOOK_TIME = 30.0
#: The remedy for an instance that was claimed and is not there.
AGAIN = (
    f"{play('provision_instance', instance='{name}', flavor='{flavor}', image='{image}')} makes it{{anew}}, "
    f"{play('terminate_instance', instance='{name}')} ends it"
)
ANOTHERS = (
    "another host key than its own answers at {address}: not touched: its tenant made a new key, or another machine "
    "has that address: see {look} on its host, and end the other machine where there is one; once its tenant agrees, "
    f"{play('rebuild_instance', instance='{name}', fresh='true')} makes it anew, with a key that is known"
)
LEFT_OLD = (
    "its rebuild was cut off before anything was removed: not touched: "
    f"{play('start_instance', instance='{name}')} ends it, and what is in it goes"
)
#: The remedy for an instance that runs and is silent; its tenant may have work there.
LOOK_OR_REBOOT = (
    "its sshd ended, or its network is cut: see {look} on its host; once its tenant agrees, "
    f"{play('reboot_instance', instance='{name}', how='hard')} boots it anew"
)
OWN_KEY, OTHER_KEY, SILENT = "own key", "other key", "no answer"


def reconcile(host: Host, change: Change, timeout: float, anew: bool = False) -> dict[str, Any]:
    """Look at all instances, and mend what is safe; return the module's result.

    :param timeout: seconds to wait until another verb releases an instance.
    :param anew: the database was lost, and a new, empty one is made.
    """
    host.store.must_be_whole()
    if not change.check:
        host.store.keep_missing()
        identity.note_marks([host.config.lxc.lxcpath], host.store)
    places = [host.config.lxc.lxcpath, *folders.in_use()] if anew else []
    left = _begin(host, change) if any(map(containers, places)) else []
    looks: list[Look] = []
    unseen: list[str] = []
    for claim in host.store.claims():
        look: Look = dict(name=host.name, instance=claim.instance, kind=claim.kind, recorded=claim.state)
        look.update(power=None, ssh=None, found=[])
        limit = Deadline(timeout + LOOK_TIME)
        work = work_of(host, claim, change, limit, lambda phase, text, seconds=None, event=True: None)
        try:
            with held(work, PHASE, Deadline(timeout)):
                who = _at_work(work)
                if not who:
                    work.read()
                    look["recorded"] = work.claim.state
                    _judge(work, look)
                    who = _at_work(work)
            if who:
                look["found"] = []
                _note(look, BUSY.format(who=who))
        except HeteroError as error:
            unseen.append(claim.instance)
            _note(look, f"not looked at: {error}")
        looks.append(look)
    found = audit(host, change)
    return dict(change.result, instances=looks, unseen=unseen, domains=found, others=of_no_instance(host), left=left)


def _at_work(work: Work) -> str | None:
    """Return who works on an instance while a dry run looks at it, or None.

    A dry run takes no lock, so what it sees of such an instance means nothing.
    """
    run_folder, instance = work.host.config.run_folder, work.claim.instance
    return held_by(run_folder, lock_of(instance), instance) if work.change.check else None


def _begin(host: Host, change: Change) -> list[str]:
    """Write down in a new database what containers have; return in words why that may not be all."""
    begun = begin_anew(host.site, dry=change.check)
    for address, names in begun.written.items():
        change.note(address, {"holder": None}, {"holder": ", ".join(names)})
    return begun.left


def _note(look: Look, found: str, done: str | None = None) -> None:
    """Add a finding.

    :param done: what was mended, or would be; None if it is only reported.
    """
    look["found"].append(dict(found=found, done=done))


def _lease(work: Work, look: Look) -> None:
    """Have database and record of a claim agree on the later end of its lease; report an end that is not known."""
    store, claim = work.host.store, work.claim
    with _noted(look):
        must_know_the_lease(work)
    other = store.other_lease(claim)
    if other is None:
        return
    now, path = time.time(), store.records.path(claim.instance)
    by_record, by_database = (until(end, now) for end in other)
    done = "the later end would be written down in both" if work.change.check else "the later end is in both now"
    _note(look, f"its lease ends otherwise by {path} ({by_record}) than by the database ({by_database})", done)
    before, after = dict(zip(("record", "expires"), map(as_date, other))), as_date(claim.expires)
    work.change.note(claim.instance, before, dict(record=after, expires=after))
    if not work.change.check:
        work.put(expires=claim.expires)


def _judge(work: Work, look: Look) -> None:
    """Compare what is recorded of an instance with what is there, and mend what is safe."""
    _lease(work, look)
    with _noted(look):
        must_not_move(work.claim.instance, work.claim.state, work.claim.note)
    if is_half(work.claim.state, work.claim.note):
        return
    why = _why_not_compared(work)
    if why:
        _note(look, why)
        return
    look["power"] = "on" if work.container.running else "off"
    if look["power"] == "on":
        look["ssh"] = _whose_key(work)
    _judge_state(work, look)
    work.autostart = work.claim.state != instance_states.STOPPED
    with _noted(look):
        work.must_be_whole()
        work.correct([new_container.CONFIGURATION], partial(_put_back, work, look))
    with _noted(look):
        work.must_have_devices()
    if work.harm:
        _note(look, f"{work.harm}: not touched")


def _why_not_compared(work: Work) -> str | None:
    """Return why there is nothing to compare with the record: not made, lost, or about to go; else None."""
    try:
        work.must_not_be_lost()
        work.must_not_be_newer()
    except Refused as error:
        return str(error)
    if work.claim.container is None:
        return f"claimed, and its {work.word} not made yet: {_again(work)}"
    if not work.is_made:
        return f"its {work.word} is gone: {_again(work, ' anew')}"
    return LEFT_OLD.format(name=work.claim.instance) if work.is_left_old else None


def _judge_state(work: Work, look: Look) -> None:
    """Correct the recorded state by what runs and which key it shows; only report a key of another, or silence."""
    state, name = work.claim.state, work.claim.instance
    if look["power"] == "off" and state not in (instance_states.STOPPED, instance_states.ERROR):
        way = f"{play('start_instance', instance=name)} brings it up"
        _mend(work, look, instance_states.STOPPED, f"recorded as {state}, it does not run", way)
    elif look["ssh"] == OWN_KEY and state != instance_states.RUNNING:
        _mend(work, look, instance_states.RUNNING, f"recorded as {state}, it runs and shows its own key")
    elif look["ssh"] == OTHER_KEY:
        _note(look, ANOTHERS.format(address=work.claim.address, look=work.inside, name=name))
    elif look["ssh"] == SILENT:
        way = LOOK_OR_REBOOT.format(look=work.inside, name=name)
        _note(look, f"recorded as {state}, it runs and does not answer ssh: not touched: {way}")


@contextmanager
def _noted(look: Look) -> Iterator[None]:
    """Report it where the block is refused, and go on."""
    try:
        yield
    except Refused as error:
        _note(look, str(error))


def _again(work: Work, anew: str = "") -> str:
    """Return the command line for an instance that was claimed and is not there."""
    claim = work.claim
    flavor = claim.flavor.get("name", "FLAVOR")
    return AGAIN.format(name=claim.instance, flavor=flavor, image=claim.image, anew=anew)


def _mend(work: Work, look: Look, state: str, found: str, more: str = "") -> None:
    _note(look, found, f"recorded as {state}{f' ({more})' if more else ''}")
    work.change.note(work.claim.instance, {"state": work.claim.state}, {"state": state})
    work.move(state, "found so")


def _put_back(work: Work, look: Look, what: Sequence[str]) -> None:
    done = "would be put back" if work.change.check else "put back"
    _note(look, f"missing or another: {', '.join(what)}", done)


def _whose_key(work: Work) -> str:
    try:
        return OWN_KEY if ssh.answers(work.address, work.claim.host_key, Deadline(PATIENCE)) else SILENT
    except ssh.WrongHostKey:
        return OTHER_KEY
