# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the power room uses of a proxy node, of the work on a board, of a boot and of a look at a board.

The node is that of records/proxy.py, or one that is yet to be set up; the others are in the rooms above.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Protocol, Sequence

if TYPE_CHECKING:
    from ...core.changes import Change
    from ...core.errors import HeteroError, Refused
    from ...drivers.boot.driver import BootDriver, System
    from ...drivers.power.drawn import Drawn
    from ...site.boards_file import Board
    from ...site.proxy_config import ProxyConfig
    from ..records.claim_records import Claim, Kept
    from ..records.proxy import Proxy


class ClaimFiles(Protocol):
    """The claims' own records."""

    def kept_boards(self) -> list[int]:
        """Return the ids of the boards that have a record."""

    def kept(self, board: int) -> Kept | None:
        """Return what a board's record says; raise HeteroError for one that cannot be read."""

    def lost(self) -> list[Claim]:
        """Return claims whose records are gone."""


class WiredNode(Protocol):
    """What this room uses of a node: its wiring, and its records of claims."""

    @property
    def config(self) -> ProxyConfig: ...
    @property
    def boards(self) -> Mapping[int, Board]: ...
    @property
    def store(self) -> ClaimFiles: ...

    def outlet(self, board: Board) -> tuple[str, str]:
        """Return (PDU name, outlet) of a board, as its wiring names them."""


class PowerWork(Protocol):
    """The work on one board.

    `doubt` is why its outlet must not be switched off; with `off_by_all` it may still be switched on. `wiring_seen`
    tells whether its wiring was compared with the outlet that fed the board last.
    """

    doubt: Refused | None
    off_by_all: bool
    wiring_seen: bool

    @property
    def proxy(self) -> Proxy: ...
    @property
    def board(self) -> Board: ...
    @property
    def change(self) -> Change: ...
    @property
    def claim(self) -> Claim | None: ...
    @property
    def instance(self) -> str | None: ...
    @property
    def state(self) -> str: ...
    @property
    def driver(self) -> BootDriver: ...
    @property
    def system(self) -> System: ...
    @property
    def pdu(self) -> str: ...
    @property
    def outlet(self) -> str: ...
    @property
    def power_proof(self) -> dict[str, Any] | None: ...
    @property
    def over(self) -> bool: ...

    def say(self, phase: str, text: str, seconds: float | None = None) -> None:
        """Report a phase of the work."""

    def look_if_over(self) -> None:
        """Do, once, what follows the end of the work."""

    def drew(self, drawn: Drawn | None) -> None:
        """Add a reading of the outlet's meter to what the claim has drawn."""

    def fail(self, blame: str | None, error: HeteroError, **evidence: Any) -> None:
        """End the work without success."""


class PoweredBoot(Protocol):
    """A board's boot, once it runs: how it was switched, what was seen of it and when (time.monotonic())."""

    @property
    def work(self) -> PowerWork: ...
    @property
    def way(self) -> str: ...
    @property
    def flash(self) -> bool: ...
    @property
    def kinds(self) -> Mapping[str, float]: ...
    @property
    def powered(self) -> float: ...
    @property
    def console(self) -> str | None: ...
    @property
    def console_from(self) -> int: ...


class Sight(Protocol):
    """What reconcile saw of a board after it asked the outlet and the board; `left` as in work/looks.py."""

    left: bool

    @property
    def power(self) -> str | None: ...
    @property
    def ssh(self) -> str | None: ...

    def note(self, found: str, done: str | None = None) -> None:
        """Report what was found, and what was done about it."""

    def mend(self, found: str, done: str) -> None:
        """Report what was found and is mended."""


class PowerLook(Sight, Protocol):
    """A Sight, with what the files here use besides: the work on the board, and all that was found."""

    @property
    def work(self) -> PowerWork: ...
    @property
    def found(self) -> Sequence[Any]: ...
    @property
    def lives_without_power(self) -> bool: ...
