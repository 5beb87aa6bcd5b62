# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Apply one layer of a container's image over those before it (OCI image specification, "Filesystem Changeset").

A name that begins with .wh. removes a file of the layers before, and .wh..wh..opq all files of a folder. archive.py and
files/tree.py prevent writing outside the folder.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tarfile
from typing import IO, TYPE_CHECKING, Iterator

from ..core.errors import BadInput
from ..files.scratch import fill, scratch
from ..files.tree import REPACK, ROOT, Tree, parts_of
from .archive import KINDS, Blocks, chunks, members, opened, place

if TYPE_CHECKING:
    from ..core.deadline import Deadline

GONE, OPAQUE = ".wh.", ".wh..wh..opq"
#: Of a layer's own bookkeeping, which aufs left in it.
MARKS = ".wh..wh."


def apply(path: str, diff_id: str, tree: Tree, most: int, deadline: Deadline) -> int:
    """Write a layer's files into ROOT of a tree. Device nodes, pipes and sockets are left out.

    :param path: a tar, compressed or not.
    :param diff_id: "sha256:…" of the tar without compression.
    :param most: bytes that the tar may have without compression.
    :returns: the bytes that it has.
    :raises BadInput: the layer is damaged, hostile or another one.
    """
    with scratch(tree.folder) as layer:
        with opened(path, tree.folder, most, deadline) as blocks:
            _fill(layer, blocks, diff_id)
        for _tar, member in members(Blocks(layer, most, deadline)):
            _hide(member, tree)
        layer.seek(0)
        for tar, member in members(Blocks(layer, most, deadline)):
            _write(tar, member, tree)
        return os.fstat(layer.fileno()).st_size


def _hide(member: tarfile.TarInfo, tree: Tree) -> None:
    """Remove what a member of the layer hides of the layers before."""
    parts = [ROOT, *parts_of(member.name)]
    name, where = parts[-1], parts[:-1]
    if name == OPAQUE:
        tree.empty(where)
    elif name.startswith(GONE) and not name.startswith(MARKS):
        hidden = name[len(GONE) :]
        if hidden in ("", ".", ".."):
            raise BadInput("hides no file that there can be", member.name, REPACK)
        tree.remove([*where, hidden])


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, tree: Tree) -> None:
    parts = [ROOT, *parts_of(member.name)]
    if parts[-1].startswith(GONE) or member.type in KINDS:
        return
    there = tree.kind(parts)
    if there is not None and (there == stat.S_IFDIR) != member.isdir():
        tree.remove(parts)
    place(tar, member, tree, below=(ROOT,))


def _fill(plain: IO[bytes], blocks: Blocks, diff_id: str) -> None:
    """Write a layer without compression, whose sum is compared."""
    digest = hashlib.sha256()
    fill(plain, _summed(blocks, digest))
    if f"sha256:{digest.hexdigest()}" != diff_id:
        raise BadInput("is not the layer that the image's configuration names", None, "fetch or save it again")


def _summed(blocks: Blocks, digest: hashlib._Hash) -> Iterator[bytes]:
    """Yield the bytes of an archive, and count each in a sum."""
    for chunk in chunks(blocks):
        digest.update(chunk)
        yield chunk
