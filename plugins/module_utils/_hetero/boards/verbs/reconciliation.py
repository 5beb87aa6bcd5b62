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
from ...core.errors import HeteroError, naming
from ...core.lines import line
from ...core.plays import play
from ...roots.misplaced_roots import misplaced
from ...roots.ownership import is_lost, is_of_claim, whose_archive, whose_root
from ...roots.provision import leftovers
from ...site import board_states
from ..evidence import adoption, unnamed_boards
from ..evidence.adoption import PUT_BACK
from ..evidence.changed_addresses import changed_address
from ..evidence.cut_boots import CUT_OFF
from ..evidence.discard import discard, must_be_gone
from ..evidence.free_boards import is_older
from ..power import last_outlet, power_proof, presence
from ..power.outlet_power import outlet_power
from ..power.presence import ALIVE, OWN_KEY, SILENT
from ..records import disk_records
from ..records.lost_database import way_by_copy
from ..work import maintenance
from ..work.board_locks import locked
from ..work.board_work import BoardWork, unread_outlet
from ..work.looks import PHASE, Look, Seen, name_drivers, not_adopted
from . import ended_checks
from .lifecycle import OUT_OF_USE, Options, start
from .release import free_board, release
from .tenants_boards import correct_entry, correct_off, correct_power, left_over, put_parts_back, see_cuts

if TYPE_CHECKING:
    from ...core.changes import Change
    from ...drivers.power.drawn import Drawn
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
#: Of a board that is off and nobody's by its record, which may be that of a folder under the real one.
MADE_READY = (
    "its outlet is {power}, nobody has it, and it is made ready for somebody ({left}): nothing of it is touched: see "
    f"that the file system of {{folder}} is mounted; {PUT_BACK}"
)
#: {state of a board that nobody has: how it is made free again}.
WAYS_BACK = {
    board_states.ERROR: f"{play('repair', node='{board}')} makes it free again",
    board_states.MAINTENANCE: f"{play('maintenance', node='{board}', state='off')} makes it free again",
}


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
        name_drivers(proxy, looked)
        _ask_boards(proxy, [look for look in looked if look.work.claim and look.work.instance in forget])
        by_word = [adoption.end_by_word(proxy, look, forget) for look in looked if not look.settled]
        for look in looked:
            if not look.settled:
                adoption.propose(proxy, look, adopt)
        with change.step("ssh"):
            _ask_boards(proxy, looked)
        with change.step("mend"):
            _mend(proxy, looked, adopt, change)
        for look in looked if change.check else ():
            look.yield_to_a_verb()  # a verb may have begun since
    _take_up(proxy, [look for look in looks if look.cut_off and not look.work.over], change)
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
            with naming(look.work.board.name):
                _judge(proxy, look, crossed)
        except HeteroError as error:
            look.note(str(error))
    see_cuts(proxy, looked)
    _free(proxy, looked, change)


def _take_up(proxy: Proxy, looks: Sequence[Look], change: Change) -> None:
    """Switch on boards whose boots were cut off, if the same claims have them still; their boots are not waited for.

    It is a start like any other, with locks of its own, so the one of reconcile is released before.
    """
    if not looks:
        return
    claims = [look.work.claim for look in looks]
    options = Options(check=change.check, wait=False, created=tuple(claim.created for claim in claims if claim))
    result = start(proxy, [look.work.board.id for look in looks], options)
    errors = {board["board"]: board["error"] for board in result["boards"] if board["failed"]}
    for look in looks:
        error = errors.get(look.work.board.id)
        if error:
            look.note(f"{CUT_OFF}: {error}")
        elif change.check:
            look.note(CUT_OFF, "would be switched on, as it was to be")
        else:
            look.mend(CUT_OFF, "switched on, as it was to be; it boots")


def _lines_of(removed: dict[str, list[str]], change: Change) -> list[dict[str, Any]]:
    """Return lines for people on what was removed."""
    done = "would be removed" if change.check else "removed"
    return [line(None, name, PHASE, f"{done}: {'; '.join(there)}") for name, there in removed.items()]


def _adopt(proxy: Proxy, look: Look, kept: Kept, names: Names) -> None:
    """Adopt a record, or note why that failed; other records are then still adopted."""
    try:
        with look.whole():
            adoption.decide(proxy, look, kept, names)
    except HeteroError as error:
        look.note(f"could not be adopted for {kept.claim.instance}: {error}")
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
    meters: dict[int, Drawn] = {}
    errors = outlet_power(proxy, list(seen.values()), deadline, meters)
    for look in looks:
        look.work.drew(meters.get(look.work.board.id))
        work, power = look.work, seen[look.work.board.id]["power"]
        error = errors.get(work.pdu, "no answer") if power is None else unread_outlet(work, {work.outlet: power})
        look.power = None if error else power
        if error is None:
            work.power_seen(power)
        else:
            look.unseen = True
            look.note(f"its outlet is not known, so it is left as it is: {error}")


def _ask_boards(proxy: Proxy, looks: Sequence[Look]) -> None:
    """Look what answers ssh on all boards with a known host key, also where the outlet is off or not known."""
    asked = [look for look in looks if look.work.claim and look.work.claim.host_key and not look.settled]
    with ThreadPoolExecutor(max_workers=MOST_ASKED) as threads:
        for look, answer in zip(asked, threads.map(_answer, asked)):
            look.ssh = answer
            look.settle_broken()


def _answer(look: Look) -> str | None:
    work = look.work
    if look.power == "off" and not _lives(work):
        return None  # a board that is off and silent is as it should be
    return presence.look(work, threading.Event(), PATIENCE * presence.strain())


def _lives(work: BoardWork) -> bool:
    return power_proof.lives(work.driver, work.board)


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
    changed = None if look.ssh == OWN_KEY else changed_address(proxy, work.board, look.power_where_served)
    if changed:
        look.note(f"{changed.what}: {changed.remedy}")
        look.left = True
    elif _is_mended(proxy, look):
        with look.whole():
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
        with look.whole():
            left_over(look)
    else:
        if put_parts_back(proxy, look) and look.ssh in (ALIVE, SILENT):
            look.ssh = _answer(look)  # ask again, for the board may have come up since
        correct_off(look)
        with look.whole():
            correct_power(look)
        correct_entry(look)


def _out_of_use(look: Look) -> str:
    """Return the text that a board is kept out of use, and how it is put back."""
    work, why = look.work, _why_out(look)
    way = OUT_OF_USE.format(name=work.instance) if work.claim else WAYS_BACK[work.state].format(board=work.board.name)
    if look.power == "on":
        return f"{why}, its outlet is on: once it is known that nobody is at work there, {way}"
    return f"{why}: {way}"


def _why_out(look: Look) -> str:
    return f"kept out of use ({look.work.state}: {look.work.record.note or 'without a note'})"


def _is_mended(proxy: Proxy, look: Look) -> bool:
    """Return whether a board in error runs as it should: with its own key, from its claim's root, without a doubt."""
    work, claim = look.work, look.work.claim
    proven = work.state == board_states.ERROR and look.power == "on" and look.ssh == OWN_KEY
    settled = proven and all(found["done"] for found in look.found)
    return settled and claim is not None and is_of_claim(proxy, work.board, claim)


def _in_use_again(look: Look) -> None:
    work = look.work
    look.mend(f"{_why_out(look)}, and it runs by its outlet and shows its own key", "recorded as running")
    if work.note(work.board.name, {"state": work.state}, {"state": board_states.RUNNING}):
        work.move(board_states.RUNNING)


def _nobodys(proxy: Proxy, look: Look, crossed: Sequence[str]) -> None:
    """Judge a board that nobody has: it must be off and clean, else it is freed with the others (_free).

    :param crossed: names of boards that any outlet which is on may feed (_crossed).
    """
    work = look.work
    whose = whose_root(proxy, work.board) or whose_archive(proxy, work.board)
    anothers = misplaced(proxy, work.board.id) if whose else None
    if anothers:
        look.note(str(anothers))
        return
    if whose:
        way = way_by_copy(proxy, work.board.id)
        look.note(f"has the root of {whose}, of which no claim is known: nothing of it is touched: {PUT_BACK}{way}")
        return
    if look.power == "on" and crossed:
        names = ", ".join(crossed)
        look.note(f"its outlet is on, and nobody has it; it may feed {names}: not switched: {power_proof.PLUGS}")
        return
    if ended_checks.settled(proxy, look):
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
    if left and work.state == board_states.POWER_OFF and (look.power == "on" or is_older(proxy, work.board)):
        folder = proxy.config.state_folder
        look.note(MADE_READY.format(power=look.power, left="; ".join(left), folder=folder))
        return
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
    told: dict[BoardWork, str] = {
        look.work: "; ".join(f"{found['found']}: {found['done']}" for found in look.found) for look in looks
    }

    def free(work: BoardWork) -> None:
        free_board(proxy, work)
        work.changed = True
        work.say(PHASE, told[work])

    def let_go_of_others() -> None:
        for look in looked:
            if not look.nobodys:
                look.work.let_go()

    options = Options(check=change.check, by_guess=True)
    release(proxy, [look.work for look in looks], options, once_off=let_go_of_others, free=free)
    for look in looks:
        if look.work.failed:
            for found in look.found:
                found["done"] = None
            look.note(f"could not be freed: {look.work.error}")
