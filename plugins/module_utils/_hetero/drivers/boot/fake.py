# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A boot driver without boards, for tests and for a first look: it plays the phases of a boot at given seconds after
power on.

A board's wiring in proxy.json says how: {"driver": "fake", "fake": {"tftp": 0.1, "nfs": 0.2, "running": 0.3}}. Further
keys:

- "stall": the phase that never comes ("tftp", "kernel", "nfs", "running"); "stalls": only in so many boots.
- "wrong_key": true answers with another host key, and a text with that key.
- "unproven": true is up and proves no key.
- "initrd": true has its address in its initrd already, and refuses calls there.
- "taken": true is another machine at the board's address, whatever the outlet's state.
- "proxy": a fault that the self-test finds.
- "strangers": texts of other machines that stand in the proxy's place.
- "feeds": ids of the boards that the board's outlet really feeds.
- "thief": files that somebody else asks for in the board's place.
- "soft": what it does when told by ssh to reboot ("boots", "nothing").

The time of power on is kept in the run folder, so that a later call finds the board as it would find a real one.
"""

from __future__ import annotations

import json
import os
import threading
import time
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Callable, Collection, ContextManager, Iterator

from ...core.errors import HeteroError
from . import ssh
from .driver import ENTRY, FIRMWARE, INITRD, KERNEL, NFS, SYSTEM, TFTP
from .pxe import Pxe, entry_name, initrd_name, kernel_name

if TYPE_CHECKING:
    from ...core.deadline import Deadline
    from ...site.boards_file import Board
    from .driver import Report, Seen, System
    from .proxy_node import BootNode
    from .ssh_reboot import Refusal

#: Seconds from power on for phases without a time in the wiring.
SECONDS = {"tftp": 0.05, "nfs": 0.1, "running": 0.15}
#: The phases in order; a stall keeps all later ones from coming.
ORDER = ("tftp", "kernel", "nfs", "running")
#: Phases that a watch reports.
SEEN = ORDER[:-1]
#: Seconds between two looks at a board while a watch has FEW boards at most; with more boards longer, up to SLOWEST.
TICK, FEW, SLOWEST = 0.01, 8, 0.2
#: Looks after which a watch reads the files of all boards, also where the folder's time says that none was replaced.
ALL = 10


class Fake(Pxe):
    """The files of a PXE board, and a boot that is played."""

    name = "fake"

    def __init__(self, proxy: BootNode) -> None:
        super().__init__(proxy)
        self._lock = threading.Lock()
        # (board, phase) → number of the boot in which the watch reported it, None for never
        self._told: dict[tuple[int, str], int | None] = {}
        # path → (what stat says of the file, its contents), so that it is not read again at each look
        self._read: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {}
        self._folder = os.path.join(proxy.config.run_folder, "fake-boots")

    @property
    def _tick(self) -> float:
        """Return the seconds between two looks at a board, by the number of boards that are watched."""
        return min(SLOWEST, TICK * max(1.0, len(self._told) / len(SEEN) / FEW))

    def _path(self, board: Board) -> str:
        return f"{self._folder}/{board.name}"

    def _boot(self, board: Board) -> dict[str, Any]:
        """Return {"on": time.monotonic() of power on, or None, "boots": number of boots}."""
        path = self._path(board)
        with self._lock:
            try:
                seen = os.stat(path)
                sign = (seen.st_ino, seen.st_mtime_ns, seen.st_size)
                known = self._read.get(path)
                if known is None or known[0] != sign:
                    with open(path, encoding="utf-8") as file:
                        known = self._read[path] = sign, json.load(file)
                return known[1]
            except FileNotFoundError:
                return {"on": None, "boots": 0}

    def _changed(self) -> int | None:
        """Return the time when a file of a board was last replaced; None where there is none yet."""
        try:
            return os.stat(self._folder).st_mtime_ns
        except FileNotFoundError:
            return None

    def _play(self, board: Board) -> dict[str, Any]:
        return dict(SECONDS, **self.proxy.wiring(board).fake or {})

    def _reached(self, board: Board, phase: str) -> bool:
        """Return whether the present boot has reached this phase."""
        boot = self._boot(board)
        return boot["on"] is not None and self._has_reached(board, phase, boot)

    def _has_reached(self, board: Board, phase: str, boot: dict[str, Any]) -> bool:
        play = self._play(board)
        stall = play.get("stall")
        if stall and boot["boots"] <= play.get("stalls", boot["boots"]) and ORDER.index(phase) >= ORDER.index(stall):
            return False
        return time.monotonic() - boot["on"] >= play["tftp" if phase == "kernel" else phase]

    def switched(self, board: Board, state: str) -> None:
        for fed in self._play(board).get("feeds", [board.id]):
            self._power(self.proxy.board(fed), state)

    def _power(self, board: Board, state: str) -> None:
        boot = self._boot(board)
        if state == "on":
            boot = {"on": time.monotonic(), "boots": boot["boots"] + 1}
        else:
            boot = {"on": None, "boots": boot["boots"]}
        path = self._path(board)
        # of two processes that switch it, the last one's word counts
        new = f"{path}.new-{os.getpid()}"
        with self._lock:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(new, "w", encoding="utf-8") as file:
                json.dump(boot, file)
            os.replace(new, path)

    @contextmanager
    def watch(self, boards: Collection[Board], seen: Seen) -> Iterator[None]:
        over = threading.Event()
        # What was over before the watch began is not reported, as packets would not be.
        told = {
            (board.id, phase): self._boot(board)["boots"] if self._reached(board, phase) else None
            for board in boards
            for phase in SEEN
        }
        self._told.update(told)
        thread = threading.Thread(target=self._tell, args=(boards, seen, over), name="fake phases", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            for key in told:
                self._told.pop(key, None)

    def newcomers(self, boards: Collection[Board], told: Callable[[str], None]) -> ContextManager[Any]:
        return nullcontext()

    def _tell(self, boards: Collection[Board], seen: Seen, over: threading.Event) -> None:
        changed, looks = None, 0
        awaited = list(boards)
        while not over.wait(self._tick):
            before, changed, looks = changed, self._changed(), looks + 1
            looked = awaited if changed == before and looks % ALL else boards
            awaited = []
            for board in looked:
                boot = self._boot(board)
                boots = boot["boots"]
                if boot["on"] is None or self._told[board.id, SEEN[-1]] == boots:
                    continue
                awaited.append(board)
                for phase, things in (
                    ("tftp", ((FIRMWARE, ""), (TFTP, entry_name(board)))),
                    ("kernel", ((TFTP, kernel_name(board)), (TFTP, initrd_name(board)))),
                    ("nfs", ((SYSTEM, ""), (NFS, ""))),
                ):
                    if self._told[board.id, phase] != boots and self._has_reached(board, phase, boot):
                        for kind, name in things:
                            seen(board.id, kind, name, time.monotonic(), f"{board.ip} boot {boots}")
                        for name in self._play(board).get("thief", ()) if phase == "kernel" else ():
                            seen(board.id, TFTP, name, time.monotonic(), "somebody else")
                        self._told[board.id, phase] = boots

    def _is_told(self, board: Board) -> bool:
        """Return whether the watch reported all that the board asked for.

        It answers only then, even in a busy process.
        """
        boot = self._boot(board)
        untold = [phase for phase in SEEN if self._told.get((board.id, phase), boot["boots"]) != boot["boots"]]
        return boot["on"] is None or not any(self._has_reached(board, phase, boot) for phase in untold)

    def files(self, board: Board) -> dict[str, str]:
        return {entry_name(board): ENTRY, kernel_name(board): KERNEL, initrd_name(board): INITRD}

    def has_root(self, board: Board) -> bool:
        return self._reached(board, "nfs")

    def answers(
        self, board: Board, system: System, deadline: Deadline, cancelled: threading.Event, report: Report
    ) -> bool:
        while not deadline.passed and not cancelled.wait(self._tick):
            play = self._play(board)
            if play.get("taken"):
                raise ssh.another_key(board.ip)
            up = self._reached(board, "running") and self._is_told(board)
            if up and not play.get("unproven"):
                if play.get("wrong_key") or play.get("key", system.host_key) != system.host_key:
                    raise ssh.another_key(board.ip)
                return True
        return False

    @contextmanager
    def told_to_reboot(
        self, board: Board, system: System, private_key: str, mark: str, deadline: Deadline
    ) -> Iterator[Refusal]:
        soft = self._play(board).get("soft")
        if soft is None:
            raise HeteroError("cannot be told to reboot by ssh: Connection refused", board.ip)
        if soft == "boots":
            self._power(board, "on")
        yield lambda: None

    def alive(self, board: Board, limit: float) -> bool:
        play = self._play(board)
        in_initrd = bool(play.get("initrd")) and self._reached(board, "kernel")
        return in_initrd or bool(play.get("taken")) or self._reached(board, "running")

    def strangers(self, board: Board, seen: Collection[tuple[str, str]]) -> list[str]:
        return [*super().strangers(board, seen), *self._play(board).get("strangers", [])]

    def self_test(self, board: Board, system: System) -> list[str]:
        fault = self._play(board).get("proxy")
        return [fault] if fault else []
