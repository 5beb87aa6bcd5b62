# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What roots see of a proxy node, of its database, and of the claims that roots are made for.

The node itself, its database and its claims are in boards/records/.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Optional, Protocol, Sequence

from ..images.proxy_node import ImageClaim, ProxyNode

if TYPE_CHECKING:
    from ..site.boards_file import Board
    from ..site.proxy_config import Wire

#: Takes the host key that is in a root, or None; returns True where the claim keeps the key that it has instead.
Keeps = Callable[[Optional[str]], bool]


class Numbered(Protocol):
    """A board, by its number alone: the boards file may not name it any more."""

    @property
    def id(self) -> int: ...


class NamedClaim(Protocol):
    """What tells a claim from others: its name, and the time of the claim, for a name may be claimed again later."""

    @property
    def instance(self) -> str: ...
    @property
    def created(self) -> float: ...


class RootClaim(ImageClaim, NamedClaim, Protocol):
    """What roots use of a claim of a board."""

    @property
    def board(self) -> int: ...
    @property
    def flavor(self) -> dict[str, Any]: ...
    @property
    def ssh_public_key(self) -> str: ...
    @property
    def host_key(self) -> str | None: ...
    @property
    def boot_source(self) -> str | None: ...

    def is_same(self, other: Any) -> bool:
        """Return whether both are one claim, whatever fields were changed since."""


class KeptClaim(Protocol):
    """A claim as its record in claims/ has it."""

    @property
    def claim(self) -> RootClaim: ...


class BoardRecord(Protocol):
    """What is recorded of a board."""

    @property
    def power(self) -> str | None: ...
    @property
    def claim(self) -> RootClaim | None: ...


class Records(Protocol):
    """The database of a proxy node."""

    def record(self, board_id: int) -> BoardRecord:
        """Return what is recorded of one board."""

    def claims(self) -> Sequence[RootClaim]:
        """Return all claims."""

    def kept(self, board: int) -> KeptClaim | None:
        """Return what a board's own record of its claim says."""

    def kept_anywhere(self) -> Sequence[tuple[str, KeptClaim]]:
        """Return [(path, KeptClaim)] of all records of claims, wherever they lie."""

    def has_run(self, claim: Any) -> bool:
        """Return whether a claim's instance ever ran on its board."""

    def has_ended(self, claim: Any) -> bool:
        """Return whether the events tell of the end of a claim."""

    def had_power(self, claim: Any) -> bool:
        """Return whether a board ever had power for a claim."""

    def begin_end(self, claim: Any) -> None:
        """Write down that what a claim's board boots from is to be removed by somebody's word, before it goes."""

    def is_ending(self, claim: Any) -> bool:
        """Return whether that removal was begun, and the claim's instance had no power since."""

    def last_said(self, board: int, text: str) -> float | None:
        """Return the unix time of the newest event of a board with this text, or None."""

    def put(self, instance: str, **fields: Any) -> None:
        """Change fields of a claim."""


class RootsNode(ProxyNode, Protocol):
    """What roots use of a proxy node."""

    @property
    def store(self) -> Records: ...

    def wiring(self, board: Board) -> Wire:
        """Return what proxy.json says of a board."""

    def disks(self, board: Board) -> list[str]:
        """Return the device names of a board's local disks."""

    def root_partition(self, board: Board) -> str:
        """Return the partition that a board with boot source disk boots from."""

    def kernel_source(self, board: Board) -> str:
        """Return where a board gets its kernel: "tftp" or "flash"."""


class Report(Protocol):
    """A function that is called when something was done, with the phase, a text and the seconds that it took."""

    def __call__(self, phase: str, text: str, seconds: float | None = None, /) -> object: ...
