# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a board would not get of an image that asks for it: a kernel for its boot source, arguments for its kernel.

This works on values only, so that the proxy and those who ask it decide alike, as in capacity.py.
"""

from __future__ import annotations

from typing import Any, Mapping, TypedDict

from ..site.boot_sources import DISK, RAM
from .kernel_names import chosen, shown

BUILD_IN = "build them into the kernel (kernels in image.json, or kernel.d/N) and take cmdline out of image.json"
BUILD_IN_OWN = "build them into a kernel of its own (kernel.d/N in the image) and take cmdline out of tftp_proxy_boards"
NO_INITRD = "has no initrd, by which boot driver {} gives the proxy's keys"
GIVE_INITRD = "give it one: initrd in the image, with an ssh server"
GIVE = "give it one: kernel.d/N for board N, or kernels in image.json for a boot source"


class Means(TypedDict):
    """How a board gets what it boots.

    `driver` is its boot driver, and `arguments` whether that passes arguments to the kernel; `flash`: whether the board
    has its kernel in a memory of its own; `cmdline`: whether its wiring has arguments for it; `ram_image`: the name of
    the RAM image for it, if there is one; `ram_keys`: whether that proves an ssh host key.
    """

    driver: str
    arguments: bool
    flash: bool
    cmdline: bool
    ram_image: str | None
    ram_keys: bool


def undelivered(
    name: str, images: Mapping[str, Mapping[str, Any]], board: int, means: Means | None, source: str
) -> tuple[str, str] | None:
    """Return in words what a board would not get, and what to do; None if it gets all.

    :param name: of the image that is asked for.
    :param images: {name: dict, as choice.described returns it} of the board's proxy; of an older release with less.
    :param board: the board's id.
    :param means: None where nothing is known of it.
    :param source: where its root is to lie (site/boot_sources.py).
    """
    if means is None:
        return None
    asked = [(f"image {name}", images.get(name), source)]
    ram_image = means["ram_image"]
    if source == DISK and ram_image:  # by which its root gets there
        asked.append((f"RAM image {ram_image}", images.get(ram_image), RAM))
    passes_none = f"boot driver {means['driver']} passes none"
    for called, image, root in asked:
        if image is None:
            continue
        if image.get("arguments") and not means["arguments"]:
            return f"{called} has arguments for the kernel (cmdline), and {passes_none}", BUILD_IN
        kernels = image.get("kernels")
        if kernels is not None and not means["flash"] and chosen(kernels, root, board) is None:
            return f"{called} has no kernel for it with its root on {root} (it has: {shown(kernels)})", GIVE
        initrds = image.get("initrds")
        if root == RAM and initrds is not None and means.get("ram_keys") and chosen(initrds, RAM) is None:
            return f"{called} {NO_INITRD.format(means['driver'])}", GIVE_INITRD
    if means["cmdline"] and not means["arguments"]:
        return f"its wiring has arguments for the kernel (cmdline), and {passes_none}", BUILD_IN_OWN
    return None
