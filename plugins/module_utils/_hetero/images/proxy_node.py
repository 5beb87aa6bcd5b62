# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the image store and the room for roots see of those who use them: of a proxy node, of a claim, of an image.

The node itself is boards/records/proxy.py, claims are of boards/ and of compute_host/, the image is store.py's.
"""

from __future__ import annotations

from typing import Any, Protocol


class ProxyNode(Protocol):
    """A proxy node, as far as its images and the room for its roots go."""

    @property
    def config(self) -> dict[str, Any]:
        """What proxy.json says, with its defaults."""

    def folder(self, *parts: str) -> str:
        """A path below the state folder."""


class ImageClaim(Protocol):
    """A claim, as far as its image goes."""

    @property
    def instance(self) -> str: ...
    @property
    def image(self) -> str: ...
    @property
    def image_hash(self) -> str | None: ...


class StoredImage(Protocol):
    """An image in the store, as far as it is mounted."""

    @property
    def name(self) -> str: ...
    @property
    def folder(self) -> str: ...
    @property
    def root(self) -> str | None: ...
