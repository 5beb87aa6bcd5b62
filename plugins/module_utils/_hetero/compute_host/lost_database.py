# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Detect that a host's database is lost although containers or guests were made there, or GPUs given, and keep track
whether all of that is written down in a new database, or in a copy that was put in its place.

Without the database GPUs, cards, names and addresses that are in use would look free. A new host has none in use. A
mark beside the database, `host.lost`, is set before a new database is made or a copy is put there, and removed when all
is written down in it. While the mark is there, the database counts as lost.
"""

from __future__ import annotations

import os
from typing import Iterable, Sequence

from ..claims import lost_database
from ..claims.host.claim_records import ClaimRecords
from ..claims.host.config import CONFIG, HostConfig, config_here
from ..claims.host.tables import RIGHTS, claims_beside, mark_beside, marked_in
from ..claims.lost_database import RECONCILE, listed
from ..core.errors import HeteroError, Refused, naming
from ..files.whole_file import sync_folder, write_whole
from ..hypervisors.libvirt.guest_folder import is_whole
from ..hypervisors.lxc import folders, identity

BEGUN = (
    "the GPUs and cards that containers and guests have are written down for them, and they go on running; whose they "
    "are only the records of their claims say: their names are given to nobody, and no lease ends"
)
UNFINISHED = "was lost, and not all that containers and guests have is written down in it again"


def must_not_be_lost(config: HostConfig, lxcpath: str | None = None) -> None:
    """Raise HeteroError if a host's database is missing or has no tables although there are instances on the host, or
    if the database in its place does not have all of them yet.

    :param lxcpath: a folder of containers that is looked at beside the host's, and those in which one runs.
    """
    _must_be_there(config, lxcpath)
    if os.path.exists(mark_of(config)):
        raise HeteroError(_unfinished(config), config.state_db, f"run {RECONCILE} again")


def must_not_be_lost_here(path: str = CONFIG, database: str | None = None, lxcpath: str | None = None) -> None:
    """Call must_not_be_lost for this host, even if no role set it up.

    :param path: the host's configuration.
    :param database: the database that is asked for, if a caller names one. Only the host's own is looked at.
    :param lxcpath: as of must_not_be_lost.
    """
    config = config_here(path)
    if _is_the_hosts(database, config):
        must_not_be_lost(config, lxcpath)


def said_if_lost(
    path: str = CONFIG, database: str | None = None, lxcpath: str | None = None, check: bool = False
) -> str | None:
    """Return what reconcile says of a database that it makes anew, or None if it is not lost.

    :param path: the host's configuration.
    :param database: as of must_not_be_lost_here.
    :param lxcpath: as of must_not_be_lost.
    :param check: whether this run makes nothing.
    :raises HeteroError: it is lost and there is a copy, which knows whose the instances are.
    """
    config = config_here(path)
    if not _is_the_hosts(database, config):
        return None
    said = lost_database.said_if_lost(config.state_db, lambda: _must_be_there(config, lxcpath), BEGUN, check)
    if said is None and os.path.exists(mark_of(config)):
        return f"{config.state_db}: {_unfinished(config)}: this run goes on with it"
    return said


def begin(config: HostConfig) -> None:
    """Set the mark, before a new database is made."""
    mark = mark_of(config)
    with naming(mark):
        os.makedirs(os.path.dirname(mark), mode=0o700, exist_ok=True)
        if not os.path.exists(mark):
            write_whole(mark, "", 0o600)


def end(config: HostConfig, left: Sequence[str]) -> list[str]:
    """Remove the mark if nothing is left to be written down; otherwise write into it what is left.

    :param left: texts of what could not be written down.
    :returns: what reconcile says of it.
    """
    mark = mark_of(config)
    with naming(mark):
        if left:
            write_whole(mark, listed(left), 0o600)
            return [f"{config.state_db}: {_unfinished(config)}: nobody is given anything: run {RECONCILE} again"]
        os.unlink(mark)
        sync_folder(os.path.dirname(mark))
    return []


def mark_of(config: HostConfig) -> str:
    """Return the path of the mark."""
    return mark_beside(config.state_db)


def _must_be_there(config: HostConfig, lxcpath: str | None = None) -> None:
    lost_database.must_not_be_lost(config.state_db, lambda: (_signs(config, lxcpath), ""), RIGHTS, mark_of(config))


def _unfinished(config: HostConfig) -> str:
    """Return what is wrong, with what was left at the last attempt."""
    mark = mark_of(config)
    with naming(mark), open(mark, encoding="utf-8", errors="replace") as file:
        left = file.read().strip()
    return f"{UNFINISHED} ({left})" if left else UNFINISHED


def _is_the_hosts(database: str | None, config: HostConfig) -> bool:
    return not database or os.path.realpath(database) == os.path.realpath(config.state_db)


def made_here(config: HostConfig, also: Iterable[str] = ()) -> list[tuple[str, str]]:
    """Return [("container" or "guest", path)] of all that were made on this host, whoever has them.

    :param also: folders of containers beside the host's.
    """
    containers = [path for path in _in_places(config, also) if key_of_folder(path)]
    guests = [path for path in _folders(config.kvm.guests_folder) if is_whole(path)]
    return [("container", path) for path in containers] + [("guest", path) for path in guests]


def unread_here(config: HostConfig, also: Iterable[str] = ()) -> list[tuple[str, str]]:
    """Return [(path, why)] of the folders of which nobody can tell whether a container was made in them.

    :param also: as of made_here.
    """
    found = []
    for path in _in_places(config, also):
        try:
            identity.key_of(identity.Folder(path))
        except Refused as error:
            found.append((path, str(error)))
    return found


def key_of_folder(path: str) -> str | None:
    """Return the key of the container in a folder; None where none was made here, or that cannot be read."""
    try:
        return identity.key_of(identity.Folder(path))
    except Refused:
        return None


def _in_places(config: HostConfig, also: Iterable[str]) -> list[str]:
    return [path for place in sorted({config.lxc.lxcpath, *also}) for path in _folders(place)]


def _signs(config: HostConfig, lxcpath: str | None) -> list[str]:
    """Return what was made in the host's folder, in the caller's, in each in which a container runs or that has had the
    mark, those of which that is not to be seen, and the records of claims.
    """
    marked = marked_in(config.state_db)
    also = [*folders.in_use(), *marked, *([os.path.normpath(lxcpath)] if lxcpath else [])]
    records = ClaimRecords(claims_beside(config.state_db))
    there = [f"{kind} {path}" for kind, path in made_here(config, also)]
    unseen = folders.out_of_sight(marked, [config.lxc.lxcpath])
    there += [f"{path}, whose file system may not be mounted" for path in unseen]
    there += [why for path, why in unread_here(config, also) if os.path.lexists(os.path.join(path, identity.FOLDER))]
    return there + [f"record of a claim {records.path(instance)}" for instance in records.instances()]


def _folders(parent: str) -> list[str]:
    return [os.path.join(parent, name) for name in sorted(os.listdir(parent))] if os.path.isdir(parent) else []
