# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare libvirt's domains that have PCI devices with the table of allocations.

It finds domains of no instance, and devices that domain and table do not agree on. A domain is never touched, for it is
somebody's. A device that is allocated to a domain which is gone becomes free. A device that a guest made here has (by
its folder, or by the record of its claim), and the table gives to nobody, is allocated to that guest again; also where
libvirt, whose files may be older, has no domain of it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Collection, Mapping, NamedTuple, Sequence

from ..claims.host.allocation import short
from ..core.errors import HeteroError
from ..core.plays import play
from ..devices.pci import domains, sysfs
from ..devices.pci.allocation import write_down
from ..devices.pci.domains import is_there
from ..devices.pci.made_guests import is_made, only_by_folder
from ..hypervisors.libvirt.attachment import METHOD, by_hand, holder_of
from ..hypervisors.libvirt.guests import uuid_for
from ..site.kinds import GUEST
from .unclaimed_instances import whose

if TYPE_CHECKING:
    from ..claims.host.allocation import Allocation
    from ..core.changes import Change
    from .host import Host

PHASE = "pci"
DOMAIN = holder_of("")
FREES = "libvirt_hostdev, state detached, frees it"
#: The remedy for a device that a domain should not have.
TAKE = "once nobody wants it there, module libvirt_hostdev with domain {name} and state detached takes it away"
#: The remedy where the record of a claim says whose the domain is, and the database, which is older, does not.
NEWER = f"nothing is taken from it: put a newer copy of the database back, then run {play('reconcile')}"

#: What an instance's guest was given by hand, and has no more.
OVER = f"allocated to its guest for one run, which is over ({FREES})"
#: Of a domain that libvirt has no more, by a file, and that its operator may define again of a copy.
EMPTIED = (
    f"allocated to a domain that libvirt has no more, for {{file}} is empty, as a power cut leaves one: define it "
    f"again (virsh define), or, where nobody needs it, remove the file and run {play('reconcile')}, which frees it"
)
GONE = "; it is no more on this host, and nothing is written down of it until it is put back"


class Seen(NamedTuple):
    """The table and the domains at one moment.

    :param rows: all allocations.
    :param instances: the holders of all claims.
    :param defined: {address of a device: names of the domains, and guests `of_no_claim`, that would start with it}.
    :param running: {address of a device: names of the running domains that have it}.
    """

    rows: Sequence[Allocation]
    instances: Collection[str]
    defined: Mapping[str, Sequence[str]]
    running: Mapping[str, Sequence[str]]


def audit(host: Host, change: Change) -> list[dict[str, Any]]:
    """Return dicts of domain, address, found and done for what does not agree; `done` is None if it is only told."""
    with host.store.transaction(dry=change.check):
        rows = host.store.allocations()
        instances = {claim.holder for claim in host.store.claims()}
        seen = Seen(rows, instances, *_having(host))
        findings = _had(host, seen, change) + _given(host, seen, change)
    return sorted(findings, key=lambda one: (one["domain"], one["address"]))


def _having(host: Host) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return Seen.defined and Seen.running."""
    defined, running = domains.holders(host.pci)
    for address, names in of_no_claim(host).items():
        defined.setdefault(address, []).extend(names)
    return defined, running


def of_no_claim(host: Host) -> dict[str, list[str]]:
    """Return what guests have `only_by_folder`, but those of claims in the database. That has what is theirs: what more
    their folders tell of was taken back since, and is in no domain that is made of them again.
    """
    known = [uuid_for(claim.instance, claim.created) for claim in host.store.claims()]
    return only_by_folder(host.pci, known)


def _had(host: Host, seen: Seen, change: Change) -> list[dict[str, Any]]:
    """Return the findings about what domains have.

    If a guest that was made here has a device that is free by the table, which was lost or is older, the table gets it;
    but not where another one runs with it, or several would start with it: it is lent from one to another.
    """
    findings = []
    for address in sorted({*seen.defined, *seen.running}):
        holders = [row.holder for row in seen.rows if row.address == address]
        runs = seen.running.get(address, [])
        names = sorted({*seen.defined.get(address, ()), *runs})
        for name in names:
            own = holder_of(name)
            if own in holders and own in seen.instances:
                continue
            record, is_defined = _record_of(host, name), _is_defined(host, name)
            of = f"that no claim in the database has ({record})" if record else "of no instance"
            thing = "a domain" if is_defined else "a guest, whose domain libvirt has no more,"
            found = f"{thing} {of} {'has' if name in runs else 'would start with'} it"
            if own in seen.instances:
                found = f"its guest {'has' if name in runs else 'would start with'} it besides its own"
            if own in holders:
                found += ", and it is allocated to that"
            elif holders:
                found += f", and it is allocated to {', '.join(map(short, holders))}"
            else:
                found += ", and it is allocated to nobody"
            others = [f"domain {one}" for one in runs or names if one != name and not holders]
            if others:
                found += f", and {', '.join(others)} {'runs with it' if runs else 'would start with it, too'}"
            ours = not holders and not others and (record is not None or is_made(name, host.pci))
            newer = not is_defined or (record and not (others and own in seen.instances))
            found += "" if ours else f": {NEWER if newer else TAKE.format(name=name)}"
            if ours and sysfs.look(address, host.pci) is None:
                found, ours = f"{found}{GONE}", False
            findings.append(_finding(name, address, found, "written down" if ours else None))
            if ours:
                change.note(address, {"holder": None}, {"holder": name})
                if own in seen.instances:
                    _write_down_by_hand(host, name, address, name in seen.defined.get(address, ()))
                else:
                    write_down(host.store, own, address, host.pci)
    return findings


def write_down_next_start(host: Host, name: str) -> None:
    """Write down with what an instance's guest would start and nobody is allocated, before its domain is undefined; not
    what is lent from one to another, as in `_had`.
    """
    # a file of libvirt's that is no XML keeps no guest from its end
    with suppress(HeteroError), host.store.transaction():
        taken = {row.address for row in host.store.allocations()}
        defined, running = _having(host)
        for address, names in defined.items():
            is_alone = set(running.get(address, names)) == {name}
            if name in names and is_alone and address not in taken:
                _write_down_by_hand(host, name, address, True)


def _write_down_by_hand(host: Host, name: str, address: str, persistent: bool) -> None:
    """Write down what an instance's guest was given by hand: what is its claim's own is in each copy with the claim.

    Which driver the device was on before, nobody knows.
    """
    write_down(host.store, holder_of(name), address, host.pci, method=f"{METHOD}:", persistent=persistent)


def _is_defined(host: Host, name: str) -> bool:
    return is_there(name, host.pci) and not domains.emptied(name, host.pci)


def _record_of(host: Host, name: str) -> str | None:
    """Return, in words, what the record of a guest's claim says; None without one. Its folder may not be mounted."""
    kept = host.store.kept(name)
    return None if kept and kept.kind != GUEST.section else whose(host, name)


def _given(host: Host, seen: Seen, change: Change) -> list[dict[str, Any]]:
    """Return the findings about what domains are to have and lack. Of instances' guests each verb puts back what is
    theirs, but not what they were given by hand for one run.
    """
    findings = []
    for row in seen.rows:
        name = row.holder[len(DOMAIN) :] if row.holder.startswith(DOMAIN) else None
        if name is None or name in (*seen.defined.get(row.address, ()), *seen.running.get(row.address, ())):
            continue
        if row.holder in seen.instances:
            if by_hand(row) and not row.persistent:
                findings.append(_finding(name, row.address, OVER))
            continue
        if _is_defined(host, name):
            findings.append(_finding(name, row.address, f"allocated to a domain that does not have it ({FREES})"))
            continue
        record = _record_of(host, name)
        if record or is_made(name, host.pci):
            of = record or f"guest {name} lies in {host.pci.guests}"
            found = f"allocated to a guest that neither the database nor libvirt has ({of}): {NEWER}"
            findings.append(_finding(name, row.address, found))
            continue
        file = domains.emptied(name, host.pci)
        if file:
            findings.append(_finding(name, row.address, EMPTIED.format(file=file)))
            continue
        findings.append(_finding(name, row.address, "allocated to a domain that is no more", "freed"))
        change.note(row.address, {"holder": short(row.holder)}, {"holder": None})
        free_again(host, row)
    return findings


def free_again(host: Host, row: Allocation) -> None:
    """Take back what is allocated to a domain that is no more."""
    host.store.free(row)
    host.store.event(None, PHASE, f"free again: {row.holder} is no more", address=row.address)


def _finding(name: str, address: str, found: str, done: str | None = None) -> dict[str, Any]:
    return dict(domain=name, address=address, found=found, done=done)
