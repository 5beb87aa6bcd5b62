# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep a mistake in a boot driver of a site's own to the boards that have it.

Where a look at a board breaks off, or never returns, it tells what keeps the board's power: the board answers, has its
root, and proves no key. Where something that is done on a board breaks off, that is an error which names the file. The
self-test tells of both, so that neither board nor image is at fault.
"""

from __future__ import annotations

import queue
import threading
from abc import ABC, abstractmethod
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Callable, Collection, ContextManager, Iterator, Mapping, cast

from ...core.errors import BadInput, HeteroError, StepFailed
from ...core.printable import brief
from .driver import NFS, BootDriver
from .ssh import WrongHostKey, known_hosts_line

if TYPE_CHECKING:
    from ...core.deadline import Deadline
    from ...site.boards_file import Board
    from .driver import Report, Seen, System
    from .proxy_node import BootNode
    from .shell import Shell
    from .ssh_reboot import Refusal


#: Seconds that a look at a board has beside its own limit, and what is done on it or asked of the network.
LOOK, ACT = 10.0, 60.0


class NeverReturned(Exception):
    """A call of a driver has no end. It leaves this file as the fault of its boards."""


def within(seconds: float, work: Callable[..., Any], *words: Any) -> Any:
    """Return what a call returns; raise NeverReturned where it takes longer: its thread ends with this process."""
    ended: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

    def do() -> None:
        try:
            ended.put((work(*words), None))
        except BaseException as error:  # noqa: BLE001 - it is raised by who waits
            ended.put((None, error))

    threading.Thread(target=do, daemon=True).start()
    try:
        answer, error = ended.get(timeout=seconds)
    except queue.Empty:
        name = getattr(work, "__name__", "it")
        raise NeverReturned(f"{name} did not return within {seconds:.3g} s") from None
    if error is not None:
        raise error
    return answer


class OfSite(ABC):
    """What a driver of a site's own has beside others."""

    @abstractmethod
    def fault(self, board: Board) -> HeteroError | None:
        """Return the mistake that it made on a board in this call; None where it made none."""


def fault_of(driver: BootDriver, board: Board) -> HeteroError | None:
    """Return the mistake that a driver made on a board in this call; None where it made none.

    Where it made one, nothing is switched off by what it tells of the board.
    """
    return driver.fault(board) if isinstance(driver, OfSite) else None


class Guard:
    """Calls a driver of a site's own, and keeps what it did wrong in one call, board by board.

    :param own_name: the name by which the inventory names the driver.
    :param path: its file, for the errors.
    """

    def __init__(self, own_name: str, path: str) -> None:
        self._own_name, self._path = own_name, path
        self._faults: dict[int, HeteroError] = {}
        self._hung: dict[int, str] = {}  # ids of boards in whose work it never returned
        self.unmoved: set[int] = set()  # ids of boards on which it did not do what it was told

    def of(self, board: Board) -> HeteroError | None:
        """Return the first mistake on a board; None where there is none."""
        return self._faults.get(board.id)

    def _noted(self, error: BaseException, board: Board) -> HeteroError:
        """Keep what broke off as the fault of a board that has none yet, and return the board's fault."""
        return self._faults.setdefault(board.id, broke_off(error, board.name, self._own_name, self._path))

    @contextmanager
    def kept(self, *boards: Board, acts: bool = False) -> Iterator[None]:
        """Keep what breaks off as the fault of these boards, and go on after the block.

        :param acts: something was to be done on the boards; if it was not, nothing more is awaited of them.
        """
        try:
            yield
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a site's own raises
            for board in boards:
                self._noted(error, board)
                self.unmoved.update([board.id] if acts else [])

    @contextmanager
    def raised(self, board: Board) -> Iterator[None]:
        """Raise what breaks off as an error of the board."""
        try:
            yield
        except HeteroError:
            raise
        except (Exception, SystemExit) as error:
            raise self._noted(error, board) from error

    def call(self, boards: Collection[Board], seconds: float, work: Callable[..., Any], *words: Any) -> Any:
        """Do what is asked, and raise NeverReturned where it does not end; for the same board then at once."""
        hung = [board for board in boards if board.id in self._hung]
        if hung:
            raise NeverReturned(self._hung[hung[0].id])
        try:
            return within(seconds, work, *words)
        except NeverReturned as error:
            self._hung.update((board.id, str(error)) for board in boards)
            raise


class Guarded(BootDriver, OfSite):
    """Stands before a site's own class in what `guarded` makes: each method here calls the site's, and answers for it
    where that breaks off.
    """

    _guard: Guard

    @property
    def _of_site(self) -> BootDriver:
        """Return this driver with the methods as the site's class has them."""
        return cast("BootDriver", super())

    def fault(self, board: Board) -> HeteroError | None:
        return self._guard.of(board)

    # ---- looks

    def from_flash(self, board: Board) -> bool:
        with self._guard.kept(board):
            return bool(self._guard.call([board], LOOK, self._of_site.from_flash, board))
        return BootDriver.from_flash(self, board)

    def request_limit(self, board: Board) -> float:
        with self._guard.kept(board):
            return float(self._guard.call([board], LOOK, self._of_site.request_limit, board))
        return BootDriver.asks_within

    def address(self, board: Board) -> str:
        with self._guard.kept(board):
            return text(self._guard.call([board], LOOK, self._of_site.address, board))
        return board.ip

    def entry_paths(self, board: Board) -> list[str]:
        with self._guard.kept(board):
            return [text(path) for path in self._guard.call([board], LOOK, self._of_site.entry_paths, board)]
        return []

    def files(self, board: Board) -> dict[str, str]:
        with self._guard.kept(board):
            return texts(self._guard.call([board], LOOK, self._of_site.files, board))
        return {}

    @contextmanager
    def watch(self, boards: Collection[Board], seen: Seen) -> Iterator[None]:
        watched, entered = {board.id: board for board in boards}, False

        def checked(board_id: int, kind: str, name: str, at: float, sender: str) -> None:
            if board_id in watched:
                with self._guard.kept(watched[board_id]):
                    seen(board_id, text(kind), text(name), float(at), str(sender))

        with self._guard.kept(*boards, acts=True):
            context = self._guard.call(boards, ACT, self._of_site.watch, boards, checked)
            self._guard.call(boards, ACT, context.__enter__)
            entered = True
        try:
            yield
        finally:
            with self._guard.kept(*boards):
                if entered:
                    self._guard.call(boards, ACT, context.__exit__, None, None, None)

    def newcomers(self, boards: Collection[Board], told: Callable[[str], None]) -> ContextManager[Any]:
        with self._guard.kept(*boards):
            return self._of_site.newcomers(boards, told)
        return nullcontext()

    def under_way(self, board: Board) -> set[str]:
        with self._guard.kept(board):
            return {text(kind) for kind in self._guard.call([board], LOOK, self._of_site.under_way, board)}
        return {NFS}

    def has_root(self, board: Board) -> bool:
        with self._guard.kept(board):
            return bool(self._guard.call([board], LOOK, self._of_site.has_root, board))
        return True

    def alive(self, board: Board, limit: float) -> bool:
        with self._guard.kept(board):
            return bool(self._guard.call([board], limit + LOOK, self._of_site.alive, board, limit))
        return True

    def answers(
        self, board: Board, system: System, deadline: Deadline, cancelled: threading.Event, report: Report
    ) -> bool:
        foreseen: HeteroError | None = None
        with self._guard.kept(board, acts=True):
            try:
                if board.id in self._guard.unmoved:
                    return False
                words, limit = (board, system, deadline, cancelled, report), deadline.left + ACT
                return bool(self._guard.call([board], limit, self._of_site.answers, *words))
            except (WrongHostKey, StepFailed) as error:
                foreseen = error
        if foreseen is not None:
            raise foreseen
        return False

    def known_hosts(self, board: Board, host_key: str | None) -> str:
        with self._guard.kept(board):
            return text(self._guard.call([board], LOOK, self._of_site.known_hosts, board, host_key))
        return known_hosts_line(board.ip, host_key)

    def self_test(self, board: Board, system: System) -> list[str]:
        faults: list[str] = []
        with self._guard.kept(board):
            faults = list(map(text, self._guard.call([board], ACT, self._of_site.self_test, board, system)))
        own = self.fault(board)
        return faults + ([str(own)] if own else [])

    def strangers(self, board: Board, seen: Collection[tuple[str, str]]) -> list[str]:
        with self._guard.kept(board):
            return list(map(text, self._guard.call([board], ACT, self._of_site.strangers, board, seen)))
        return []

    # ---- what is done on a board

    def switched(self, board: Board, state: str) -> None:
        with self._guard.kept(board, acts=True):
            self._guard.call([board], ACT, self._of_site.switched, board, state)

    def boots_anew(self, board: Board) -> None:
        with self._guard.kept(board, acts=True):
            self._guard.call([board], ACT, self._of_site.boots_anew, board)

    def entry(self, board: Board, system: System) -> dict[str, str]:
        with self._guard.raised(board):
            return texts(self._guard.call([board], ACT, self._of_site.entry, board, system))

    def shell(self, board: Board, system: System) -> Shell:
        with self._guard.raised(board):
            shell: Shell = self._guard.call([board], ACT, self._of_site.shell, board, system)
            return shell

    @contextmanager
    def told_to_reboot(
        self, board: Board, system: System, private_key: str, mark: str, deadline: Deadline
    ) -> Iterator[Refusal]:
        words = (board, system, private_key, mark, deadline)
        with self._guard.raised(board), self._of_site.told_to_reboot(*words) as refusal:
            yield refusal


def guarded(driver: type[BootDriver], own_name: str, path: str) -> type[BootDriver]:
    """Return a driver that is the given one, and whose mistakes are errors of the boards in whose work they show.

    :param own_name: the name by which the inventory names it.
    :param path: its file, for the errors.
    """

    class OwnDriver(Guarded, driver):  # type: ignore[misc,valid-type]
        name = own_name

        def __init__(self, proxy: BootNode) -> None:
            self.proxy, self._guard = proxy, Guard(own_name, path)
            super().__init__(proxy)

    OwnDriver.__name__ = driver.__name__
    return OwnDriver


class Unloaded(BootDriver, OfSite):
    """Stands in for a driver that cannot be loaded, where a board is only looked at: nothing has its power cut.

    :param error: why it cannot.
    """

    def __init__(self, proxy: BootNode, error: HeteroError) -> None:
        super().__init__(proxy)
        self._error = error

    def fault(self, board: Board) -> HeteroError | None:
        return self._error

    def entry(self, board: Board, system: System) -> dict[str, str]:
        raise self._error

    def entry_paths(self, board: Board) -> list[str]:
        return []

    def files(self, board: Board) -> dict[str, str]:
        return {}

    def watch(self, boards: Collection[Board], seen: Seen) -> ContextManager[Any]:
        return nullcontext()

    def has_root(self, board: Board) -> bool:
        return True

    def alive(self, board: Board, limit: float) -> bool:
        return True

    def answers(
        self, board: Board, system: System, deadline: Deadline, cancelled: threading.Event, report: Report
    ) -> bool:
        return False

    def known_hosts(self, board: Board, host_key: str | None) -> str:
        return known_hosts_line(board.ip, host_key)

    def self_test(self, board: Board, system: System) -> list[str]:
        return [str(self._error)]


def broke_off(error: BaseException, board: str, own_name: str, path: str) -> HeteroError:
    """Return what a driver of a site's own raised as an error of a board; one that it meant for people is kept."""
    if isinstance(error, HeteroError):
        return error
    what = f"its boot driver {own_name} broke off ({brief(f'{type(error).__name__}: {error}')})"
    return BadInput(what, board, f"correct {path}")


def text(given: object) -> str:
    """Return a text; raise TypeError where it is none."""
    if not isinstance(given, str):
        raise TypeError(f"{brief(repr(given))} is no text")
    return given


def texts(given: Mapping[str, str]) -> dict[str, str]:
    """Return a mapping of texts; raise TypeError where it is none."""
    if not isinstance(given, Mapping):
        raise TypeError(f"{brief(repr(given))} is no mapping")
    return {text(key): text(value) for key, value in given.items()}
