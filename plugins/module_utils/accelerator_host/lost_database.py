# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's database that is gone although containers or guests were made there, or GPUs given: what shows that.

Without it their GPUs and cards, names and addresses would look free. A host that is new has none of them.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from .. import lost_database
from ..libvirt.guests import is_whole
from ..lxc import identity
from .config import CONFIG, DEFAULTS, MACHINE, read_config, state_db

BEGUN = (
    "the GPUs and cards that containers and guests have are written down for them, and they go on running; whose they "
    "are nobody knows any more: their names are given to nobody, and no lease ends"
)


class _Folder(NamedTuple):
    """A container's folder, without LXC: a host of guests has none."""

    folder: str

    @property
    def config_file(self):
        return os.path.join(self.folder, "config")


def must_not_be_lost(config):
    """HeteroError where the database of a host is missing, or empty, and somebody has something there.

    :param config: as read_config returns it.
    """
    lost_database.must_not_be_lost(state_db(config), lambda: (_signs(config), ""))


def must_not_be_lost_here(path=CONFIG):
    """The same of this host, also where no role has set it up."""
    must_not_be_lost(_config_of(path))


def said_if_lost(path=CONFIG):
    """What reconcile says of a database that it makes anew; None where it is there.

    :param path: the host's configuration.
    :raises HeteroError: it is lost, and a copy is there, which knows whose the instances are.
    """
    config = _config_of(path)
    return lost_database.said_if_lost(state_db(config), lambda: must_not_be_lost(config), BEGUN)


def _config_of(path):
    return read_config(path) if os.path.exists(path) else dict(MACHINE, lxc=DEFAULTS, kvm=DEFAULTS)


def _signs(config):
    containers = [path for path in _folders(config["lxc"]["lxcpath"]) if identity.key_of(_Folder(path))]
    guests = [path for path in _folders(config["kvm"]["guests_folder"]) if is_whole(path)]
    return [f"container {path}" for path in containers] + [f"guest {path}" for path in guests]


def _folders(parent):
    return [os.path.join(parent, name) for name in sorted(os.listdir(parent))] if os.path.isdir(parent) else []
