# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The images of a proxy's store: which image a claim has, and which images a board may run."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ..core.errors import BadInput, Refused
from ..core.plays import play
from ..site.boot_sources import DISK
from ..site.proxy_config import tenants_paths
from .capacity import no_image
from .delivery import undelivered
from .store import Image, ImageStore

if TYPE_CHECKING:
    from ..site.boards_file import Board
    from .delivery import Means
    from .proxy_node import ImageClaim, ProxyNode

#: Stands for the architecture of a damaged image, which no board may run.
DAMAGED = "no board (it is damaged: {})"
REBUILD = f"rebuild the instance to change its image ({play('rebuild_instance', instance='{name}', image='{image}')})"


def image_store(proxy: ProxyNode) -> ImageStore:
    """Return the proxy's image store."""
    return ImageStore(proxy.folder("images"), closed=tenants_paths(proxy.config))


def images_of(proxy: ProxyNode) -> dict[str, dict[str, Any]]:
    """Return {name: dict, as of `described`} of the images in the proxy's store. No board may run a damaged one."""
    store, found = image_store(proxy), {}
    stored = store.hashes()
    for name, hash in store.names().items():
        if hash in stored:
            wrong = store.damage(hash)
            image = None if wrong else store.get(hash)
            found[name] = described(image) if image else dict(arch=DAMAGED.format(wrong), ram=False)
    return found


def described(image: Image) -> dict[str, Any]:
    """Return what decides whether a board can boot an image: `arch`, `ram`, `arguments` (whether it has some for the
    kernel), `kernels` and `initrds` (their names, kernels.py).
    """
    names = dict(kernels=sorted(image.kernels), initrds=sorted(image.initrds))
    return dict(arch=image.arch, ram=image.ram, arguments=bool(image.cmdline), **names)


def image_of(proxy: ProxyNode, claim: ImageClaim) -> Image:
    """Return the image of a claim: the one that its root was made from, even if the name now stands for a newer one."""
    return image_store(proxy).get(claim.image_hash or claim.image)


def wrong_arch(board: Board, image: Image) -> str | None:
    """Return in words why an image cannot run on a board, or None if it can."""
    return no_image(image.name, {image.name: dict(arch=image.arch, ram=False)}, board.arch)


def check_arch(board: Board, image: Image) -> None:
    """Raise BadInput for an image of another architecture. Callers ask before they change anything."""
    wrong = wrong_arch(board, image)
    if wrong:
        raise BadInput(wrong, board.name, "choose an image of the board's architecture")


def check_delivery(proxy: ProxyNode, board: Board, image: Image, means: Means | None, source: str) -> None:
    """Raise BadInput for what an image asks for and its board would not get. Callers ask before they change anything.

    :param means: how the board gets what it boots; None where that is not known.
    :param source: where its root is to lie (site/boot_sources.py).
    """
    images = {image.name: described(image)}
    ram_image = means["ram_image"] if means and source == DISK else None
    if ram_image:
        with suppress(BadInput):  # a missing one is said where it is needed
            images.setdefault(ram_image, described(image_store(proxy).get(ram_image)))
    found = undelivered(image.name, images, board.id, means, source)
    if found:
        raise BadInput(found[0], board.name, found[1])


def check_image(claim: ImageClaim, image: Image, board_name: str) -> None:
    """Check that a claim may have this image.

    :raises Refused: the claim's root was made from another image.
    :raises BadInput: it is a RAM image.
    """
    if image.ram:
        raise BadInput(f"image {image.name} is a RAM image, not for instances", board_name, "choose another image")
    if claim.image_hash and claim.image_hash != image.hash:
        what = f"{claim.instance} was made from image {claim.image_hash[:12]}, not from {image.name} {image.hash[:12]}"
        raise Refused(what, board_name, REBUILD.format(name=claim.instance, image=image.name))
