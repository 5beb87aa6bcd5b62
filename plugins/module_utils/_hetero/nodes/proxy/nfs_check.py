# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which NFS server a proxy node is to export by, whether this machine can run it, and what it gives to tenants.

A running board has its root by the handles of one server, so the one that a machine was set up with is never changed by
a guess, nor while anybody has a board.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Collection, Iterator, NamedTuple

from ...core.errors import HeteroError
from ...core.findings import Findings
from ...core.plays import play
from ...core.this_node import THIS_NODE
from ...site.proxy_config import read_config
from ...site.state_folder import OLDER, ROOTS
from . import left_out_boards
from .machine import KERNEL_SERVER, has_nfsd, may_open_by_handle, port_holders

if TYPE_CHECKING:
    from .setup_plan import Plan

OPTION = "tftp_proxy_exports"
#: The folder of a board's root (roots/roots.py).
ROOT = re.compile(r"fs_(\d{1,9})")


class Server(NamedTuple):
    """An NFS server.

    :param packages: what the role installs for it.
    :param programs: who then holds NFS's port.
    :param file: a file that the role writes for it and for no other.
    """

    packages: list[str]
    programs: set[str]
    file: str


SERVERS = {
    "ganesha": Server(
        ["nfs-ganesha", "nfs-ganesha-vfs"], {"ganesha.nfsd"}, "/etc/systemd/system/nfs-ganesha.service.d/hetero.conf"
    ),
    "nfsd": Server(["nfs-kernel-server"], {KERNEL_SERVER}, "/etc/nfs.conf.d/hetero.conf"),
}
#: What `auto` is on a new machine. The kernel refuses a name with a / in it (fs/nfsd/nfs3xdr.c, which decodes names);
#: nfs-ganesha 4.3 hands it to openat(2), which walks out of the root by `..`.
NEW = "nfsd"
OPEN = (
    f"serves names with / in them, by which root on any board reads and writes all files of {THIS_NODE} and of its "
    "tenants"
)
TRUST = f"{OPTION}: ganesha is for tenants who trust each other, for it {OPEN}"


def nfs_server(plan: Plan, found: Findings) -> str:
    """Return the NFS server to export by; what a proxy node has it keeps, for its boards have its file handles."""
    before, unread = _before(plan)
    if plan.exports != "auto":
        server = plan.exports
        if before and before != server:
            _refuse_change(before, plan, found)
    elif unread and not before:
        what = f"{unread}, and no NFS server runs here that would tell by which one boards have their files"
        found.defect(plan.config, what, f"say which it was: {OPTION}: ganesha, or nfsd")
        return "ganesha"
    else:
        server = before or NEW
        if unread:
            found.note(plan.config, f"{unread}, and is written anew", f"its boards' files stay with {server}")
    if server == "ganesha":
        _ganesha(plan, found)
    elif not has_nfsd():
        _no_nfsd(plan, before, found)
    return server


def set_aside(server: str) -> list[str]:
    """Return the other NFS servers that the role has set up on this machine, which are to stop."""
    return [name for name, other in SERVERS.items() if name != server and os.path.exists(other.file)]


def _before(plan: Plan) -> tuple[str | None, str | None]:
    """Return the server that boards have their files by, if any; and why the configuration does not say it.

    A configuration that cannot be read stops nothing, for the role writes it anew: the server is then the one that
    holds NFS's port. The same holds where there is no configuration though somebody has boards, as on a node that was
    installed anew.
    """
    if os.path.exists(plan.config):
        try:
            return read_config(plan.config).exports, None
        except HeteroError as error:
            unread = error.what
    else:
        users, doubts = _users(plan)
        if not (users or doubts):
            return None, None
        unread = f"is not there, though instances {'' if users else 'may '}have boards"
    holders = port_holders("tcp", 2049, plan.server)
    running = [name for name, server in SERVERS.items() if holders & server.programs]
    return (running[0] if running else None), unread


def _users(plan: Plan) -> tuple[dict[int, str], list[HeteroError]]:
    """Return ({board id: instance} of all boards that somebody has, and what keeps others of them from being known)."""
    found = Findings()
    users = left_out_boards.users(plan, found)
    return users, [*found.notes, *left_out_boards.unreadable(plan), *_lost_roots(plan, users)]


def _lost_roots(plan: Plan, users: Collection[int]) -> Iterator[HeteroError]:
    """Yield an error for each root of a board of which no claim is known, as where database and records are lost."""
    for kind in (ROOTS, OLDER):
        folder = os.path.join(plan.state_folder, kind)
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            named = ROOT.fullmatch(name)
            if named and int(named[1]) not in users and os.listdir(os.path.join(folder, name)):
                what = f"is the root of board{named[1]}, of which no claim is known"
                yield HeteroError(what, os.path.join(folder, name), f"{play('reconcile')} says whose it is")


def _refuse_change(before: str, plan: Plan, found: Findings) -> None:
    """Report who has a board: its files, which it has by the handles of the server before, would all be stale."""
    users, doubts = _users(plan)
    if users:
        who = ", ".join(f"{instance} on board{board}" for board, instance in sorted(users.items()))
        what = f"is {plan.exports}, and by {before} are the files of {who}: they would all be stale"
        found.defect(OPTION, what, f"set it when no board has an instance; until then {OPTION}: {before}")
    for note in doubts:
        found.defect(note.thing, f"{note.what}, so that {OPTION} cannot become {plan.exports}", note.remedy)


def _ganesha(plan: Plan, found: Findings) -> None:
    """Check what nfs-ganesha needs, and say what it gives to tenants."""
    if not may_open_by_handle():
        found.defect(
            "open_by_handle_at",
            "is denied, so that each file on an NFS root would be 'permission denied'",
            "a container needs an empty lxc.seccomp.profile and CAP_DAC_READ_SEARCH",
        )
    way = f"when no board has an instance, set {OPTION}: nfsd and run {play('proxy')}"
    if not has_nfsd():
        way = "lend boards to tenants who trust each other, or set up a proxy node whose kernel has module nfsd"
    kept = ", which auto keeps here," if plan.exports == "auto" else ""
    found.note("NFS", f"nfs-ganesha{kept} {OPEN}", way)


def _no_nfsd(plan: Plan, before: str | None, found: Findings) -> None:
    """Report that the kernel's NFS server is missing."""
    new = f"{OPTION} is nfsd on a new machine, and " if plan.exports == "auto" and not before else ""
    what = f"{new}this kernel has no NFS server, or it is not this container's"
    remedy = f"use a machine, or a virtual one, whose kernel has module nfsd (modinfo nfsd finds it); {TRUST}"
    found.defect("NFS", what, remedy)
