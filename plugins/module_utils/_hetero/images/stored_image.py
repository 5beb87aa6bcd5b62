# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An image as the store (store.py) hands it out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Mapping

from .kernel_names import chosen


@dataclass(frozen=True)
class Image:
    """An image in the store. `kernel`, `initrd` (None: it has none) and `root` (None: a RAM image) are paths.

    :param kernels: {name: path} of all its kernels (kernels.py), `kernel` among them.
    :param initrds: the same of its initrds.
    :param folder: the image's folder.
    :param root: folder of its files, which on a proxy must be mounted first (image_root.root_of).
    :param console_key: whether this RAM image makes its ssh host key itself and prints it on its console.
    """

    hash: str
    name: str
    arch: str
    cmdline: str
    kernel: str | None
    initrd: str | None
    root: str | None
    folder: str = ""
    console_key: bool = False
    kernels: Mapping[str, str] = field(default_factory=dict)
    initrds: Mapping[str, str] = field(default_factory=dict)

    def kernel_for(self, root: str, board: int) -> str | None:
        """Return the path of the kernel that a board boots with its root there (site/boot_sources.py); None: it has
        none.
        """
        return self.kernels.get(chosen(self.kernels, root, board) or "")

    def initrd_for(self, root: str) -> str | None:
        """Return the path of the initrd that goes with that kernel; None: it has none."""
        return self.initrds.get(chosen(self.initrds, root) or "")

    @property
    def ram(self) -> bool:
        """Return whether the image has only kernel and initrd, no root: a RAM system, which no instance can have."""
        return self.root is None
