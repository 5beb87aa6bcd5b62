# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the records of a proxy's boards with outlets, ssh answers, roots, exports, boot files and boot entries.

It reports what it found of each board and mends what is safe. A tenant's running board and boards in error or
maintenance are only looked at, but the record of a board in error is mended where it proves that it runs. What is
observed counts more than the record, and what a board proves more than the state of its outlet.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Collection, Iterable, Optional, Sequence

from ...core.deadline import Deadline
from ...core.descriptors import make_room
from ...core.errors import HeteroError, Refused
from ...core.plays import play
from ...drivers.boot.registry import BootDrivers
from ...roots.ownership import about_to_go, is_lost, is_of_claim, whose_archive, whose_root
from ...roots.provision import leftovers, put_back
from ...site import board_states
from ..boot.boot_entry import ensure_entry, remove_entry
from ..evidence import adoption, unnamed_boards
from ..evidence.adoption import PUT_BACK
from ..evidence.discard import discard, must_be_gone
from ..power import last_outlet, power_proof, presence
from ..power.outlet_power import outlet_power
from ..power.presence import ALIVE, OTHER_KEY, OWN_KEY, SILENT
from ..records import disk_records
from ..records.board_records import MAY_HAVE_RUN, UNWATCHED
from ..records.lost_database import way_by_copy
from ..work import maintenance
from ..work.board_work import BoardWork, locked
from ..work.looks import PHASE, Look, Seen, not_adopted
from .lifecycle import OUT_OF_USE, Options
from .release import release

if TYPE_CHECKING:
    from ...core.changes import Change
    from ...site.boards_file import Board
    from ..records.claim_records import Kept
    from ..records.proxy import Proxy

#: Ids of boards, None for all; and names of instances or boards that an operator gave.
Ids = Optional[Iterable[int]]
Names = Collection[str]
#: Seconds that a board with power may take to prove its key on an idle proxy node; no power is cut if it does not.
PATIENCE = 6.0
#: Most boards that are asked at the same time.
MOST_ASKED = 64
WIPED_BY = (
    f"put a newer backup of the database back; or, once nobody wants it, {play('repair', node='{board}')} wipes it"
)
#: The text on, and the note of the board of, an instance without root and power, as an older copy of a database has it.
LEFT_OVER = (
    "{name}'s root is gone and its outlet is off: it ended since the backup of the database that was put back, its "
    "root was removed by hand, or what holds the roots is not mounted: "
    f"{play('terminate_instance', instance='{name}')} gives the board back; "
    f"{play('rebuild_instance', instance='{name}', fresh='true')} makes a new root"
)
#: {state of a board that nobody has: how it is made free again}.
WAYS_BACK = {
    board_states.ERROR: f"{play('repair', node='{board}')} makes it free again",
    board_states.MAINTENANCE: f"{play('maintenance', node='{board}', state='off')} makes it free again",
}
#: The remedy for a board that has power and is silent; its tenant may have work there if it runs or boots.
LOOK = f"its network may be cut, or its sshd: see its cable and its console ({play('console', instance='{name}')})"
BY_POWER = play("reboot_instance", instance="{name}", how="hard")
LOOK_OR_CUT = f"{LOOK}; once its tenant agrees, {BY_POWER} cuts its power and boots it"
ROOT_GONE = f"its root is gone ({play('reconcile')} says more)"


def reconcile(
    proxy: Proxy, ids: Ids, change: Change, timeout: float, adopt: Names = (), forget: Names = (), remove: Names = ()
) -> dict[str, Any]:
    """Look at the boards and mend what is safe; return the module's result.

    :param ids: ids of boards; None for all.
    :param timeout: seconds for the PDUs, and for waiting until other verbs release boards.
    :param adopt: instances that, as an operator says, have the boards that their records name, by the outlets that the
        wiring names, whatever answers there.
    :param forget: instances that, as an operator says, have their boards no more: what is there is another's, or the
        board is not in the boards file and gone for good.
    :param remove: names of boards of which, as an operator says, all that lies here may go; only with all boards.
    """
    proxy.store.must_be_whole()
    must_be_gone(proxy, remove)
    boards = [proxy.board(key) for key in (sorted(proxy.boards) if ids is None else ids)]
    make_room(len(boards))
    looks = [Look(Seen(proxy, board, change)) for board in boards]
    with locked([look.work for look in looks], PHASE, Deadline(timeout)):
        for look in looks:
            look.begin()
        looked = [look for look in looks if not look.work.over]
        with change.step("outlets"):
            _ask_outlets(proxy, looked, Deadline(timeout))
        _ask_boards(proxy, [look for look in looked if look.work.claim and look.work.instance in forget])
        by_word = [adoption.end_by_word(proxy, look, forget) for look in looked]
        for look in looked:
            if not look.settled:
                adoption.propose(proxy, look, adopt)
        with change.step("ssh"):
            _ask_boards(proxy, looked)
        with change.step("mend"):
            _mend(proxy, looked, adopt, change)
        for look in looked if change.check else ():
            look.yield_to_a_verb()  # a verb may have begun since
    gone, said = unnamed_boards.let_go(proxy, forget, change, Deadline(timeout)) if ids is None else ([], {})
    said.update(dict.fromkeys(gone, unnamed_boards.WOULD_BE_ENDED))  # in a dry run; else these claims are gone by now
    removed = discard(proxy, remove, gone, change, Deadline(timeout)) if ids is None else {}
    ended = [name for name in by_word if name] + gone
    return dict(
        boards=[look.result for look in looks],
        others=unnamed_boards.others(proxy, said) if ids is None else [],
        ended=ended,
        removed=list(removed),
        unseen=[look.work.board.name for look in looks if look.unseen],
        **unnamed_boards.not_ended(proxy, forget, ended),
        not_adopted=not_adopted(looks, adopt),
        lines=[line for look in looks for line in look.work.lines] + _lines_of(removed, change),
        diff=change.diff,
        seconds=change.seconds,
        changed=any(look.work.changed for look in looks) or bool(gone or removed),
    )


def _mend(proxy: Proxy, looked: Sequence[Look], adopt: Names, change: Change) -> None:
    """Adopt proven claims, correct records by what was seen, and free the boards that nobody has."""
    for look in looked:
        if look.kept:
            _adopt(proxy, look, look.kept, adopt)
    somebodys = [look for look in looked if look.work.claim and look.power and not look.settled]
    last_outlet.compare(proxy, somebodys, adopt)
    for look in looked:
        _catch_up(look)
    crossed = _crossed(proxy, looked)
    for look in looked:
        try:
            _judge(proxy, look, crossed)
        except HeteroError as error:
            look.note(str(error))
    _free(proxy, looked, change)


def _lines_of(removed: dict[str, list[str]], change: Change) -> list[dict[str, Any]]:
    """Return lines for people on what was removed."""
    done = "would be removed" if change.check else "removed"
    texts = {name: f"{done}: {'; '.join(there)}" for name, there in removed.items()}
    return [dict(instance=None, node=name, phase=PHASE, text=text, seconds=None) for name, text in texts.items()]


def _adopt(proxy: Proxy, look: Look, kept: Kept, names: Names) -> None:
    """Adopt a record, or note why that failed; other records are then still adopted."""
    try:
        adoption.decide(proxy, look, kept, names)
    except HeteroError as error:
        look.note(str(error))
        look.settled = look.left = True


def _catch_up(look: Look) -> None:
    """Call maintenance.catch_up; where its record cannot be written, note that and leave the board as it is."""
    try:
        maintenance.catch_up(look)
    except HeteroError as error:
        look.note(str(error))
        look.settled = True


def _ask_outlets(proxy: Proxy, looks: Sequence[Look], deadline: Deadline) -> None:
    seen: dict[int, dict[str, Any]] = {look.work.board.id: {"id": look.work.board.id} for look in looks}
    errors = outlet_power(proxy, list(seen.values()), deadline)
    for look in looks:
        look.power = seen[look.work.board.id]["power"]
        if look.power is None:
            look.unseen = True
            look.note(f"its outlet is not known, so it is left as it is: {errors.get(look.work.pdu, 'no answer')}")
        else:
            look.work.power_seen(look.power)


def _ask_boards(proxy: Proxy, looks: Sequence[Look]) -> None:
    """Look what answers ssh on all boards with a known host key, also where the outlet is off or not known."""
    drivers = BootDrivers(proxy)
    asked = [look for look in looks if look.work.claim and look.work.claim.host_key]
    for look in looks:
        look.work.driver = drivers.of(look.work.board)
    with ThreadPoolExecutor(max_workers=MOST_ASKED) as threads:
        for look, answer in zip(asked, threads.map(_answer, asked)):
            look.ssh = answer


def _answer(look: Look) -> str | None:
    work = look.work
    if look.power == "off" and not _lives(work):
        return None  # a board that is off and silent is as it should be
    return presence.look(work, threading.Event(), PATIENCE * presence.strain())


def _lives(work: BoardWork) -> bool:
    return any(work.driver.alive(work.board, power_proof.LOOK) for _turn in range(power_proof.LOOKS))


def _crossed(proxy: Proxy, looks: Sequence[Look]) -> list[str]:
    """Return the names of boards that any outlet which is on may feed.

    These are boards that run while their own outlet is off; and boards without any claim whose own outlet is not seen
    on, and that have somebody's root or used disk, or answer.
    """
    crossed = [look.work.board.name for look in looks if look.lives_without_power]
    if any(look.power == "on" and look.work.claim is None for look in looks):
        unclaimed = [look.work for look in looks if look.work.claim is None and look.power != "on"]
        with ThreadPoolExecutor(max_workers=MOST_ASKED) as threads:
            seen = threads.map(lambda work: _lives(work) or _may_be_somebodys(proxy, work.board, work.state), unclaimed)
            crossed += [work.board.name for work, somebodys in zip(unclaimed, seen) if somebodys]
        others = proxy.store.records(sorted(set(proxy.boards) - {look.work.board.id for look in looks}))
        nobodys = [(proxy.board(board), record.state) for board, record in others.items() if record.claim is None]
        crossed += [board.name for board, state in nobodys if _may_be_somebodys(proxy, board, state)]
    return crossed


def _may_be_somebodys(proxy: Proxy, board: Board, state: str) -> bool:
    if whose_root(proxy, board) or whose_archive(proxy, board):
        return True
    return state not in WAYS_BACK and bool(disk_records.used(proxy, board))


# ---- one board


def _judge(proxy: Proxy, look: Look, crossed: Sequence[str]) -> None:
    work = look.work
    if look.power is None or look.settled:
        return
    if _is_mended(proxy, look):
        _in_use_again(look)
    elif work.state in (board_states.ERROR, board_states.MAINTENANCE):
        look.note(_out_of_use(look))
    elif work.claim is None:
        _nobodys(proxy, look, crossed)
    elif look.lives_without_power:
        runs = f"it runs {work.instance} and shows its own key"
        seen = runs if look.ssh == OWN_KEY else f"a machine answers at {work.board.ip}"
        look.note(f"its outlet is off, and {seen}: nothing is switched: {power_proof.PLUGS}")
    elif (
        look.power == "off"
        and work.state in (board_states.RUNNING, board_states.POWER_OFF)
        and is_lost(proxy, work.board, work.claim)
    ):
        _left_over(look)
    else:
        if _put_back(proxy, look) and look.ssh in (ALIVE, SILENT):
            look.ssh = _answer(look)  # ask again, for the board may have come up since
        _power_of_somebodys(look)
        _entry_of_somebodys(look)


def _out_of_use(look: Look) -> str:
    """Return the text that a board is kept out of use, and how it is put back."""
    work = look.work
    why = f"kept out of use ({work.state}: {work.record.note or 'without a note'})"
    if work.claim is not None:
        way = OUT_OF_USE.format(name=work.instance)
    else:
        way = WAYS_BACK[work.state].format(board=work.board.name)
    if look.power == "on":
        return f"{why}, its outlet is on: once it is known that nobody is at work there, {way}"
    return f"{why}: {way}"


def _is_mended(proxy: Proxy, look: Look) -> bool:
    """Return whether a board in error runs as it should: with its own key, from its claim's root, without a doubt."""
    work, claim = look.work, look.work.claim
    proven = work.state == board_states.ERROR and look.power == "on" and look.ssh == OWN_KEY
    settled = proven and all(found["done"] for found in look.found)
    return settled and claim is not None and is_of_claim(proxy, work.board, claim)


def _in_use_again(look: Look) -> None:
    work = look.work
    why = f"kept out of use ({work.state}: {work.record.note or 'without a note'})"
    look.mend(f"{why}, and it runs by its outlet and shows its own key", "recorded as running")
    if work.note(work.board.name, {"state": work.state}, {"state": board_states.RUNNING}):
        work.move(board_states.RUNNING)


def _nobodys(proxy: Proxy, look: Look, crossed: Sequence[str]) -> None:
    """Judge a board that nobody has: it must be off and clean, else it is freed with the others (_free).

    :param crossed: names of boards that any outlet which is on may feed (_crossed).
    """
    work = look.work
    whose = whose_root(proxy, work.board) or whose_archive(proxy, work.board)
    if whose:
        way = way_by_copy(proxy, work.board.id)
        look.note(f"has the root of {whose}, of which no claim is known: nothing of it is touched: {PUT_BACK}{way}")
        return
    if look.power == "on" and crossed:
        names = ", ".join(crossed)
        look.note(f"its outlet is on, and nobody has it; it may feed {names}: not switched: {power_proof.PLUGS}")
        return
    if look.power == "on" and _lives(work):
        answers = power_proof.ANSWERS.format(ip=work.board.ip)
        look.note(f"its outlet is on, nobody has it, and {answers}: nothing of it is touched: {PUT_BACK}")
        return
    done = "would be freed" if work.change.check else "off, cleaned, free"
    used = disk_records.used(proxy, work.board)
    if used:
        look.note(
            f"{used[0]}, and no claim is known: nothing of it is touched: {WIPED_BY.format(board=work.board.name)}"
        )
        return
    left = leftovers(proxy, work.board)
    if look.power == "on":
        look.note("its outlet is on, and nobody has it", done)
    if left:
        look.note(f"left by nobody: {'; '.join(left)}", done)
    if work.state != board_states.POWER_OFF:
        look.note(f"recorded as {work.state}, and nobody has it", done)
    look.nobodys = bool(look.found)


def _free(proxy: Proxy, looked: Sequence[Look], change: Change) -> None:
    """Switch off, clean and free the boards that nobody has, in one session for all boards of a PDU.

    The locks of all boards are held until then: an outlet that is on and that nobody has may feed any of them, so none
    may be started before it is off. From then on only a board that is freed has its lock, until it is free.
    """
    looks = [look for look in looked if look.nobodys]

    def let_go_of_others() -> None:
        for look in looked:
            if not look.nobodys:
                look.work.let_go()

    release(proxy, [look.work for look in looks], Options(check=change.check), once_off=let_go_of_others)
    for look in looks:
        if look.work.failed:
            for found in look.found:
                found["done"] = None
            look.note(f"could not be freed: {look.work.error}")
        else:
            look.work.changed = True
            look.work.say(PHASE, "; ".join(f"{found['found']}: {found['done']}" for found in look.found))


def _power_of_somebodys(look: Look) -> None:
    """Correct the record of a tenant's board by its outlet and answer; touch neither outlet nor board."""
    work, state = look.work, look.work.state
    if look.power == "off" and state in (board_states.RUNNING, board_states.BOOTING):
        again = f"{play('start_instance', instance=work.instance)} brings it up"
        look.mend(f"recorded as {state}, its outlet is off", f"recorded as power off ({again})")
        if work.note(work.board.name, {"state": state}, {"state": board_states.POWER_OFF}):
            if state == board_states.BOOTING and not work.ran:
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


def _left_over(look: Look) -> None:
    """Correct the record of an instance without root and power, and report it; a start could not bring it up."""
    work = look.work
    if work.state == board_states.RUNNING:
        look.mend("recorded as running, its outlet is off", "recorded as power off")
        if work.note(work.board.name, {"state": work.state}, {"state": board_states.POWER_OFF}):
            work.move(board_states.SHUTTING_DOWN)
            work.move(board_states.POWER_OFF, ROOT_GONE)
    look.note(LEFT_OVER.format(name=work.instance))


def _is_made(work: BoardWork) -> bool:
    """Return whether a board has a root to boot from; False while its claim is ending, whatever is left."""
    return bool(work.claim and work.claim.image_hash) and work.state != board_states.SHUTTING_DOWN


def _put_back(proxy: Proxy, look: Look) -> bool:
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


def _entry_of_somebodys(look: Look) -> None:
    """Write the boot entry of a tenant's board that is on; remove that of one that is off."""
    work, check = look.work, look.work.change.check
    if not _is_made(work):
        return
    boots = look.power == "on" and work.state in (board_states.RUNNING, board_states.BOOTING)
    before, work.changed = work.changed, False
    (ensure_entry if boots else remove_entry)(work)
    changed, work.changed = work.changed, before
    if changed and boots:
        look.mend("its boot entry is missing, or another", "would be written" if check else "written")
    elif changed:
        look.mend("a boot entry although it is off", "would be removed" if check else "removed")
