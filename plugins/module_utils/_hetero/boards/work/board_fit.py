# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A request for boards, and which boards of a proxy node could serve it, whoever has them at present."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Iterable, Mapping

from ...claims.servable import must_be_servable
from ...claims.tickets import must_be_asked, must_be_priority
from ...core.errors import BadInput
from ...drivers.boot.driver import DISK_ROOT, NFS_ROOT
from ...drivers.boot.registry import BootDrivers
from ...images.capacity import no_image
from ...images.choice import images_of
from ...images.delivery import undelivered
from ...images.room import size_of
from ...scheduling.fit import NO_DISK, TOLERANCE, rejections
from ...site.instance import must_be_free_word, valid_instance
from ...site.owners import names_of

if TYPE_CHECKING:
    from ...images.capacity import Promises
    from ...site.boards_file import Board
    from ..records.proxy import Proxy

#: Most instances of a request: the boards of the largest boards file that we measure with (10,000 hosts).
MOST = 10000


@dataclass(frozen=True)
class ClaimRequest:
    """A request for instances: `count` boards make the instances NAME-1 … NAME-N, one board makes NAME.

    :param numbers: the numbers of the instances that this node is asked for; none for all.
    :param asked: since when it waits (unix seconds, as the controller gave it); None where it does not.
    :param priority: of its place among those that wait; the highest goes first.
    """

    request: str
    owner: str
    flavor: dict[str, Any]
    image: str
    ssh_public_key: str
    board: int | None = None
    count: int = 1
    partial: bool = False
    lease_hours: float | None = None
    move: bool = False
    tolerance: float = TOLERANCE
    boot_source: str = NFS_ROOT
    numbers: tuple[int, ...] = ()
    asked: float | None = None
    priority: int = 0

    @property
    def instances(self) -> list[str]:
        return names_of(self.request, self.count, self.numbers)

    @property
    def many(self) -> str:
        """Return the number of boards and a blank, such as "3 ", as text before a flavor; an empty text for one."""
        return "" if self.count == 1 else f"{len(self.instances)} "

    def check(self) -> None:
        """Raise BadInput where no node could serve this request."""
        must_be_free_word(valid_instance(self.request))
        must_be_servable(self, MOST, f"ask for 1 to {MOST} boards", "name an image of the store")
        if self.count > 1 and self.board is not None:
            raise BadInput(f"is {self.count}, and board names one board", "count", "leave out one of the two")
        must_be_priority(self.priority)
        must_be_asked(self.asked)
        if not 0 <= self.tolerance < 1:
            raise BadInput(f"is {self.tolerance:g}", "memory_tolerance", "give a share from 0 to below 1, such as 0.02")


def root_sizes(proxy: Proxy, request: ClaimRequest, pool: Iterable[Board]) -> dict[str, int]:
    """Return {board name: bytes that its root takes on the proxy}."""
    return {
        board.name: 0 if request.boot_source == DISK_ROOT else size_of(proxy, board, request.flavor) for board in pool
    }


def unfit_boards(
    proxy: Proxy, request: ClaimRequest, pool: Iterable[Board], promises: Promises, sizes: Mapping[str, int]
) -> dict[str, list[str]]:
    """Return {board name: why it could not serve the request even if it were free}, an empty list where it could.

    A missing image, what the board would not get of it, or a root too large for the proxy, is named only where all else
    fits.
    """
    images, drivers = images_of(proxy), BootDrivers(proxy)
    found: dict[str, list[str]] = {}
    for board in pool:
        why = rejections(request.flavor, board, request.tolerance)
        if request.boot_source == DISK_ROOT and not proxy.disks(board):
            why.append(NO_DISK)
        why += [] if why else filter(None, [no_image(request.image, images, board.arch)])
        lacks = None if why else undelivered(request.image, images, board.id, drivers.means(board), request.boot_source)
        why += [": ".join(lacks)] if lacks else []
        why += [] if why or not promises.never(sizes[board.name]) else [promises.why(sizes[board.name])]
        found[board.name] = why
    return found
