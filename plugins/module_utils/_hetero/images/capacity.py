# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a proxy can serve a request with a root: whether it has the image and the room.

This works on values only, so that the proxy and those who ask it decide alike. Before a claim the answer is a hint;
room.py checks again when the root is made.
"""

from __future__ import annotations

from ..core.plays import play
from ..core.spelling import like
from ..core.this_node import THIS_NODE
from ..site.instance import size_text as shown

GIB = 1 << 30
SETTING = "tftp_proxy_roots_overcommit"


def root_size(flavor: dict, board_gb: int | None, root_gb: int) -> int:
    """Return the bytes of a root: local_gb of its flavor, else of its board, else the proxy's default (all in GiB)."""
    return int(flavor.get("local_gb") or board_gb or root_gb) * GIB


class Promises:
    """How many bytes are promised to roots, and how many may be.

    :param promised: bytes of all existing roots.
    :param there: bytes for roots, with those that they take already.
    :param overcommit: how many times these bytes may be promised.
    """

    def __init__(self, promised: float, there: float, overcommit: float) -> None:
        self.promised = promised
        self.limit = there * overcommit
        self.overcommit = overcommit

    @property
    def left(self) -> float:
        """Bytes that one more root may have."""
        return max(0, self.limit - self.promised)

    @property
    def full(self) -> bool:
        """Return whether less than 1 GiB is left, so that no further root fits: their sizes are whole GiB."""
        return self.left < GIB

    def fits(self, size: float) -> bool:
        return self.promised + size <= self.limit

    def never(self, size: float) -> bool:
        """Return whether a root of that size would not fit even if it were the only one."""
        return size > self.limit

    def take(self, size: float) -> None:
        """Promise that many bytes."""
        self.promised += size

    def why(self, size: float) -> str:
        """Return in words why a root of that size does not fit."""
        if self.never(size):
            found = f"all roots together have {shown(self.limit)}"
        elif self.full:
            found = f"all of the {shown(self.limit)} for roots is promised already"
        else:
            found = f"{shown(self.promised)} of the {shown(self.limit)} for roots are promised already"
        return f"no room for a root of {shown(size)}: {found} ({SETTING} is {self.overcommit:g})"

    def remedy(self, size: float) -> str:
        """Return what helps against that."""
        more = f"add space, or raise {SETTING}, then run {play('proxy')}"
        if self.never(size):
            most = int(self.limit // GIB)
            return f"ending instances does not help: take a flavor with local_gb of {most} at most; or {more}"
        if self.full:
            return f"a smaller flavor does not help: terminate instances of {THIS_NODE}; or {more}"
        return f"take a flavor with local_gb of {int(self.left // GIB)} at most, or terminate instances; or {more}"


def without_room(promises: Promises, sizes: dict[str, int]) -> dict[str, str]:
    """Return {name: why there is no room} of those who want a root, in order. Each that gets one uses up promises.

    :param sizes: {name: bytes of its root}.
    """
    found = {}
    for who, size in sizes.items():
        if size and not promises.fits(size):
            found[who] = promises.why(size)
        else:
            promises.take(size)
    return found


def no_image(name: str, images: dict, board_arch: str | None) -> str | None:
    """Return in words why a board cannot run the image of that name, or None if it can.

    :param images: {name: dict of `arch` and `ram`} of the board's proxy.
    """
    image = images.get(name)
    if image is None:
        near = like(name, [known for known, own in images.items() if not own["ram"]])
        meant = f": is {near} meant?" if near else ""
        return f"no image {name} in its store (known: {', '.join(sorted(images)) or 'none'}){meant}"
    if image["ram"]:
        return f"image {name} is a RAM image, not for instances"
    if board_arch is None:
        return f"image {name} is for {image['arch']}, and the boards file gives the board no arch"
    if image["arch"].lower() != board_arch.lower():
        return f"image {name} is for {image['arch']}, the board is {board_arch}"
    return None
