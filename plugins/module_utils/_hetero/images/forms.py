# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The forms in which an image is imported, and how each becomes image.json, kernel, initrd and root/.

The archive or folder is in the image's folder already. It holds root/, or DISK, or a container's image in its place;
the latter two may say neither an architecture nor a kernel.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.errors import BadInput
from ..files.removal import remove_tree
from ..files.tree import ROOT
from . import container_images, disk_image
from .archive import shown
from .content import GIVE_KERNEL, SIZES, about_of
from .disk_signs import DISK
from .image_root import FILE, FOLDER, POINT
from .kernels import KEYS, OF_BOARDS

if TYPE_CHECKING:
    from ..core.deadline import Deadline
    from .proxy_node import StoredImage

ABOUT = "image.json"
#: What an image's folder has at its top that does not belong to its kernel.
NOT_BOOT = (ABOUT, SIZES, FILE, FOLDER, POINT, DISK)
#: A kernel in a root's /boot, as distributions name it, and the initrd of the same version.
KERNEL = re.compile(r"(?:vmlinuz|vmlinux|Image)-(?P<version>.+)")
INITRDS = ("initrd.img-{}", "initramfs-{}.img", "initramfs-{}", "initrd-{}")
#: Links of distributions to the kernel that is to be booted.
DEFAULTS = ("vmlinuz", "boot/vmlinuz", "boot/Image")


@dataclass(frozen=True)
class Machine:
    """What is to boot an imported image.

    :param arch: its architecture, instead of the one that the image says.
    :param kernel_of: name of the image in the store whose kernel, initrd and command line it gets.
    """

    arch: str | None = None
    kernel_of: str | None = None


ANY = Machine()


def complete(
    folder: str,
    source: str,
    room: int,
    deadline: Deadline,
    arch: str | None = None,
    kernel_of: StoredImage | None = None,
) -> None:
    """Make a folder with an archive's or folder's content an image of the usual form.

    :param source: the image's name in errors.
    :param room: bytes that all of it may have.
    :param arch: the architecture that is asked for.
    :param kernel_of: the image whose kernel, initrd and command line it gets.
    :raises BadInput: it holds nothing that becomes a root, is for another architecture, or says none.
    """
    asked = arch or (kernel_of.arch if kernel_of else None)
    if kernel_of and not container_images.same_arch(kernel_of.arch, asked or ""):
        raise BadInput(f"image {kernel_of.name} is for {kernel_of.arch}, not for {asked}", source, "give another one")
    if not os.path.lexists(os.path.join(folder, ROOT)):
        room -= _taken(folder)
        if os.path.isfile(os.path.join(folder, DISK)):
            disk_image.write_root(folder, source, room, deadline)
            _describe(folder, source, asked, None)
        elif container_images.is_container(folder):
            found = container_images.container_of(folder, source, asked)
            if asked and not container_images.same_arch(asked, found.arch):
                raise BadInput(f"is for {found.arch}, not for {asked}", source, "take one of that architecture")
            container_images.write_root(found, folder, source, room, deadline)
            for name in set(os.listdir(folder)) - {ROOT}:
                remove_tree(os.path.join(folder, name), deadline)
            _describe(folder, source, asked, found.arch)
    if kernel_of:
        _take_kernel(folder, source, kernel_of)


def _taken(folder: str) -> int:
    """Return the bytes that the files in a folder take on the disk."""
    found = (os.lstat(os.path.join(path, name)) for path, _folders, files in os.walk(folder) for name in files)
    return sum(status.st_blocks * 512 for status in found)


def _describe(folder: str, source: str, arch: str | None, said: str | None) -> None:
    """Write image.json where there is none, and take kernel and initrd from the root's /boot where there are none."""
    if not os.path.lexists(os.path.join(folder, ABOUT)):
        if not (arch or said):
            raise BadInput("does not say for which architecture it is", source, "give arch, such as arch=x86_64")
        _write(folder, {"arch": arch or said})
    boot = os.path.join(folder, ROOT, "boot")
    own = ("kernel", OF_BOARDS)
    if any(os.path.lexists(os.path.join(folder, name)) for name in own) or not _is(boot, stat.S_ISDIR):
        return
    if about_of(folder, source).get("kernels"):
        return
    kernels = {
        name: found.group("version")
        for name in sorted(os.listdir(boot))
        for found in [KERNEL.fullmatch(name)]
        if found and "rescue" not in name and _is(os.path.join(boot, name), stat.S_ISREG)
    }
    links = (_link_of(os.path.join(folder, ROOT, link)) for link in DEFAULTS)
    usual = {name for name in links if name and name in kernels}
    chosen: list[str] = sorted(usual or kernels)
    if len(chosen) > 1:
        what = f"has more than one kernel in /boot ({', '.join(map(shown, chosen))}), and no link says which"
        raise BadInput(what, source, f"leave one there; or {GIVE_KERNEL}")
    for name in chosen:
        shutil.copyfile(os.path.join(boot, name), os.path.join(folder, "kernel"))
        initrds = [pattern.format(kernels[name]) for pattern in INITRDS]
        initrd = next((one for one in initrds if _is(os.path.join(boot, one), stat.S_ISREG)), None)
        if initrd:
            shutil.copyfile(os.path.join(boot, initrd), os.path.join(folder, "initrd"))


def _link_of(path: str) -> str | None:
    """Return the name that a link ends with, without following it."""
    return os.path.basename(os.readlink(path)) if os.path.islink(path) else None


def _take_kernel(folder: str, source: str, giver: StoredImage) -> None:
    """Give an image all of another one but its root: kernel, initrd, and how they are started."""
    if giver.ram or not giver.kernels:
        what = "is a RAM image" if giver.ram else "has no kernel"
        raise BadInput(f"image {giver.name} {what}, so it cannot boot another root", source, "give another one")
    own = {key: value for key, value in about_of(folder, source).items() if key not in (*KEYS, "cmdline")}
    for name in ("kernel", "initrd", OF_BOARDS):
        remove_tree(os.path.join(folder, name))
    for name in os.listdir(giver.folder):
        path, new = os.path.join(giver.folder, name), os.path.join(folder, name)
        if name in NOT_BOOT:
            continue
        remove_tree(new)
        (shutil.copytree if os.path.isdir(path) else shutil.copyfile)(path, new)
    _write(folder, {**own, **about_of(giver.folder, giver.folder), "arch": giver.arch})


def _write(folder: str, about: dict[str, Any]) -> None:
    path = os.path.join(folder, ABOUT)
    remove_tree(path)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(about, file, indent=2)


def _is(path: str, kind: Any) -> bool:
    """Return whether a path is of a kind, and no link."""
    return os.path.lexists(path) and kind(os.lstat(path).st_mode)
