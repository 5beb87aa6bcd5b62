# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the image store and the room for roots need to know of a proxy node, of a claim and of an image.

boards/records/proxy.py has the node, boards/ and compute_host/ have claims, and store.py has the image.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Mapping, Protocol

if TYPE_CHECKING:
    from ..site.proxy_config import ProxyConfig


class ProxyNode(Protocol):
    """What is used of a proxy node for its images and the room for its roots."""

    @property
    def config(self) -> ProxyConfig:
        """The contents of proxy.json with defaults."""

    def folder(self, *parts: str) -> str:
        """Return a path below the state folder."""


class ImageClaim(Protocol):
    """What is used of a claim for its image."""

    @property
    def instance(self) -> str: ...
    @property
    def image(self) -> str: ...
    @property
    def image_hash(self) -> str | None: ...


class StoredImage(Protocol):
    """What is used of an image in the store to mount it, and to boot another root with its kernel."""

    @property
    def name(self) -> str: ...
    @property
    def folder(self) -> str: ...
    @property
    def root(self) -> str | None: ...
    @property
    def arch(self) -> str: ...
    @property
    def ram(self) -> bool: ...
    @property
    def kernels(self) -> Mapping[str, str]: ...
