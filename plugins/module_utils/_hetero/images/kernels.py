# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernels and initrds of an image: those for all boards, those for a boot source, and kernels of single boards.

`kernel` and `initrd` at the top are for all boards. image.json names those for a boot source: {"kernels": {"disk":
PATH}, "initrds": {"ram": PATH}}. Folder kernel.d has the kernels of boards: `N` for board N, `N.disk` for board N with
that boot source. Boards whose firmware passes no arguments need them: where their root lies is built into the kernel.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from typing import Any, Iterator, Mapping

from ..core.errors import BadInput
from ..site.boot_sources import BOOT_SOURCES, RAM
from .disk_signs import DISK
from .image_root import FILE, FOLDER, POINT
from .kernel_names import BOARD, DEFAULT

KERNEL, INITRD = "kernel", "initrd"
#: Key of image.json → what it names for a boot source.
KEYS = {"kernels": KERNEL, "initrds": INITRD}
#: Folder with the kernels of boards.
OF_BOARDS = "kernel.d"
#: What an image has at its top that boards do not fetch.
NOT_FETCHED = (FOLDER, FILE, POINT, DISK, "image.json", "sizes.json")
WRITE = 'write {"kernels": {"nfs": PATH, "disk": PATH}}, with paths in the image'
NAME_IT = "name it N for board N, or N.nfs, N.disk or N.ram for one boot source of it"


def check_named(about: Mapping[str, Any], source: str) -> None:
    """Check what image.json says of kernels and initrds.

    :param source: the image's name in errors.
    :raises BadInput: it names none that can be, or one that no board would boot.
    """
    for key in KEYS:
        named = about.get(key, {})
        if not isinstance(named, dict):
            raise BadInput(f"image.json: {key} must be an object by boot source", source, WRITE)
        for root, path in named.items():
            if root not in BOOT_SOURCES:
                known = ", ".join(BOOT_SOURCES)
                raise BadInput(f"image.json: {key}: no such boot source: {root[:40]} (known: {known})", source, WRITE)
            if not _is_inside(path):
                what = f"image.json: {key}: {root} must be the path of a file of its own in the image, not in {FOLDER}/"
                raise BadInput(what, source, WRITE)
            _must_be_booted(f"image.json: {key}: {root}", root, about, source)


def check_files(folder: str, about: Mapping[str, Any], source: str) -> None:
    """Check an image's kernels and initrds for boot sources and boards, and let everybody read them.

    :raises BadInput: one is missing, or is no file, or no board's.
    """
    for path in _named(about):
        if not is_file(os.path.join(folder, path)):
            raise BadInput(f"{path}: no such file in it, and its image.json names it", source, WRITE)
    there = os.path.join(folder, OF_BOARDS)
    if os.path.lexists(there) and not os.path.isdir(there):
        raise BadInput(f"{OF_BOARDS} is no folder", source, "make it one, with a file N for board N")
    for name in _of_boards(folder):
        path, match = f"{OF_BOARDS}/{name}", BOARD.fullmatch(name)
        if not match or not is_file(os.path.join(folder, path)):
            raise BadInput(f"{path} is no board's kernel", source, NAME_IT)
        _must_be_booted(path, match.group(1), about, source)
    for path in own_files(folder, about):
        serve(os.path.join(folder, path))


def serve(path: str) -> None:
    """Let everybody read a file of an image, as in.tftpd asks."""
    if os.stat(path).st_nlink > 1:
        # Copied, because it may also be a file of the root, where its mode must stay.
        file, own = tempfile.mkstemp(dir=os.path.dirname(path))
        os.close(file)
        shutil.copyfile(path, own)
        os.replace(own, path)
    os.chmod(path, 0o444)


def own_files(folder: str, about: Mapping[str, Any]) -> list[str]:
    """Return the paths, in the image, of its kernels and initrds for boot sources and boards, whether there or not."""
    return sorted({*_named(about), *(f"{OF_BOARDS}/{name}" for name in _of_boards(folder))})


def kernels_in(folder: str, about: Mapping[str, Any]) -> dict[str, str]:
    """Return {name: path} of an image's kernels: DEFAULT, boot sources, and N or N.SOURCE of boards."""
    found = {name: os.path.join(folder, OF_BOARDS, name) for name in _of_boards(folder) if BOARD.fullmatch(name)}
    return {**_in(folder, about, "kernels"), **found}


def initrds_in(folder: str, about: Mapping[str, Any]) -> dict[str, str]:
    """Return {name: path} of an image's initrds: DEFAULT and boot sources."""
    return _in(folder, about, "initrds")


def is_file(path: str) -> bool:
    """Return whether this is a regular file, and no link to one."""
    return os.path.lexists(path) and stat.S_ISREG(os.lstat(path).st_mode)


def _in(folder: str, about: Mapping[str, Any], key: str) -> dict[str, str]:
    usual = os.path.join(folder, KEYS[key])
    named = {root: os.path.join(folder, path) for root, path in about.get(key, {}).items()}
    return {**({DEFAULT: usual} if os.path.exists(usual) else {}), **named}


def _named(about: Mapping[str, Any]) -> Iterator[str]:
    for key in KEYS:
        yield from about.get(key, {}).values()


def _of_boards(folder: str) -> list[str]:
    there = os.path.join(folder, OF_BOARDS)
    return sorted(os.listdir(there)) if os.path.isdir(there) else []


def _is_inside(path: Any) -> bool:
    """Return whether this is the plain path of a file in an image that boards may fetch."""
    if not isinstance(path, str) or not re.fullmatch(r"[ -~]{1,1000}", path):
        return False
    parts = path.split("/")
    return not {"", ".", ".."} & set(parts) and parts[0] not in NOT_FETCHED


def _must_be_booted(thing: str, root: str | None, about: Mapping[str, Any], source: str) -> None:
    """Raise BadInput for what no board would boot: an image is either a RAM system or has a root elsewhere."""
    if root is not None and (root == RAM) != bool(about.get("ram")):
        what = "an image without root/ boots in RAM only" if about.get("ram") else "only a RAM image boots in RAM"
        remedy = "leave it out" if about.get("ram") else 'give it to the RAM image (its image.json has "ram": true)'
        raise BadInput(f"{thing} would be used by no board: {what}", source, remedy)
