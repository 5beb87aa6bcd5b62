# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One request for many boards of a proxy node, simulated: when does each of them run?

What is waited for is what the product makes boards wait for, by its own rules: their roots, some at a time,
before the first board gets power; a place among those that boot at once (boot_places.py); their PDU, which carries out
one order at a time, each with all that was asked for by then, and reads back at its end; the pace of its outlets
(inrush.py); the one loop that follows all boards. Files come over a link that all who load share equally. How
long each of it takes was measured (Board, Pdu, Proxy). No clock and no chance takes part, so the same question has the
same answer.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from math import ceil, inf
from typing import Callable

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.boot_places import RATE, filling
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.silent_boots import EARLY
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power.pdu_line import IDLE
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.inrush import SECOND


@dataclass(frozen=True)
class Board:
    """A board of the lab, alone on two idle cores: it ran 5.3 s after power on (README), and loaded 31.9 MB meanwhile.

    :param firmware: seconds until it loads: what is left of the 5.3 s when 31.9 MB come at RATE.
    :param kernel: bytes by TFTP: the kernel (14,186,432) and the initrd (2,296,183) of the lab's image.
    :param root: the other bytes, by NFS, which it mounts when it has its kernel; it runs when it has them.
    """

    firmware: float = 2.1
    kernel: float = 16.5e6
    root: float = 15.4e6

    @property
    def alone(self) -> float:
        """Seconds from power on until it runs, with nobody beside it."""
        return self.firmware + (self.kernel + self.root) / RATE


@dataclass(frozen=True)
class Pdu:
    """A PDU with menus (AOS 3) that takes 0.2 s a screen, the slowest of those that bench/pdu.py asks.

    :param outlets: how many of its outlets feed boards.
    :param inrush: most outlets that are switched on within a second; None for no limit.
    :param login, order: seconds of a login, and of an order with its read-back, whatever number of outlets is in it.
    :param portion, single: seconds of each further portion of an order that inrush divides, besides the wait; where
        such a portion is one outlet, its menus are gone through for it alone.
    """

    outlets: int = 24
    inrush: int | None = None
    login: float = 0.75
    order: float = 2.45
    portion: float = 0.23
    single: float = 1.68

    @property
    def pace(self) -> float:
        """Seconds from one portion to the next."""
        return 0.0 if self.inrush is None else SECOND + (self.single if self.inrush == 1 else self.portion)


@dataclass(frozen=True)
class Proxy:
    """A proxy node: a link, processors, and what each board costs it.

    :param link: Mbit/s; None for no limit.
    :param at_once: boots_at_once; 0 for as many as fill the link, as the product's default; None for no limit.
    :param processors: one is taken by the loop, the others serve files.
    :param root: seconds for a board's root, export and boot files, alone.
    :param many: the same for each of several, which are made eight at a time: on two processors they took 90 ms
        each, where one after the other took 124.
    :param own: processor seconds of the loop for a board, up to MANY boards in one request: `start` of 300 played ones
        took 20 ms each, of 100 they took 17. With 900 it was 24, from which EXPONENT is (`bench/growth.py 100 300 900`,
        on two processors that had much other work).
    :param serving: processor seconds for a board's files: in.tftpd took 10 ms/MB in blocks of 1,432 bytes. What NFS
        takes was not measured, and is not counted.
    """

    link: int | None = 1000
    at_once: int | None = 0
    processors: int = 4
    root: float = 0.1
    many: float = 0.073
    own: float = 0.02
    serving: float = 0.165

    MANY = 300
    EXPONENT = 0.15

    @property
    def places(self) -> float:
        """How many boards boot at once."""
        if self.at_once == 0:
            return inf if self.link is None else filling(self.link)
        return self.at_once or inf

    def roots(self, boards: int) -> float:
        """Seconds for the roots of so many boards."""
        return max(self.root, boards * self.many)

    def loop(self, boards: int) -> float:
        """Processor seconds of the loop for each of so many boards."""
        return self.own * max(1.0, boards / self.MANY) ** self.EXPONENT

    def speed(self, board: Board) -> float:
        """Bytes a second that it gives to all boards together."""
        link = inf if self.link is None else self.link * 1e6 / 8
        serving = self.serving / (board.kernel + board.root)
        return min(link, max(1, self.processors - 1) / serving if serving else inf)


@dataclass(frozen=True)
class Site:
    """A proxy node with its boards and PDUs."""

    board: Board = field(default_factory=Board)
    pdu: Pdu = field(default_factory=Pdu)
    proxy: Proxy = field(default_factory=Proxy)

    def without(self, limit: str) -> Site:
        """This site where one of LIMITS is none."""
        proxy, places = self.proxy, self.proxy.places
        at_once = None if places == inf else int(places)
        if limit == "PDU":
            return replace(self, pdu=replace(self.pdu, inrush=None, login=0.0, order=0.0))
        given = {
            "link": dict(link=None, at_once=at_once),
            "boots_at_once": dict(at_once=None),
            "proxy": dict(root=0.0, many=0.0, own=0.0, serving=0.0),
        }
        return replace(self, proxy=replace(proxy, **given[limit]))


#: What boards may wait for; "proxy" is the proxy node's own work: roots, its loop, and serving files.
LIMITS = ("link", "PDU", "boots_at_once", "proxy")
#: Processor seconds of a boot of the lab, those of its firmware left out: (33.4 s - 2.1 s) × 2 / 8.
EMULATED = 7.8
#: Less than this part of the time says nothing of a limit.
LITTLE = 0.05


def lab(processors: int) -> Site:
    """The lab, whose boards are emulated by the processors of one machine, and whose PDUs answer at once.

    A boot takes EMULATED seconds of a processor: eight at once ran 33.4 s after power on, on two (make bench). They are
    taken for the time of serving files, which is shared in the same way.
    """
    proxy = Proxy(link=None, at_once=None, processors=1 + processors, serving=EMULATED)
    return Site(pdu=Pdu(login=0.0, order=0.0), proxy=proxy)


@lru_cache(maxsize=None)
def running(boards: int, site: Site) -> tuple[float, ...]:
    """Seconds from the request until each of so many boards runs, the first one first."""
    return _Request(boards, site).run()


def limit(boards: int, site: Site) -> str:
    """Which of LIMITS costs most time: without it all boards would run soonest. "boot" where none costs much."""
    whole = running(boards, site)[-1]
    least, which = min((running(boards, site.without(limit))[-1], limit) for limit in LIMITS)
    return which if least < (1 - LITTLE) * whole else "boot"


def proxies(boards: int, site: Site, seconds: float) -> int | None:
    """Fewest such proxy nodes by which all boards of a site run in that time; None where one is too slow for one."""
    if running(1, site)[-1] > seconds:
        return None
    fewest, enough = 0, boards
    while enough - fewest > 1:
        middle = (fewest + enough) // 2
        if running(ceil(boards / middle), site)[-1] <= seconds:
            enough = middle
        else:
            fewest = middle
    return enough


class _Shared:
    """A link: all who load get the same, at most RATE each."""

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._now = self._given = 0.0  # bytes that each has got who loaded since the begin
        self._ends: list[tuple[float, int]] = []  # (what is given by then, board)

    def _each(self) -> float:
        return min(RATE, self._speed / len(self._ends))

    def _until(self, now: float) -> None:
        if self._ends:
            self._given += (now - self._now) * self._each()
        self._now = now

    def begin(self, now: float, board: int, size: float) -> None:
        self._until(now)
        heapq.heappush(self._ends, (self._given + size, board))

    def next_end(self) -> float:
        return self._now + max(0.0, self._ends[0][0] - self._given) / self._each() if self._ends else inf

    def end(self, now: float) -> int:
        """Return the board that has all by now."""
        self._until(now)
        return heapq.heappop(self._ends)[1]


class _Line:
    """A PDU, and who waits for it."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.busy = False
        self.idle_since = -inf
        self.switched: list[float] = []  # when outlets were switched on that count for its pace


class _Request:
    """One request, from its begin until all its boards run."""

    def __init__(self, boards: int, site: Site) -> None:
        self._site, self._boards = site, boards
        self._cost = site.proxy.loop(boards) / 3  # before a board's power, when it has mounted, when it runs
        self._loop_free = 0.0
        self._room = site.proxy.places
        self._placed: set[int] = set()
        self._queue = deque(range(boards))
        self._lines = [_Line() for _number in range(ceil(boards / site.pdu.outlets))]
        self._link = _Shared(site.proxy.speed(site.board))
        self._mounted: set[int] = set()
        self._read_back: dict[int, float] = {}  # when its outlet is
        self._running: list[float] = []
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._number = 0

    def run(self) -> tuple[float, ...]:
        self._loop_free = self._site.proxy.roots(self._boards)
        self._at(self._loop_free, self._let_in)
        while self._events or self._link.next_end() < inf:
            loaded = self._link.next_end()
            if self._events and self._events[0][0] <= loaded:
                now, _number, then = heapq.heappop(self._events)
                then(now)
            else:
                self._loaded(loaded, self._link.end(loaded))
        return tuple(sorted(self._running))

    def _at(self, when: float, then: Callable[..., None], *words: object) -> None:
        self._number += 1
        heapq.heappush(self._events, (when, self._number, partial(then, *words)))

    def _work(self, then: Callable[[float], None], now: float) -> None:
        """Have the loop do a board's next piece of work once it comes to it."""
        self._loop_free = max(now, self._loop_free) + self._cost
        self._at(self._loop_free, then)

    # ---- places

    def _let_in(self, now: float) -> None:
        while self._queue and self._room > 0:
            board = self._queue.popleft()
            self._take(board)
            self._work(partial(self._ask, board), now)

    def _take(self, board: int) -> None:
        self._placed.add(board)
        self._room -= 1

    def _leave(self, board: int, now: float) -> None:
        if board in self._placed:
            self._placed.remove(board)
            self._room += 1
            self._let_in(now)

    # ---- power

    def _ask(self, board: int, now: float) -> None:
        line = self._lines[board // self._site.pdu.outlets]
        line.asked.append(board)
        if not line.busy:
            self._order(line, now)

    def _order(self, line: _Line, now: float) -> None:
        """Switch on all that was asked for by now, in portions that inrush allows."""
        pdu = self._site.pdu
        asked, line.asked, line.busy = line.asked, [], True
        login = pdu.login if now - line.idle_since > IDLE else 0.0
        at = now + login + pdu.order
        left = deque(asked)
        while left:
            line.switched = [before for before in line.switched if before + pdu.pace > at]
            room = len(left) if pdu.inrush is None else min(len(left), pdu.inrush - len(line.switched))
            for _outlet in range(room):
                self._at(at, self._powered, left.popleft())
            line.switched += [at] * room
            if left:
                at = line.switched[0] + pdu.pace
        self._read_back.update(dict.fromkeys(asked, at))
        self._at(at, self._ordered, line)

    def _ordered(self, line: _Line, now: float) -> None:
        line.busy, line.idle_since = False, now
        if line.asked:
            self._order(line, now)

    # ---- a board

    def _powered(self, board: int, now: float) -> None:
        firmware = self._site.board.firmware
        if firmware > EARLY:  # who asks for nothing so long has no place any more
            self._at(now + EARLY, self._leave, board)
        self._at(now + firmware, self._asks, board)

    def _asks(self, board: int, now: float) -> None:
        if board not in self._placed and self._room > 0:
            self._take(board)
        self._link.begin(now, board, self._site.board.kernel)

    def _loaded(self, now: float, board: int) -> None:
        """Go on with a board that has its kernel, or all; the loop believes neither before its outlet is read back."""
        then = self._running.append if board in self._mounted else partial(self._leave, board)
        self._at(max(now, self._read_back[board]), self._work, then)
        if board not in self._mounted:
            self._mounted.add(board)
            self._link.begin(now, board, self._site.board.root)
