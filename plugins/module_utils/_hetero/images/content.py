# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an image consists of. It is checked at the import, and again in the store, where it may be damaged.

store.py knows where images lie and which names they have.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any

from ..core.errors import BadInput
from ..files.removal import remove_tree
from ..files.walk import CHUNK
from ..files.whole_file import write_whole
from .image_root import FILE, FOLDER, is_whole
from .kernels import check_files, check_named, is_file, kernels_in, own_files, serve

CONTENT = "pack image.json, kernel, root/ and, if there is one, initrd at the top of the archive"
RAM_CONTENT = 'pack image.json ({"ram": true}), kernel and, if there is one, initrd at the top of the archive, no root/'
GIVE_KERNEL = "give kernel_of=NAME, the name of an image in the store whose kernel and initrd are to boot it"
#: File in an image's folder: {file at its top: bytes} at the import. Images of older releases have none.
SIZES = "sizes.json"


def check_content(folder: str, source: str, arch: str | None, kernels: bool) -> None:
    """Check that an image is complete, and write an overriding arch into it.

    :param source: the image's name in errors.
    :param kernels: whether it must have a kernel.
    :raises BadInput: something is missing or wrong.
    """
    about = _read(folder, source)
    if arch is not None:
        about["arch"] = arch
        with open(os.path.join(folder, "image.json"), "w", encoding="utf-8") as file:
            json.dump(about, file, indent=2)
    _check_about(about, source)
    ram = about.get("ram", False)
    content = RAM_CONTENT if ram else CONTENT
    check_files(folder, about, source)
    no_kernel = (kernels or ram) and not kernels_in(folder, about)
    for name in ("kernel", "initrd"):
        path = os.path.join(folder, name)
        if not os.path.lexists(path) and not (no_kernel and name == "kernel"):
            continue
        if not os.path.isfile(path):
            remedy = f"{content}; or {GIVE_KERNEL}" if name == "kernel" and not ram else content
            raise BadInput(f"{name}: no such file in it", source, remedy)
        serve(path)
    root = os.path.join(folder, "root")
    if ram and os.path.lexists(root):
        raise BadInput("is a RAM image and holds root, which nothing would use", source, content)
    if not ram and not os.path.isdir(root):
        raise BadInput("root: no such folder in it", source, content)


def about_of(folder: str, source: str) -> dict[str, Any]:
    """Return what image.json says.

    :param source: the image's name in errors.
    :raises BadInput: it is missing or wrong.
    """
    about = _read(folder, source)
    _check_about(about, source)
    return about


def note_sizes(folder: str) -> None:
    """Note the sizes of an image's files, so that a later loss is noticed."""
    sizes = {entry.name: entry.stat().st_size for entry in os.scandir(folder) if entry.is_file(follow_symlinks=False)}
    own = own_files(folder, about_of(folder, folder))
    sizes.update({path: os.lstat(os.path.join(folder, path)).st_size for path in own})
    sizes.pop(SIZES, None)
    remove_tree(os.path.join(folder, SIZES))
    write_whole(os.path.join(folder, SIZES), json.dumps(sizes))


def damage(folder: str, kernels: bool) -> str | None:
    """Return in words why an image in the store is damaged, or None; only sizes and image.json are looked at."""
    try:
        about = about_of(folder, folder)
        for name, size in _sizes(folder).items():
            path = os.path.join(folder, name)
            if not is_file(path) or os.lstat(path).st_size != size:
                return f"{name} is not there as it was imported"
        if (kernels or about.get("ram")) and not any(map(is_file, kernels_in(folder, about).values())):
            return "kernel: no such file in it"
        if about.get("ram") or os.path.isdir(os.path.join(folder, FOLDER)):
            return None
        if not kernels:
            return "root: no such folder in it"
        return None if is_whole(os.path.join(folder, FILE)) else f"{FILE} is not there as a whole"
    except BadInput as error:
        return error.what
    except OSError as error:
        return f"cannot be read ({error.strerror or error})"


def _sizes(folder: str) -> dict[str, int]:
    try:
        with open(os.path.join(folder, SIZES), encoding="utf-8") as file:
            sizes = json.load(file)
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError):
        sizes = None
    if not isinstance(sizes, dict):
        raise BadInput(f"{SIZES} is damaged", folder)
    return sizes


def _check_about(about: dict[str, Any], source: str) -> None:
    if not isinstance(about.get("arch"), str) or not re.fullmatch(r"[A-Za-z0-9_.-]+", about["arch"]):
        raise BadInput("image.json: arch must be a word", source, 'write {"arch": "tilepro64"}, or give arch')
    # It becomes part of a boot entry, where a line break would begin another command.
    cmdline = about.get("cmdline", "")
    if not isinstance(cmdline, str) or not re.fullmatch(r"[ -~]*", cmdline):
        raise BadInput("image.json: cmdline must be one line of ASCII", source, 'write {"cmdline": "quiet"}')
    for name in ("ram", "console_key"):
        if not isinstance(about.get(name, False), bool):
            raise BadInput(f"image.json: {name} must be true or false", source, RAM_CONTENT)
    check_named(about, source)


def _read(folder: str, source: str) -> dict[str, Any]:
    path = os.path.join(folder, "image.json")
    if not os.path.isfile(path) or os.path.getsize(path) > CHUNK:
        there = ", ".join(sorted(os.listdir(folder))[:8]) or "nothing"
        raise BadInput(f"image.json: no such file in it (found: {there})", source, CONTENT)
    try:
        with open(path, encoding="utf-8") as file:
            about = json.load(file)
    except OSError as error:
        raise BadInput(f"image.json cannot be read ({error.strerror})", source, "check the disk") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"image.json is not JSON ({error})", source, 'write {"arch": "tilepro64"}') from error
    if not isinstance(about, dict):
        raise BadInput("image.json is no JSON object", source, 'write {"arch": "tilepro64"}')
    return about
