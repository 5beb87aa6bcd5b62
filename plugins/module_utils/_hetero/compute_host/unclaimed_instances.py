# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find containers and guests that were made here and that have no claim in the host's database; and records of claims
that are not in it, of such as lie on a file system that is not mounted.

The database was then put back from an older copy, and an answer that there is no such instance would be wrong. This
file only reads.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any, Collection, Iterator

from ..claims.host.tables import mark_beside
from ..claims.lost_database import NO_CLAIM
from ..core.backups import copies, folder_of, how_to_restore
from ..core.errors import Refused
from ..core.plays import play
from ..core.printable import printable
from ..hypervisors.libvirt.guest_folder import DESCRIPTION, DISK, is_whole
from ..hypervisors.lxc import disks
from ..site.instance_states import LEAVING
from ..site.kinds import CONTAINER, GUEST, SECTIONS
from ..site.leases import until
from ..site.moves import host_of
from ..site.owners import number_of
from .lost_database import made_here, unread_here
from .moved_instances import formerly, of_another

if TYPE_CHECKING:
    from .host import Host

WAY = (
    f"nothing is touched: put a newer copy of it back ({{folder}}), then run {play('reconcile')}; or, once nobody "
    "wants it, {end}"
)
#: No command is told that removes its disk, which may be another's.
END = (
    "end it (a guest by the commands of libvirt; a container: stop it, see whose root lies in its folder, unmount what "
    "is mounted there), and remove its folder"
)
#: As long as its record is there, what it had is given to nobody.
END_RECORD = ", then the record, {path}"
#: Where no more is seen than the record of its claim.
END_UNSEEN = "end it where it is (the file system that holds it may not be mounted), and remove that file"
#: Of a container that nothing here says to be somebody's; a person who gave it GPUs by hand may know whose it is. No
#: command that removes it is told: one that was copied or renamed by hand still names the other's root, which
#: lxc-destroy removes, and in its folder may lie another container's disk.
OTHERS = (
    "container {name} of {lxcpath}, {whose}: see who made it, and whose root lxc.rootfs.path in its config "
    "names and whose lies in {folder}: either may be another container's; once nobody wants it, end it, unmount what "
    "is mounted there, and remove that folder"
)


#: Of a root that was being copied here, or made.
HALF = (
    f"{NO_CLAIM}, and half of a {{kind}} is in {{path}}, which no verb removes: see that nothing runs from there "
    "(lxc-ls, virsh list), and once nobody needs it, unmount what is mounted there, and remove that folder"
)


def refuse_unclaimed(host: Host, request: str) -> None:
    """Raise Refused if an instance, or one of a request, has a container or guest here, but no claim."""
    found = unclaimed(host, request)
    if found:
        raise Refused("; ".join(one["text"] for one in found), request)


def unclaimed(host: Host, request: str | None) -> list[dict[str, Any]]:
    """Return dicts of instance, name (the host's), text, kind (as a claim has it), created (when it was claimed by the
    record of its claim, or None) and leaves_for (the host for which it leaves by that, or "") for the containers and
    guests that no claim has.

    :param request: only those of this instance, or of the instances of this request; None for all.
    """
    there = list(_unclaimed(host, request))
    told: list[tuple[str, str | None, str]] = [
        (instance, SECTIONS[kind], made_unclaimed(host, kind, path)) for kind, path, instance in there
    ]
    told += [(name, None, text) for name, text in _recorded(host, request, [instance for *_made, instance in there])]
    by = {instance: host.store.kept(instance) for instance, *_more in told if _is_text(instance)}
    made = {instance: kept.created for instance, kept in by.items() if kept}
    kinds = {instance: kept.kind for instance, kept in by.items() if kept}
    leaves = {name: host_of(kept.note) for name, kept in by.items() if kept and kept.state == LEAVING}
    return [
        dict(
            instance=printable(name),
            name=host.name,
            text=printable(text),
            kind=kind or kinds.get(name),
            created=made.get(name),
            leaves_for=leaves.get(name, ""),
        )
        for name, kind, text in told
    ]


def half_made(host: Host, request: str | None) -> list[dict[str, Any]]:
    """Return dicts as `unclaimed` does, with half: true, for roots without a claim that are whole nowhere here, such
    as of a move that was cut off before the database was put back. They keep nobody's name.

    :param request: as of `unclaimed`.
    """
    places = [
        (CONTAINER, host.config.lxc.lxcpath, disks.FILE, "config"),
        (GUEST, host.config.kvm.guests_folder, DISK, DESCRIPTION),
    ]
    found = []
    for kind, place, file, whole in places:
        for name in sorted(os.listdir(place)) if os.path.isdir(place) else ():
            path = os.path.join(place, name)
            is_half = os.path.exists(os.path.join(path, file)) and not os.path.lexists(os.path.join(path, whole))
            is_half = is_half and "." not in name  # a copy beside a folder has a name with one
            is_asked = is_half and _is_text(name) and _is_asked(name, request)
            if is_asked and host.store.claim_of(name) is None and host.store.forgotten(name) is None:
                kept, text = host.store.kept(name), HALF.format(kind=kind.name, path=path)
                told = dict(instance=name, name=host.name, text=printable(text), kind=kind.section)
                found.append(dict(told, created=kept.created if kept else None, leaves_for="", half=True))
    return found


def made_unclaimed(host: Host, kind: str, path: str) -> str:
    """Return, in words, that what was made in a folder has no claim.

    :param kind: "container" or "guest".
    """
    instance = os.path.basename(path)
    return _of_claims(host, kind, path, instance) or _told(host, instance, f"{kind} {path}")


def _unclaimed(host: Host, request: str | None) -> Iterator[tuple[str, str, str]]:
    """Yield ("container" or "guest", path, instance) of what `unclaimed` tells."""
    known = {claim.instance for claim in host.store.claims()}
    for kind, path in made_here(host.config):
        instance = os.path.basename(path)
        # Asked once more, for an instance that was claimed meanwhile is known by now.
        is_known = instance in known or (_is_text(instance) and host.store.claim_of(instance) is not None)
        if _is_asked(instance, request) and not is_known:
            yield kind, path, instance


def _recorded(host: Host, request: str | None, seen: Collection[str]) -> list[tuple[str, str]]:
    """Return [(instance, what is said of it)] of those of which there is no more here than the record of a claim.

    :param seen: the instances of which a container or guest without a claim is here.
    """
    known = {claim.instance for claim in host.store.claims()}.union(seen)
    asked = [name for name in host.store.records.instances() if name not in known and _is_asked(name, request)]
    return [(name, text) for name, text in ((name, of_record(host, name)) for name in asked) if text]


def _is_asked(instance: str, request: str | None) -> bool:
    return request is None or request == instance or number_of(instance, request) is not None


def of_record(host: Host, instance: str) -> str | None:
    """Return, in words, that by a record in a name's place something was made for a claim which the database does not
    know; None where there is no such record.
    """
    if host.store.forgotten(instance) is None:
        return None
    return _told(host, instance, host.store.records.path(instance), END_UNSEEN)


def of_guest(host: Host, instance: str) -> str | None:
    """Return, in words, that in a name's folder lies a guest that was made here; None where none does."""
    folder = os.path.join(host.config.kvm.guests_folder, instance)
    return _told(host, instance, f"{GUEST.name} {folder}") if is_whole(folder) else None


def of_no_instance(host: Host) -> list[str]:
    """Return, in words, the containers and guests that no claim has, and folders that may have one, for reconcile.

    That a container may be removed is said only where nothing here says that it is somebody's.
    """
    found, seen = [], []
    for kind, path, instance in _unclaimed(host, None):
        seen.append(instance)
        known = _of_claims(host, kind, path, instance)
        if known is None and kind == "container" and not (_copy_of(host, instance) or whose(host, instance)):
            found.append(_nobodys(path, "of no instance"))
        else:
            found.append(known or _told(host, instance, f"{kind} {path}"))
    found += [text for _instance, text in _recorded(host, None, seen)]
    found += [one["text"] for one in half_made(host, None)]
    claimed = {claim.instance for claim in host.store.claims()}
    found += [why for path, why in unread_here(host.config) if os.path.basename(path) not in claimed]
    return [printable(text) for text in found]


def _of_claims(host: Host, kind: str, path: str, instance: str) -> str | None:
    """Return, in words, of which other claim what lies in a folder is, or was; None where nothing tells that."""
    moved = of_another(host, kind, path)
    if moved or _copy_of(host, instance) or whose(host, instance):
        return moved
    former = formerly(host, kind, path)
    return _nobodys(path, former) if former else None


def _nobodys(path: str, whose_it_is: str) -> str:
    name, lxcpath = os.path.basename(path), os.path.dirname(path)
    return OTHERS.format(name=name, lxcpath=lxcpath, folder=path, whose=whose_it_is)


def _is_text(name: str) -> bool:
    """Return whether a folder's name is one that an instance may have, which the database can be asked for."""
    return name.isprintable()


def whose(host: Host, instance: str) -> str | None:
    """Return, in words, what the record of an instance's claim says, or that it cannot be read; None without one."""
    if not _is_text(instance):
        return None
    kept = host.store.kept(instance)
    if kept:
        return f"by the record of its claim {kept.owner}'s, lease {until(kept.expires, time.time())}"
    path = host.store.records.path(instance)
    return f"the record of its claim, {path}, cannot be read" if os.path.lexists(path) else None


def _copy_of(host: Host, instance: str) -> str | None:
    """Return the newest copy of the database that has an instance."""
    copied = reversed(copies(host.pci.state_db)) if _is_text(instance) else ()
    return next((path for path in copied if _knows(path, instance)), None)


def _told(host: Host, instance: str, what: str, end: str | None = None) -> str:
    database = host.pci.state_db
    knows, record = _copy_of(host, instance), whose(host, instance)
    if end is None:
        end = END + (END_RECORD.format(path=host.store.records.path(instance)) if record else "")
    way = WAY.format(folder=folder_of(database), end=end)
    if knows:
        way += f"; the copy {knows} knows {instance}: {how_to_restore(database, knows, mark_beside(database))}"
    what += f" ({record})" if record else ""
    return f"{NO_CLAIM}, and {what} is there: {way}"


def _knows(copy: str, instance: str) -> bool:
    """Return whether a copy of a database has an instance. One that cannot be read has none."""
    try:
        with closing(sqlite3.connect(f"file:{copy}?mode=ro&immutable=1", uri=True)) as db:
            return bool(db.execute("SELECT 1 FROM instances WHERE instance = ?", (instance,)).fetchall())
    except sqlite3.DatabaseError:
        return False
