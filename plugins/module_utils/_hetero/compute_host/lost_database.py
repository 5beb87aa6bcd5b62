# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's database that is gone although containers or guests were made there, or GPUs given: what shows that, and
whether all of it is written down in a new one, or in a copy that was put in its place.

Without it their GPUs and cards, names and addresses would look free. A host that is new has none of them. A mark
beside the database, `host.lost`, is there from before a new one is made, or a copy put there, until all is written down
in it; as long as it is there, the database counts as lost.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from ..claims import lost_database
from ..claims.host.config import CONFIG, DEFAULTS, MACHINE, read_config, state_db
from ..claims.host.tables import mark_beside
from ..claims.lost_database import RECONCILE, listed
from ..core.errors import HeteroError, naming
from ..files.whole_file import sync_folder, write_whole
from ..hypervisors.libvirt.guests import is_whole
from ..hypervisors.lxc import folders, identity

BEGUN = (
    "the GPUs and cards that containers and guests have are written down for them, and they go on running; whose they "
    "are nobody knows any more: their names are given to nobody, and no lease ends"
)
UNFINISHED = "was lost, and not all that containers and guests have is written down in it again"


class _Folder(NamedTuple):
    """A container's folder, without LXC: a host of guests has none."""

    folder: str

    @property
    def config_file(self):
        return os.path.join(self.folder, "config")


def must_not_be_lost(config, lxcpath=None):
    """HeteroError where the database of a host is missing, or has no tables, and somebody has something there; or where
    the one in its place does not have all of that yet.

    :param config: as read_config returns it.
    :param lxcpath: a folder of containers that is looked at beside the host's, and those in which one runs.
    """
    _must_be_there(config, lxcpath)
    if os.path.exists(mark_of(config)):
        raise HeteroError(_unfinished(config), state_db(config), f"run {RECONCILE} again")


def must_not_be_lost_here(path=CONFIG, database=None, lxcpath=None):
    """The same of this host, also where no role has set it up.

    :param path: the host's configuration.
    :param database: the one that is asked for, where a caller names one: others than the host's are not looked at.
    :param lxcpath: as of must_not_be_lost.
    """
    config = config_here(path)
    if _is_the_hosts(database, config):
        must_not_be_lost(config, lxcpath)


def said_if_lost(path=CONFIG, database=None, lxcpath=None, check=False):
    """What reconcile says of a database that it makes anew; None where it is there.

    :param path: the host's configuration.
    :param database: as of must_not_be_lost_here.
    :param lxcpath: as of must_not_be_lost.
    :param check: nothing is made in this run.
    :raises HeteroError: it is lost, and a copy is there, which knows whose the instances are.
    """
    config = config_here(path)
    if not _is_the_hosts(database, config):
        return None
    said = lost_database.said_if_lost(state_db(config), lambda: _must_be_there(config, lxcpath), BEGUN, check)
    if said is None and os.path.exists(mark_of(config)):
        return f"{state_db(config)}: {_unfinished(config)}: this run goes on with it"
    return said


def begin(config):
    """Set the mark, before a new database is made."""
    mark = mark_of(config)
    with naming(mark):
        os.makedirs(os.path.dirname(mark), mode=0o700, exist_ok=True)
        if not os.path.exists(mark):
            write_whole(mark, "", 0o600)


def end(config, left):
    """Take the mark away, where nothing is left to be written down; else have it say what is.

    :param left: texts of what could not be.
    :returns: what reconcile says of it, a list of texts.
    """
    mark = mark_of(config)
    with naming(mark):
        if left:
            write_whole(mark, listed(left), 0o600)
            return [f"{state_db(config)}: {_unfinished(config)}: nobody is given anything: run {RECONCILE} again"]
        os.unlink(mark)
        sync_folder(os.path.dirname(mark))
    return []


def mark_of(config):
    """Path of the mark."""
    return mark_beside(state_db(config))


def config_here(path=CONFIG):
    """The host's configuration; what the machine has by default where no role has set it up."""
    return read_config(path) if os.path.exists(path) else dict(MACHINE, lxc=DEFAULTS, kvm=DEFAULTS)


def _must_be_there(config, lxcpath=None):
    lost_database.must_not_be_lost(state_db(config), lambda: (_signs(config, lxcpath), ""), mark_of(config))


def _unfinished(config):
    """What is wrong, with what was left at the last attempt."""
    mark = mark_of(config)
    with naming(mark), open(mark, encoding="utf-8", errors="replace") as file:
        left = file.read().strip()
    return f"{UNFINISHED} ({left})" if left else UNFINISHED


def _is_the_hosts(database, config):
    return not database or os.path.realpath(database) == os.path.realpath(state_db(config))


def made_here(config, also=()):
    """[("container" or "guest", path)] of all that were made on this host, whoever has them.

    :param also: folders of containers beside the host's.
    """
    places = sorted({config["lxc"]["lxcpath"], *also})
    containers = [path for place in places for path in _folders(place) if identity.key_of(_Folder(path))]
    guests = [path for path in _folders(config["kvm"]["guests_folder"]) if is_whole(path)]
    return [("container", path) for path in containers] + [("guest", path) for path in guests]


def _signs(config, lxcpath):
    """What was made in the host's folder, the caller's, and each in which a container runs."""
    also = [*folders.in_use(), *([os.path.normpath(lxcpath)] if lxcpath else [])]
    return [f"{kind} {path}" for kind, path in made_here(config, also)]


def _folders(parent):
    return [os.path.join(parent, name) for name in sorted(os.listdir(parent))] if os.path.isdir(parent) else []
