# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's database that is gone although something on the node shows that it had one: the refusal, and the way back.

An empty database in its place would say that nobody has anything. What shows it is each kind of node's own.
"""

from __future__ import annotations

import os

from .backups import copies, folder_of
from .errors import HeteroError

#: So many of each kind are named.
SHOWN = 3
RECONCILE = "ansible-playbook hetero.compute.reconcile"


def must_not_be_lost(database, signs):
    """HeteroError where a database is missing, or empty, and there are signs that it was not.

    :param database: its path.
    :param signs: called where it is missing; returns (texts of what shows that it was there, what a person should know
        besides of a copy that is put in its place).
    """
    if os.path.exists(database) and os.path.getsize(database):
        return
    there, besides = signs()
    if there:
        what = f"is not there, and instances were made on this node ({listed(there)})"
        raise HeteroError(what, database, f"{_way_back(database)}{besides}")


def said_if_lost(database, check, begun):
    """What reconcile says of a database that it makes anew; None where it is there.

    :param check: raises where it is lost.
    :param begun: what is not known in the new one.
    :raises HeteroError: it is lost, and a copy is there, which knows what the node itself does not tell.
    """
    try:
        check()
    except HeteroError as error:
        if copies(database):
            raise
        return f"{database}: {error.what}: an empty one is begun; {begun}"
    return None


def listed(texts):
    """The first few of them."""
    more = f" and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
    return ", ".join(texts[:SHOWN]) + more


def _way_back(database):
    newest = (copies(database) or [None])[-1]
    if newest is None:
        return f"no copy of it is there: {RECONCILE} makes it anew, and says what of it is known again"
    logs = [path for path in (f"{database}-wal", f"{database}-shm") if os.path.exists(path)]
    aside = f"mv {' '.join(logs)} {folder_of(database)}/ && " if logs else ""
    return f"run on this node: {aside}cp -p {newest} {database} and then, where the inventory is: {RECONCILE}"
