# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Private roots: a board's own view of an image, an overlay over the store, or a copy where no overlay can be exported.

Knows what makes a root one tenant's: whom it was made for, the host name, keys and host key in it. Who may mount it is
for the exports.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from dataclasses import asdict, dataclass

from ..command import command
from ..deadline import Deadline
from ..errors import BadInput, HeteroError
from ..whole_file import write_whole
from . import personal
from .inside import remove_file
from .mounts import mount_overlay, mounts_below, unmount

#: Seconds for copying a root where an overlay is not possible (210 MB took 3.3 s).
COPY_TIME = 900.0
#: The name of a private overlay in the table of mounts.
SOURCE = "fs_"
#: What mount(2) says where an overlay is not possible: no such options or not on this file system, no overlay at all.
CANNOT = (errno.EINVAL, errno.ENODEV, errno.EOPNOTSUPP)

#: The file in a root's folder that says whom it was made for.
MADE = "made.json"


@dataclass(frozen=True)
class Made:
    """Whom a root was made for and from what; `whole` only when all was put into it."""

    claim: str
    image: str
    kind: str
    whole: bool = False


class Root:
    """The private root of one board: <roots>/fs_N/{upper,work,root,made.json}.

    :param roots: the folder of all roots, which may be a file system of its own; nobody but root enters it.
    :param own_id: an overlay will do only where the kernel gives it a file system id of its own; else it is a copy.
    """

    def __init__(self, roots, number, own_id=False):
        if re.search(r"[,:\\\s]", roots):
            raise BadInput("may not hold a comma, colon, backslash or blank", roots, "choose another state_folder")
        self.name = f"{SOURCE}{number}"
        self.roots = roots
        self.own_id = own_id
        self.folder = os.path.join(roots, self.name)
        self.path = os.path.join(self.folder, "root")
        self.upper = os.path.join(self.folder, "upper")
        self.work = os.path.join(self.folder, "work")

    # ---- what is there

    def exists(self):
        return os.path.lexists(self.folder)

    def made(self):
        """Whom the root was made for; None where there is no root, or one that nobody can tell of."""
        try:
            with open(os.path.join(self.folder, MADE), encoding="utf-8") as file:
                return Made(**json.load(file))
        except (FileNotFoundError, NotADirectoryError, ValueError, TypeError):
            return None

    def mounts(self):
        """Mount points in the root's folder."""
        return mounts_below(self.folder)

    def ready(self, image):
        """Whether the files of a root made from `image` are there to be exported."""
        made = self.made()
        if made is None or made.image != image.hash:
            return False
        return made.kind == "copy" or self._overlaid(image)

    def _overlaid(self, image):
        found = self.mounts().get(self.path)
        return found is not None and found.lower == image.root

    def inspect(self, key):
        """What is in the root (personal.inspect)."""
        return personal.inspect(self.path, key)

    # ---- making and removing

    def create(self, image, claim):
        """Make the root anew from an image for a claim (a text that no other claim has); it is not whole yet."""
        os.makedirs(self.roots, mode=0o700, exist_ok=True)
        os.chmod(self.roots, 0o700)
        os.mkdir(self.folder, 0o700)
        self._write_made(Made(claim, image.hash, "overlay"))
        for folder in (self.upper, self.work, self.path):
            os.mkdir(folder, 0o755)
        # The root's own folder has the mode and owner of the image's.
        shutil.copystat(image.root, self.upper)
        status = os.stat(image.root)
        os.chown(self.upper, status.st_uid, status.st_gid)
        if not self._overlay(image):
            self._write_made(Made(claim, image.hash, "copy"))
            copy = ["cp", "-a", "--reflink=auto", f"{image.root}/.", f"{self.path}/"]
            command(copy, self.path, "check the space there", timeout=COPY_TIME)

    def mount(self, image):
        """Mount the overlay of a root that was made from this image."""
        if not self._overlay(image):
            what = "its overlay cannot be mounted for export any more"
            raise HeteroError(what, self.path, "terminate, and provision anew")

    def mark_whole(self):
        """All is in the root that belongs there; one that never came so far is made anew."""
        self._write_made(Made(**dict(asdict(self.made()), whole=True)))

    def unmount(self, deadline):
        """Unmount everything in the root's folder, the deepest first; a file server lets go of it in milliseconds."""
        while True:
            points = sorted(self.mounts(), key=len, reverse=True)
            if not points:
                return
            number = unmount(points[0])
            if number == errno.EBUSY and not deadline.passed:
                deadline.nap(0.02)
            elif number and points[0] in self.mounts():
                what = f"cannot be unmounted, tried for {deadline.spent:.1f} s ({os.strerror(number)})"
                raise HeteroError(what, points[0], f"find who uses it: fuser -vm {points[0]}")

    def remove(self):
        """Remove the root's folder, which nothing is mounted in any more."""
        points = self.mounts()
        if points:
            raise HeteroError("is still mounted", sorted(points)[0], "unmount it first")
        try:
            if os.path.islink(self.folder):
                os.unlink(self.folder)
            elif self.exists():
                # First, so that what a killed removal leaves is taken for a whole root by nobody.
                remove_file(os.path.join(self.folder, MADE))
                shutil.rmtree(self.folder)
        except OSError as error:
            what = f"cannot be removed ({error.strerror or error})"
            raise HeteroError(what, self.folder, "check the disk") from error

    def _overlay(self, image):
        """Mount the overlay so that it can be exported; False where this kernel or file system cannot."""
        layers = f"lowerdir={image.root},upperdir={self.upper},workdir={self.work}"
        # xino: one device number for all layers. With the store and the roots on two file systems, an NFS server
        # takes a file of the store for another file system's and refuses to cross (EXDEV; nfs-ganesha 4.3).
        number = mount_overlay(self.name, self.path, f"index=on,nfs_export=on,xino=on,{layers}")
        if number in CANNOT:
            return False
        if number:
            what = f"overlay cannot be mounted ({os.strerror(number)})"
            raise HeteroError(what, self.path, "the kernel's reason: dmesg")
        # A file system without file handles mounts, and quietly drops what an export needs.
        if self._overlaid(image) and "nfs_export=on" in self.mounts()[self.path].options:
            # Kernels before 6.6 show the id of the file system below (no option uuid=on): one id for all roots. Later
            # ones keep it in the upper folder, so that file handles outlive the mount.
            if not self.own_id or os.statvfs(self.path).f_fsid != os.statvfs(self.upper).f_fsid:
                return True
        self.unmount(Deadline(5.0))
        return False

    def _write_made(self, made):
        write_whole(os.path.join(self.folder, MADE), json.dumps(asdict(made)))

    # ---- what is put in

    def settle(self, hostname):
        """Make a fresh root a machine of its own."""
        personal.settle(self.path, hostname)

    def put_key(self, key):
        """Put the user's keys into root's authorized_keys beside what is there."""
        personal.put_key(self.path, key)

    def put_own_line(self, wanted):
        """Have this line of the proxy's own key in root's authorized_keys and no other of its; None for none at all."""
        personal.put_own_line(self.path, wanted)

    def put_host_key(self, comment):
        """Put a fresh host key into the root."""
        personal.put_host_key(self.path, comment, self.folder)
