# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy node as its files describe it: boards, which outlet feeds which, where things lie, and the open state store.

What the files may hold is known to site/boards_file.py and site/proxy_config.py.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Mapping

from ...core.errors import BadInput
from ...core.spelling import in_spans
from ...site.boards_file import read as read_boards
from ...site.proxy_config import SET_UP, pdu, read_config
from .claim_records import FOLDER
from .lost_database import must_name_boards, must_not_be_lost
from .store import Store

if TYPE_CHECKING:
    from typing import Self

    from ...core.errors import TimedOut
    from ...site.boards_file import Board
    from ...site.proxy_config import Wire

KERNEL_SOURCES = ("tftp", "flash")


class Proxy:
    """Boards, configuration and store of one proxy node; a context manager that closes the store.

    :param params: a module's `boards_file`, `config` and `state_db`.
    :param actor: who acts, for events and locks (default: the process).
    :param create: False reads a missing database as empty and does not make it.
    :param write: whether one of an older release is upgraded (default: as `create`).
    :param lost: whether the caller has a database that is lost made anew (reconcile).
    :param boardless: whether the caller ends claims of boards that are gone, so that there may be none left.
    :ivar silent_pdus: {name of a PDU: (monotonic time, error)} of those that did not answer (power/pdu_sessions.py).
    :raises BadInput: a file is missing or wrong; each defect is named.
    :raises HeteroError: the database is lost, or cannot be read; or the boards file is empty, and instances were made.
    """

    def __init__(
        self,
        params: Mapping[str, Any],
        actor: str | None = None,
        create: bool = True,
        write: bool | None = None,
        lost: bool = False,
        boardless: bool = False,
    ) -> None:
        self.config = read_config(params["config"])
        self.boards = {board.id: board for board in read_boards(params["boards_file"])}
        self.actor = actor or f"pid {os.getpid()}"
        self.silent_pdus: dict[str, tuple[float, TimedOut]] = {}
        if not lost:
            must_not_be_lost(params["state_db"], self.config.state_folder)
        self.store = Store(params["state_db"], self.actor, create, write=write, records=self.folder(FOLDER))
        if not self.boards and not boardless:
            try:
                claims = self.store.claims()
                must_name_boards(params["boards_file"], claims, params["state_db"], self.config.state_folder)
            except BaseException:
                self.store.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.store.close()

    @property
    def server(self) -> str:
        """The address of this node that boards ask."""
        if not self.config.server:
            raise BadInput("names no server for boards to ask", "the proxy's configuration", SET_UP)
        return self.config.server

    def folder(self, *parts: str) -> str:
        """Return a path below the state folder."""
        return os.path.join(self.config.state_folder, *parts)

    def board(self, board_id: int | str) -> Board:
        """Return the board of that id.

        :raises BadInput: there is no such board; the error names the ids that there are.
        """
        try:
            return self.boards[int(board_id)]
        except (KeyError, ValueError) as error:
            way = "give one of these, or " if self.boards else ""
            remedy = f"{way}have an operator add it to the boards file"
            raise BadInput(f"no such board (known: {in_spans(self.boards)})", f"board {board_id}", remedy) from error

    def wiring(self, board: Board) -> Wire:
        """Return what proxy.json says of a board."""
        return self.config.wiring(board)

    def disks(self, board: Board) -> list[str]:
        """Return the device names of a board's local disks, as proxy.json has them."""
        return self.wiring(board).disks

    def root_partition(self, board: Board) -> str:
        """Return the partition of its first disk that a board with boot source disk boots from."""
        disks = self.disks(board)
        if not disks:
            raise BadInput("no local disk is configured for it", board.name, f"name its disk, then {SET_UP}")
        return disks[0] + ("p1" if disks[0][-1].isdigit() else "1")

    def kernel_source(self, board: Board) -> str:
        """Return where a board gets its kernel: "tftp", or "flash" for one that has it in a memory of its own."""
        source = self.wiring(board).kernel_source or KERNEL_SOURCES[0]
        if source not in KERNEL_SOURCES:
            what = f"no such kernel_source: {source} (known: {', '.join(KERNEL_SOURCES)})"
            raise BadInput(what, board.name, f"correct it in tftp_proxy_boards, then {SET_UP}")
        return source

    def outlet(self, board: Board) -> tuple[str, str]:
        """Return (PDU name, outlet as text) of a board.

        :raises BadInput: it is not wired.
        """
        fed = self.wiring(board).fed
        if fed is None:
            raise BadInput("no PDU outlet is configured for it", board.name, f"name its pdu and outlet, then {SET_UP}")
        return fed

    def pdu(self, name: str) -> tuple[dict[str, Any], dict[str, str]]:
        """Return (settings, secrets) of a PDU."""
        return pdu(self.config, name)
