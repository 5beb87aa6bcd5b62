# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of images. Requests give names only; where an image comes from is said by an operator who imports it."""

from __future__ import annotations

import os
import re

from ..core.errors import BadInput
from ..core.plays import play

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
HASH = re.compile(r"[0-9a-f]{64}")
#: Suffixes that a name does not take over from its archive.
SUFFIXES = (".tar.gz", ".tar.xz", ".tar.bz2", ".tgz", ".txz", ".tbz2", ".tbz", ".tar")
IMPORT = f"an operator imports images with {play('image', nodes='NODE', image='NAME', src='FILE')}"


def is_name(text: str) -> bool:
    """Whether an image may have this name; a hash is none, since an image is stored under that."""
    return bool(NAME.fullmatch(text)) and not HASH.fullmatch(text)


def valid_image(text: str) -> str:
    """`text`, or BadInput where it is no name for an image, but a path or URL, which a tenant may have written."""
    if not is_name(text):
        raise BadInput("is no name for an image", repr(text), f"give the name of one in the store; {IMPORT}")
    return text


def is_source(text: str) -> bool:
    """Whether a text says where an image comes from (a path or URL), not its name in the store."""
    return "/" in text


def default_name(source: str) -> str:
    """The name of an image that was given none: its file's name without suffixes."""
    name = os.path.basename(source.split("?")[0].rstrip("/"))
    return next((name[: -len(suffix)] for suffix in SUFFIXES if name.endswith(suffix)), name)


def checksum_of(text: object) -> str | None:
    """The sha256 that a checksum names; None where none is given."""
    if text is None:
        return None
    kind, _colon, value = str(text).partition(":")
    if kind != "sha256" or not HASH.fullmatch(value.lower()):
        raise BadInput("is no checksum", repr(str(text)), "write sha256: and 64 hexadecimal digits")
    return value.lower()
