# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find containers and guests of claims in other folders than their own, whatever name somebody gave to a folder: also
that of another instance.

A container is known by its id, which stays valid where its folder is moved and not where it is copied; a guest by the
UUID that its claim gives to its domain. This file only reads.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from ..core.deadline import Deadline
from ..core.errors import HeteroError, Refused
from ..core.plays import play
from ..hypervisors.libvirt import guest_folder, guests
from ..hypervisors.libvirt.domain import CALL_TIME, Libvirt
from ..hypervisors.libvirt.domain_disks import disks_of
from ..hypervisors.lxc.identity import id_of, key_of, runs_by
from ..site.kinds import CONTAINER, GUEST
from ..site.leases import at
from .lost_database import key_of_folder, made_here

if TYPE_CHECKING:
    from ..claims.host.claim_records import Claim
    from ..hypervisors.lxc.liblxc import Container
    from .host import Host

MOVED = "{path} is the {word} of {instance}, moved: not touched: end nothing of it, and move it back to {own}"
COPY = "{path} is a copy of the {word} in {own}: keep it, or, once it is known that nothing uses it, remove it by hand"
#: Suffixes of copies beside an instance's folder, as the printed instructions on mounts and links (files) name them. No
#: other name there has a point. While a copy is there, only a person can tell which of the two is whole and newer.
COPIES = (".new", ".all")
HALF = (
    "{path} is a copy of {own}, or half of one: nothing is started or removed while it is there: see that what {own} "
    "was on is mounted, which of the two is whole, and which has what was written last; have that one at {own}, and "
    "put the other out of {place}; then run this again"
)
#: Text about a copy that the domain uses, for instance on a bigger disk: only it has what the guest wrote since.
USED = (
    "{path} is a copy of the {word} in {own}, and domain {name} uses it: remove nothing: once the guest is down, put "
    "the copy's disk in place of the other one, and have the domain use it there (virsh edit {name})"
)
#: A folder that is moved to where another is would lie inside that one.
TAKEN = ", once what lies there now is in its own place"
#: Of a claim's container by another path than before, while it can be known by the former alone.
SAME = "{path} is its container's folder {former} by another path, such as a link or a bind mount"
SAME_WAY = (
    "nothing is to be moved: have the host's configuration name {lxcpath} again (gpu_lxc_lxcpath, {play}), then run "
    "this again"
)
RUNS = "its container, which lies in {path}, runs, and was started in {former}: LXC knows it by that path alone"
RUNS_WAY = (
    "nothing of it is changed or ended: move it back there, and have the host's configuration name {lxcpath} again "
    "(gpu_lxc_lxcpath, {play}); stop it before it is moved"
)
#: The phase and the text of the event of an instance that is made anew while its container lies elsewhere.
PHASE, LEFT = "container", "container #{id} is not in its place, and is its container no more"
FORMER = "of no instance any more (by the event of {when} it was {instance}'s)"


def of_another(host: Host, word: str, path: str) -> str | None:
    """Return, in words, of which claim the container or guest in a folder is, if that is not the claim's own folder.

    :param word: "container" or "guest".
    """
    found = _found(word, path)
    for claim in host.store.claims() if found else ():
        if (word, found) == (_word(claim), _given(claim)) and os.path.basename(path) != claim.instance:
            own = _own(host, claim)
            if _found(word, own) != found:
                return _told(host, claim, path)
            if claim.kind == GUEST.section and _is_used(host, claim.instance, path):
                return USED.format(path=path, word=word, own=own, name=claim.instance)
            return _half(host, claim, path) or COPY.format(path=path, word=word, own=own)
    return None


def _is_used(host: Host, name: str, path: str) -> bool:
    """Return whether a guest runs from, or starts with, a disk in this folder, which is not its own."""
    domain = Libvirt(Deadline(CALL_TIME), host.config.kvm.libvirt_uri).domain(name)
    with suppress(HeteroError):
        found = [disks_of(domain.xml(live)) for live in (True, False)] if domain.defined else []
        return path in {os.path.dirname(disk) for disks in found for disk in disks}
    return False


def elsewhere(host: Host, claim: Claim) -> str | None:
    """Return, in words, in which other folder a claim's container or guest lies; None where it does in none."""
    given = _given(claim)
    for word, path in made_here(host.config) if given else ():
        if word == _word(claim) and os.path.basename(path) != claim.instance and _found(word, path) == given:
            return _told(host, claim, path)
    return None


def copy_beside(host: Host, claim: Claim) -> str | None:
    """Return, in words, that a copy of a claim's container or guest, or half of one, lies beside it; else None."""
    return next((_half(host, claim, path) for path in _copies(host, claim) if os.path.lexists(path)), None)


def _copies(host: Host, claim: Claim) -> list[str]:
    return [f"{_own(host, claim)}{end}" for end in COPIES]


def _half(host: Host, claim: Claim, path: str) -> str | None:
    own = _own(host, claim)
    is_one = path in _copies(host, claim)
    return HALF.format(path=path, own=own, place=os.path.dirname(own)) if is_one else None


def by_another_path(claim: Claim, container: Container) -> Refused | None:
    """Return the error of a claim's container that LXC knows by another path: the same folder's, or, where it was moved
    while it runs, the former one; None of all others.
    """
    old = claim.container or ""
    former, path = old.rpartition("#")[0], container.folder
    words = dict(path=path, former=former, lxcpath=os.path.dirname(former), play=play("gpu_host"))
    if former != path and os.path.exists(former) and os.path.samefile(former, path):
        return Refused(SAME.format(**words), claim.instance, SAME_WAY.format(**words))
    if old and id_of(key_of(container)) == id_of(old) and runs_by(former):
        return Refused(RUNS.format(**words), claim.instance, RUNS_WAY.format(**words))
    return None


def note_if_elsewhere(host: Host, claim: Claim, there: str | None) -> None:
    """Write down, before a claim's container is removed, that the one that it knows is not there.

    It may lie in another folder, and nothing else would say by then whose it was.

    :param there: the key of the container that lies in its folder.
    """
    known = id_of(claim.container)
    if known is not None and known != id_of(there):
        host.store.event(claim.instance, PHASE, LEFT.format(id=known))


def formerly(host: Host, word: str, path: str) -> str | None:
    """Return, in words, whose the container in a folder was by the events, which also name who has devices."""
    found = _found(word, path) if word == CONTAINER.name else None
    event = host.store.newest_event_about(f"#{found}") if found else None
    if event is None or event.instance == os.path.basename(path):
        return None
    return FORMER.format(when=at(event.time), instance=event.instance)


def _told(host: Host, claim: Claim, path: str) -> str:
    half = _half(host, claim, path)
    if half:
        return half
    own = _own(host, claim)
    taken = TAKEN if os.path.lexists(own) else ""
    return MOVED.format(path=path, word=_word(claim), instance=claim.instance, own=own) + taken


def _own(host: Host, claim: Claim) -> str:
    return os.path.join(host.config.disks(claim.kind), claim.instance)


def _word(claim: Claim) -> str:
    return GUEST.name if claim.kind == GUEST.section else CONTAINER.name


def _given(claim: Claim) -> str | None:
    """Return the id that what was made for a claim has; None where nothing was."""
    if claim.kind == GUEST.section:
        return guests.uuid_for(claim.instance, claim.created)
    return id_of(claim.container)


def _found(word: str, path: str) -> str | None:
    """Return the id of what lies in a folder."""
    return guest_folder.made_for(path) if word == GUEST.name else id_of(key_of_folder(path))
