# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What reconcile mends of a board that somebody has: its record, the parts of its root, and its boot entry.

The board itself, its outlet and what is in its root are left as they are; but an outlet that was switched off and cut
another board is switched on again. reconciliation.py looks at the boards, and judges those that nobody has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Sequence

from ...core.deadline import Deadline
from ...core.errors import Refused
from ...core.plays import play
from ...roots.misplaced_roots import misplaced_of
from ...roots.ownership import about_to_go
from ...roots.provision import put_back
from ...site import board_states
from ..boot.boot_entry import ensure_entry, remove_entry
from ..boot.used_root import may_be_at_work
from ..evidence.cut_boots import is_cut_off
from ..power import unseen_cuts
from ..power.bystanders import SEEN_LATE, Bystanders
from ..power.power_proof import Silence
from ..power.presence import ALIVE, OTHER_KEY, OWN_KEY, SILENT
from ..records.board_records import MAY_HAVE_RUN, POWER, UNWATCHED
from .lifecycle import Options, switch_off

if TYPE_CHECKING:
    from ..records.proxy import Proxy
    from ..work.board_work import BoardWork
    from ..work.looks import Look

#: The text on, and the note of the board of, an instance without root and power, as an older copy of a database has it.
LEFT_OVER = (
    "{name}'s root is gone and its outlet is off: it ended since the backup of the database that was put back, its "
    "root was removed by hand, or what holds the roots is not mounted: "
    f"{play('terminate_instance', instance='{name}')} gives the board back; "
    f"{play('rebuild_instance', instance='{name}', fresh='true')} makes a new root"
)
#: The remedy for a board that has power and is silent; its tenant may have work there if it runs or boots.
LOOK = f"its network may be cut, or its sshd: see its cable and its console ({play('console', instance='{name}')})"
BY_POWER = play("reboot_instance", instance="{name}", how="hard")
LOOK_OR_CUT = f"{LOOK}; once its tenant agrees, {BY_POWER} cuts its power and boots it"
ROOT_GONE = f"its root is gone ({play('reconcile')} says more)"


def correct_power(look: Look) -> None:
    """Correct the record of a tenant's board by its outlet and answer; touch neither outlet nor board."""
    work, state = look.work, look.work.state
    if look.power == "off" and is_cut_off(work.proxy, work.record):
        look.cut_off = True
    elif look.power == "off" and state in (board_states.RUNNING, board_states.BOOTING):
        again = f"{play('start_instance', instance=work.instance)} brings it up"
        look.mend(f"recorded as {state}, its outlet is off", f"recorded as power off ({again})")
        if work.note(work.board.name, {"state": state}, {"state": board_states.POWER_OFF}):
            if state == board_states.BOOTING and not work.came_up_before:
                work.say(UNWATCHED, MAY_HAVE_RUN.format(name=work.instance))
            work.move(board_states.SHUTTING_DOWN)
            work.move(board_states.POWER_OFF, board_states.FOUND_OFF)
    elif look.power == "off" and state == board_states.SHUTTING_DOWN:
        look.note("a stop or terminate was cut off: run it again")
    elif look.power == "on" and look.ssh == OWN_KEY and state != board_states.RUNNING:
        look.mend(f"recorded as {state}, it runs and shows its own key", "recorded as running")
        if work.note(work.board.name, {"state": state}, {"state": board_states.RUNNING}):
            work.move(board_states.RUNNING)
    elif look.power == "on" and look.ssh == OTHER_KEY:
        look.note(f"another host key than that of {work.instance} answers at {work.board.ip}: not touched")
    elif look.power == "on" and look.ssh in (ALIVE, SILENT):
        way = (LOOK_OR_CUT if state in (board_states.RUNNING, board_states.BOOTING) else LOOK).format(
            name=work.instance
        )
        answer = "does not answer ssh" if look.ssh == SILENT else look.ssh
        look.note(f"recorded as {state}, it is on and {answer}: not touched: {way}")
    elif look.power == "on" and look.ssh is None:
        look.note(f"it is on, and {work.instance} has no root on it yet: provision it again, or terminate it")


def correct_off(look: Look) -> None:
    """Correct the record of a tenant's board that is recorded as off, and is on and silent, where he may be at work."""
    work, is_silent = look.work, look.power == "on" and look.ssh in (ALIVE, SILENT)
    if is_silent and work.state == board_states.POWER_OFF and may_be_at_work(work):
        with look.whole():
            found = f"recorded as {work.state}, it is on, and {work.instance} may be at work"
            look.mend(found, "recorded as running")
            if work.note(work.board.name, {"state": work.state}, {"state": board_states.RUNNING}):
                work.move(board_states.RUNNING)


def left_over(look: Look) -> None:
    """Correct the record of an instance without root and power, and report it; a start could not bring it up."""
    work = look.work
    if work.state == board_states.RUNNING:
        look.mend("recorded as running, its outlet is off", "recorded as power off")
        if work.note(work.board.name, {"state": work.state}, {"state": board_states.POWER_OFF}):
            work.move(board_states.SHUTTING_DOWN)
            work.move(board_states.POWER_OFF, ROOT_GONE)
    there = misplaced_of(work.proxy, work.claim) if work.claim else None
    look.note(str(there) if there else LEFT_OVER.format(name=work.instance))


def see_cuts(proxy: Proxy, looks: Sequence[Look]) -> None:
    """See whom an outlet cut where the process that switched it off ended before it saw that, as the next stop would.

    The locks of all boards are held. In a dry run nothing is known of it.
    """
    looks = [look for look in looks if not look.work.change.check]
    out = (board_states.ERROR, board_states.MAINTENANCE)
    alive = [look.work.board.id for look in looks if look.ssh in (OWN_KEY, OTHER_KEY, ALIVE)]
    unseen_cuts.lives(proxy, alive, unseen_cuts.all_of(proxy) if alive else {})
    off = [look for look in looks if look.power == "off" and not (look.nobodys or look.cut_off)]
    unseen = {look: cut for look in off if (cut := unseen_cuts.of(proxy, look.work.board.id))}
    fresh = [
        look
        for look, cut in unseen.items()
        if cut.seconds is not None and not look.work.contradiction and look.work.state not in out
    ]
    if fresh:
        switch_off(proxy, [look.work for look in fresh], Options(only_looks=True))
    for look in fresh:
        if look.work.failed:
            look.note(str(look.work.error))
    for look in unseen:
        left = None if look.work.failed else unseen_cuts.of(proxy, look.work.board.id)
        if left and left.left:
            _tell_who_may_be_cut(proxy, look, looks)


def _tell_who_may_be_cut(proxy: Proxy, cutter: Look, looks: Sequence[Look]) -> None:
    """Note whose power an outlet may have cut while nobody looked; the outlet is not switched on again for that."""
    watch, work = Bystanders(proxy, [cutter.work.board.id]), cutter.work
    watch.recall(work)
    silent = watch.silent(work, Deadline(0), not Silence(work).lives())
    said = watch.may_be_cut(work, silent)
    if not said:
        work.say(POWER, SEEN_LATE.format(outlet=work.outlet_name))
    for look in looks if said else ():
        if look is cutter or look.work.board.id in silent:
            look.note(said)


def _is_made(work: BoardWork) -> bool:
    """Return whether a board has a root to boot from; False while its claim is ending, whatever is left."""
    return bool(work.claim and work.claim.image_hash) and work.state != board_states.SHUTTING_DOWN


def put_parts_back(proxy: Proxy, look: Look) -> bool:
    """Restore mount, export and files where they are missing; nothing is written into the tenant's root.

    :returns: True where something was put back.
    """
    work, claim = look.work, look.work.claim
    if claim is None:
        return False
    if not claim.image_hash:
        look.note(f"claimed for {work.instance}, not made ready yet")
    try:
        missing = put_back(proxy, work.board, claim, work.change) if _is_made(work) else []
    except Refused:
        look.left = True  # the contradiction about whose its root is stays
        raise
    going = about_to_go(proxy, work.board, claim)
    if going:
        look.note(going)
    if missing:
        look.mend(f"missing: {', '.join(missing)}", "would be put back" if work.change.check else "put back")
    return bool(missing) and not work.change.check


def correct_entry(look: Look) -> None:
    """Write the boot entry of a tenant's board that is on; remove that of one that is off."""
    work, check = look.work, look.work.change.check
    if not _is_made(work) or look.cut_off:
        return
    boots = look.power == "on" and work.state in (board_states.RUNNING, board_states.BOOTING)
    before, work.changed = work.changed, False
    (ensure_entry if boots else remove_entry)(work)
    changed, work.changed = work.changed, before
    if changed and boots:
        look.mend("its boot entry is missing, or another", "would be written" if check else "written")
    elif changed:
        look.mend("a boot entry although it is off", "would be removed" if check else "removed")
