# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boot boards into RAM for the proxy's own work: prove their keys, call a function for each, switch them off again.

The caller gives the function and sets the boards' states. Only a board that does not obey is put into state error here;
a fault of the RAM image or of the proxy puts none there.
"""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Callable, Iterable, TypeVar, cast

from ...core.changes import Change
from ...core.errors import BadInput, HeteroError, Lost, TimedOut
from ...drivers.boot.blame import IMAGE, PROXY
from ...drivers.boot.driver import FILES, INITRD, KERNEL, RAM_ROOT, TFTP, System
from ...drivers.boot.http_requests import UNKNOWN_NAME
from ...drivers.boot.own_drivers import fault_of
from ...images.delivery import GIVE_INITRD, NO_INITRD
from ...roots.ram import console_of, ram_image, serve_initrd, serve_kernel, serve_plain_initrd
from ...site import board_states
from ...tftp import board_folder
from ..work.board_work import BoardWork
from .boot_entry import remove_entry
from .starts import Starting
from .stops import Stopping

if TYPE_CHECKING:
    from ...drivers.boot.shell import Shell
    from ...images.store import Image
    from ..records.proxy import Proxy
    from .boot_options import BootOptions

W = TypeVar("W", bound=BoardWork)

#: Most addresses that an error names of those that asked for a host key.
SHOWN = 3
#: The phase of a board that answers from RAM.
PHASE = "ram"


class RamWork(BoardWork):
    """A board's boot into RAM, as part of another work on the board.

    Each try has its own keys, if the board's driver knows keys. Where the proxy puts the host key into the initrd, TFTP
    or HTTP serves it only from just before power on until the board has proved the key, and those that ask for it are
    counted: any machine that has the board's address gets it.
    """

    may_be_ended = False

    def __init__(self, work: BoardWork, system: System) -> None:
        super().__init__(work.proxy, work.board, Change(), work.wanted, work.created)
        self.outer = work
        self.record, self.driver = work.record, work.driver
        self.pdu, self.outlet = work.pdu, work.outlet
        self.only_from_off = work.only_from_off
        self.may_be_ended = self.gives_way = work.gives_way
        self._system = system
        self._asked: set[str] = set()  # senders that asked for the initrd in this try
        self._ways: set[str] = set()  # by which kinds of requests

    @property
    def system(self) -> System:
        return self._system

    @property
    def ran(self) -> bool:
        return False  # a RAM system holds no tenant's work, and mounts the board's disk only briefly

    @property
    def key(self) -> str:
        """Return, in words, how the proxy knows that the host key is the board's."""
        if not self.driver.ram_keys:
            return f"not asked for (boot driver {self.driver.name} knows none)"
        if self._system.console_key:
            return "said on its console"
        return f"asked for once by {' and '.join(sorted(way.upper() for way in self._ways)) or TFTP.upper()}"

    @cached_property
    def _initrd(self) -> str:
        return _named(self, INITRD)

    def before_boot(self) -> None:
        self.proxy.store.commit()  # for who waits to write: keys and an initrd take a while
        self._asked, self._ways = set(), set()
        try:
            image = cast("Image", self._system.image)
            if self.driver.ram_keys:
                self._system = System(image, RAM_ROOT, *serve_initrd(self.proxy, self.board, image, self._initrd))
            else:
                serve_plain_initrd(self.proxy, self.board, image, self._initrd)
            self.up = (PHASE, f"RAM system answers, its key {self.key}")
        except HeteroError as error:
            self.fail(PROXY, error, **error.facts)

    def seen(self, kind: str, name: str, sender: str) -> None:
        if kind in FILES and name in (self._initrd, UNKNOWN_NAME):
            self._asked.add(sender)
            self._ways.add(kind)

    def came_up(self) -> None:
        board_folder.BoardFiles(self.proxy.config.tftp_root, self.board.ip).drop(self._initrd)

    def must_be_the_board(self) -> None:
        """Raise HeteroError where more than one sender asked for the host key, so that another machine may have it."""
        if self._system.console_key or not self.driver.ram_keys or len(self._asked) < 2:
            return
        who = ", ".join(sorted(self._asked)[:SHOWN]) + (", …" if len(self._asked) > SHOWN else "")
        what = f"the host key of its RAM system was asked for {len(self._asked)} times ({who}): it may not be the board"
        raise HeteroError(what, self.board.name, "run this again; if it stays, find who uses its address")

    @property
    def image_name(self) -> str:
        return f"RAM image {cast('Image', self._system.image).name}"

    def move(self, state: str, note: str = "") -> None:
        if state == board_states.ERROR and self.state != board_states.MAINTENANCE:
            super().move(state, note)

    def line(self, phase: str, text: str, seconds: float | None = None) -> None:
        self.outer.line(phase, text, seconds)

    def fail(self, blame: str | None, error: HeteroError | str, **evidence: Any) -> None:
        # Nobody asked for this image: it is part of the proxy.
        said = self._system.console_key
        if blame == IMAGE and said and not said.host_key:
            error = f"{error}; no host key was said in {said.log}: look who writes it, or set the board's ram_key: tftp"
        super().fail(PROXY if blame == IMAGE else blame, error, **evidence)

    def hand_over(self) -> None:
        """Copy the result to the work that this boot is part of."""
        self.outer.changed = True
        self.outer.record = self.proxy.store.record(self.board.id)
        if self.failed and not self.outer.failed:
            self.outer.fail(self.blame, str(self.error), **self.evidence)


def in_ram(
    proxy: Proxy,
    works: Iterable[W],
    options: BootOptions,
    act: Callable[[W, Shell], None],
    ended: Callable[[W], None] | None = None,
) -> None:
    """Boot boards into RAM, call `act(work, shell)` for each that proved its key, all at once, and switch them off.

    :param works: BoardWork of each board, locked and read, with its driver. A work that fails is over; an error that
        `act` raises fails only its own board. No board has a boot entry afterwards.
    :param options: lifecycle.Options, with the seconds for a boot and the number of tries.
    :param ended: is called with each work as soon as its own board is off again, or failed to boot, while others go on.
    """
    # what answers once it is to be off is the RAM system, whatever nobody asked for by name
    options = replace(options, wait=True, check=False, by_guess=False)
    rams: list[RamWork] = []

    def end(ram: RamWork) -> None:
        rams.remove(ram)
        _clear(ram)
        ram.hand_over()
        if ended:
            ended(cast("W", ram.outer))

    def end_failed(ram: RamWork) -> None:
        if ram.failed:
            end(ram)

    for work in works:
        ram = _ready(work)
        if ram:
            ram.at_end = partial(end_failed, ram)
            rams.append(ram)
        elif ended:
            ended(work)
    if not rams:
        return
    try:
        Starting(proxy, list(rams), options, reboot=True).run()
        with ThreadPoolExecutor(max_workers=max(1, len(rams))) as threads:
            acting = {threads.submit(_act, act, ram): ram for ram in rams if not ram.failed}
            while acting:
                done = {one: acting.pop(one) for one in wait(acting, return_when=FIRST_COMPLETED).done}
                for one, ram in done.items():
                    one.result()
                    ram.over = False
                Stopping(proxy, list(done.values()), options).run()
                for ram in done.values():
                    end(ram)
    finally:
        for ram in rams:
            _clear(ram)
            ram.hand_over()


def _ready(work: BoardWork) -> RamWork | None:
    """Put kernel and boot entry in their places; where that fails, return None and fail the work."""
    try:
        image = ram_image(work.proxy, work.board)
        work.driver.entry(work.board, System(image, RAM_ROOT))  # raises what stands against it
        if work.driver.ram_keys:
            if not image.initrd_for(RAM_ROOT):
                raise BadInput(NO_INITRD.format(work.driver.name), f"RAM image {image.name}", GIVE_INITRD)
            console_of(work.proxy, work.board, image)
        kernel, _initrd = _named(work, KERNEL), _named(work, INITRD)
        serve_kernel(work.proxy, work.board, image, kernel)
        ram = RamWork(work, System(image, RAM_ROOT))
        for path, text in work.driver.entry(work.board, ram.system).items():
            board_folder.write_entry(path, text)
        return ram
    except HeteroError as error:
        work.fail(PROXY, error, **error.facts)
        return None


def _named(work: BoardWork, role: str) -> str:
    """Return the name by which a board asks for its kernel or initrd.

    :raises HeteroError: its driver names none.
    """
    for name, what in work.driver.files(work.board).items():
        if what == role:
            return name
    what = f"its boot driver {work.driver.name} names no {role}, so that it boots no system into RAM"
    raise fault_of(work.driver, work.board) or BadInput(what, work.board.name, "name it in the driver's files")


def _act(act: Callable[[Any, Shell], None], ram: RamWork) -> None:
    try:
        ram.must_be_the_board()
        ram.outer.key_proof, ram.outer.ram_phases = ram.key, dict(ram.phases)
        act(ram.outer, ram.driver.shell(ram.board, ram.system))
    except (Lost, TimedOut) as error:
        remedy = "look at its power and its console, and run this again: it goes on where it was"
        ram.outer.fail(None, type(error)(error.what, error.thing, remedy))
    except HeteroError as error:
        if not ram.outer.failed:
            ram.outer.fail(None, error, **error.facts)


def clear(work: BoardWork) -> None:
    """Remove the boot entry and the files of a boot into RAM."""
    remove_entry(work)
    files = board_folder.BoardFiles(work.proxy.config.tftp_root, work.board.ip)
    for name in work.driver.files(work.board):
        files.drop(name)
    if files.exists() and not files.names():
        files.remove()


def _clear(ram: RamWork) -> None:
    """Remove what this boot put there; a failure is this board's alone."""
    try:
        clear(ram)
    except HeteroError as error:
        ram.at_end = None  # this is its end
        ram.fail(PROXY, error, **error.facts)
