# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of images. Requests only give names; the operator who imports an image says where it comes from."""

from __future__ import annotations

import os
import re

from ..core.errors import BadInput
from ..core.plays import play

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
HASH = re.compile(r"[0-9a-f]{64}")
#: Suffixes of an archive that do not become part of the image's name.
SUFFIXES = (".tar.gz", ".tar.xz", ".tar.bz2", ".tgz", ".txz", ".tbz2", ".tbz", ".tar")
IMPORT = f"an operator imports images with {play('image', nodes='NODE', image='NAME', src='FILE')}"


def is_name(text: str) -> bool:
    """Return whether an image may have this name.

    A hash may not be one, because images are stored under their hashes.
    """
    return bool(NAME.fullmatch(text)) and not HASH.fullmatch(text)


def valid_image(text: str) -> str:
    """Return `text`; raise BadInput if it is no image name, such as a path or URL, which a tenant may have written."""
    if not is_name(text):
        raise BadInput("is no name for an image", repr(text), f"give the name of one in the store; {IMPORT}")
    return text


def is_source(text: str) -> bool:
    """Return whether a text is a path or URL of an image and not its name in the store."""
    return "/" in text


def default_name(source: str) -> str:
    """Return the default name of an image: its file's name without suffixes."""
    name = os.path.basename(source.split("?")[0].rstrip("/"))
    return next((name[: -len(suffix)] for suffix in SUFFIXES if name.endswith(suffix)), name)


def checksum_of(text: object) -> str | None:
    """Return the sha256 in a checksum, or None if there is none; raise BadInput for another text."""
    if text is None:
        return None
    kind, _colon, value = str(text).partition(":")
    if kind != "sha256" or not HASH.fullmatch(value.lower()):
        raise BadInput("is no checksum", repr(str(text)), "write sha256: and 64 hexadecimal digits")
    return value.lower()
