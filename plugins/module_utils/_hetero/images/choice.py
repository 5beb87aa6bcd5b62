# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The images of a proxy's store: which one a claim has, and which a board may have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.errors import BadInput, Refused
from ..core.plays import play
from ..site.proxy_config import tenants_paths
from .capacity import no_image
from .store import Image, ImageStore

if TYPE_CHECKING:
    from ..site.boards_file import Board
    from .proxy_node import ImageClaim, ProxyNode

#: Stands for the architecture of an image that no board can run.
DAMAGED = "no board (it is damaged: {})"
REBUILD = f"rebuild the instance to change its image ({play('rebuild_instance', instance='{name}', image='{image}')})"


def image_store(proxy: ProxyNode) -> ImageStore:
    """The proxy's image store."""
    return ImageStore(proxy.folder("images"), closed=tenants_paths(proxy.config))


def images_of(proxy: ProxyNode) -> dict[str, dict[str, Any]]:
    """{name of an image in the proxy's store: its `arch` and `ram`}; a damaged one is for no board."""
    store, found = image_store(proxy), {}
    stored = store.hashes()
    for name, hash in store.names().items():
        if hash in stored:
            wrong = store.damage(hash)
            image = None if wrong else store.get(hash)
            found[name] = dict(arch=image.arch, ram=image.ram) if image else dict(arch=DAMAGED.format(wrong), ram=False)
    return found


def image_of(proxy: ProxyNode, claim: ImageClaim) -> Image:
    """The image of a claim: the one its root was made from, even when the name stands for a newer one now."""
    return image_store(proxy).get(claim.image_hash or claim.image)


def wrong_arch(board: Board, image: Image) -> str | None:
    """Why an image cannot run on a board; None where it can."""
    return no_image(image.name, {image.name: dict(arch=image.arch, ram=False)}, board.arch)


def check_arch(board: Board, image: Image) -> None:
    """BadInput for an image of another architecture; asked before anything is touched."""
    wrong = wrong_arch(board, image)
    if wrong:
        raise BadInput(wrong, board.name, "choose an image of the board's architecture")


def check_image(claim: ImageClaim, image: Image, board_name: str) -> None:
    """Refused for another image than the one that the claim's root was made from; BadInput for a RAM image."""
    if image.ram:
        raise BadInput(f"image {image.name} is a RAM image, not for instances", board_name, "choose another image")
    if claim.image_hash and claim.image_hash != image.hash:
        what = f"{claim.instance} was made from image {claim.image_hash[:12]}, not from {image.name} {image.hash[:12]}"
        raise Refused(what, board_name, REBUILD.format(name=claim.instance, image=image.name))
