# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a machine has what the boards' roots need: room, block devices for their files, none that shares.

Looks and changes nothing. images/room.py says how much a root takes.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from typing import TYPE_CHECKING, Collection, Mapping

from ...core.errors import HeteroError
from ...core.machine import mount_of
from ...core.plays import play
from ...files.loop import attached, own_nodes
from ...files.paths import existing
from ...images.room import GIB, SHARED, SPARE, Room
from ...roots.roots import SOURCE, sharing
from ...site.instance import size_text as shown
from ...site.state_folder import OLDER, ROOTS

if TYPE_CHECKING:
    from ...core.findings import Findings
    from ...roots.roots import Made
    from ...site.boards_file import Board

#: As many devices at once say enough of a machine: the kernel makes them as they are asked for, nodes may be missing.
MOST_TRIED = 64


def roots(state: str, overcommit: float, root_gb: int, boards: Collection[Board], found: Findings) -> None:
    """Report everything there is to say about the roots below a state folder; fact: roots.

    :param overcommit, root_gb: as of proxy.json.
    """
    room, ratio = Room(state, overcommit), f"tftp_proxy_roots_overcommit {overcommit:g}"
    fields, full = room.fields, room.promises.full
    point, _kind = mount_of(existing(state))
    free = os.statvfs(existing(state))
    if free.f_bavail * free.f_frsize < SPARE:
        what = f"{shown(free.f_bavail * free.f_frsize)} free on {point}, {shown(SPARE)} needed"
        found.defect(state, what, "free space")
    if full or fields["promised"] > fields["there"]:
        what = f"{shown(fields['promised'])} are promised, {shown(fields['there'])} are there ({ratio})"
        remedy = "a disk that is full stops all of them: watch it, or add space"
        if full:
            what, remedy = f"{what}: no further root can be given", f"terminate instances, or raise it; {remedy}"
        found.note(os.path.join(state, ROOTS), what, remedy)
    most = sum(board.local_gb or root_gb for board in boards) * GIB
    if most > fields["there"] * overcommit:
        room_for = shown(fields["there"] * overcommit)
        what = f"there is room for {room_for} ({ratio}), local_gb of all boards is {shown(most)}"
        found.note("roots", what, "flavors with less local_gb fit more boards; or add space, or raise it")
    older = sharing(state)
    if older:
        names = ", ".join(f"board{name[len(SOURCE) :]} ({_instance(made)})" for name, made in older.items())
        what = "have roots that an older release made on one file system: who is root there reads this proxy's files, "
        what += "all boards' roots among them, and writes those of the boards named here; they run on as they are"
        rebuild = play("rebuild_instance", instance="NAME", fresh="true")
        found.note(names, what, f"rebuild these instances ({rebuild}), or terminate them")
    found.facts["roots"] = dict(fields, sharing=sorted(older), shared_file=_shared(state, older))
    devices(state, len(boards), found)


def devices(state: str, wanted: int, found: Findings) -> None:
    """Check that each board that has no root yet can have a block device for one."""
    folder = os.path.join(state, ROOTS)
    there = len(os.listdir(folder)) if os.path.isdir(folder) else 0
    wanted = min(MOST_TRIED, max(1, wanted - there))
    with tempfile.NamedTemporaryFile(prefix="hetero-preflight-") as file, ExitStack() as held:
        file.truncate(1 << 20)
        held.enter_context(own_nodes())
        for number in range(wanted):
            try:
                held.enter_context(attached(file.name, read_only=True))
            except HeteroError as error:
                what = f"{number} can be had here, {wanted} boards need one each ({error.what})"
                found.defect("loop devices", what, error.remedy)
                return


def _instance(made: Made | None) -> str:
    return made.claim.split()[0] if made else "nobody's"


def _shared(state: str, older: Mapping[str, Made | None]) -> str:
    """Return what is to become of the file system that older releases kept all roots on: "", "kept" or "empty"."""
    file, point = os.path.join(state, SHARED), os.path.join(state, OLDER)
    if not os.path.exists(file):
        return ""
    # Of one that is not mounted nobody can tell what is on it.
    return "empty" if os.path.ismount(point) and set(os.listdir(point)) <= {"lost+found"} and not older else "kept"
