# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Private roots: a board's own view of an image, an overlay over the store, or a copy where no overlay can be exported.

Knows what makes a root one tenant's: whom it was made for, the host name, keys and host key in it. Who may mount it is
for the exports.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import json
import os
import re
import shutil
from dataclasses import asdict, dataclass

from ..command import command
from ..deadline import Deadline
from ..errors import BadInput, HeteroError
from .inside import inside, make_folder, read_file, remove_file, write_file
from .mounts import mount_overlay, mounts_below, unmount

#: Seconds for anything done to a few files of a root.
FILES_TIME = 30.0
#: Seconds for copying a root where an overlay is not possible (210 MB took 3.3 s).
COPY_TIME = 900.0
#: A line of an OpenSSH public key without options.
KEY = re.compile(r"((?:ssh|ecdsa|sk)-[a-z0-9@.-]+) ([A-Za-z0-9+/]{16,}={0,2})(?: [^\n]*)?")
#: The name of a private overlay in the table of mounts.
SOURCE = "fs_"
#: What mount(2) says where an overlay is not possible: no such options or not on this file system, no overlay at all.
CANNOT = (errno.EINVAL, errno.ENODEV, errno.EOPNOTSUPP)

#: The file in a root's folder that says whom it was made for.
MADE = "made.json"

HOSTNAME = "/etc/hostname"
MACHINE_ID = "/etc/machine-id"
AUTHORIZED = "/root/.ssh/authorized_keys"
#: How a line of the proxy's own ends (reboot_key.py).
OWN = " hetero: reboot only"
HOST_KEY = "/etc/ssh/ssh_host_ed25519_key"


@dataclass(frozen=True)
class Made:
    """Whom a root was made for and from what; `whole` only when all was put into it."""

    claim: str
    image: str
    kind: str
    whole: bool = False


def parse_key(text):
    """[(type, base64)] of the user's public keys, one a line; BadInput, which never shows the text, for all else."""
    keys = []
    for line in text.strip().splitlines():
        match = KEY.fullmatch(line.strip())
        if not match or _blob(match.group(2)) is None:
            what = "is a private key" if "PRIVATE KEY" in text else "is no OpenSSH public key"
            raise BadInput(what, "ssh_public_key", "give the content of the .pub file")
        keys.append(match.groups())
    if not keys:
        raise BadInput("is empty", "ssh_public_key", "give the content of the .pub file")
    return keys


def _blob(text):
    """The bytes of a key; None where the text is cut off in a way that base64 is not."""
    text = text.rstrip("=")
    return base64.b64decode(text + "=" * (-len(text) % 4)) if len(text) % 4 != 1 else None


def fingerprint(key):
    """SHA256:… of a public key line, as ssh-keygen -l prints it."""
    digest = hashlib.sha256(_blob(key.split()[1])).digest()
    return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


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
        """What is in the root.

        :returns: key: whether all of the user's are in; own: the lines of the proxy's own key; host_key: the public one
            or None; hostname.
        """
        wanted = {blob for kind, blob in parse_key(key)}

        def look():
            words, own = set(), []
            for line in (read_file(AUTHORIZED) or "").splitlines():
                words.update([] if line.lstrip().startswith("#") else line.split())
                own += [line] if line.endswith(OWN) else []
            public = (read_file(f"{HOST_KEY}.pub") or "").strip()
            whole = KEY.fullmatch(public) and read_file(HOST_KEY)
            return {
                "key": wanted <= words,
                "own": own,
                "host_key": " ".join(public.split()[:2]) if whole else None,
                "hostname": (read_file(HOSTNAME) or "").strip()[:256].encode("ascii", "replace").decode(),
            }

        return inside(self.path, look, Deadline(FILES_TIME))

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
        path = os.path.join(self.folder, MADE)
        with open(f"{path}~", "w", encoding="utf-8") as file:
            json.dump(asdict(made), file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(f"{path}~", path)

    # ---- what is put in

    def settle(self, hostname):
        """Make a fresh root a machine of its own: its host name, no machine id and no host keys of the image."""

        def write():
            make_folder("/etc", 0o755)
            write_file(HOSTNAME, f"{hostname}\n", 0o644)
            # Empty, not missing: systemd then makes a new one (machine-id(5)).
            write_file(MACHINE_ID, "", 0o444)
            for name in os.listdir("/etc/ssh") if os.path.isdir("/etc/ssh") else []:
                if re.fullmatch(r"ssh_host_.*_key(\.pub)?", name):
                    remove_file(f"/etc/ssh/{name}")

        inside(self.path, write, Deadline(FILES_TIME))

    def put_key(self, key):
        """Put the user's keys into root's authorized_keys beside what is there."""
        lines = [line.strip() for line in key.strip().splitlines()]

        def write():
            make_folder("/root", 0o700)
            make_folder("/root/.ssh", 0o700, exact=True)
            others = (read_file(AUTHORIZED) or "").splitlines()
            missing = [line for line in lines if not any(line.split()[1] in other.split() for other in others)]
            write_file(AUTHORIZED, "".join(f"{line}\n" for line in [*others, *missing]), 0o600)

        inside(self.path, write, Deadline(FILES_TIME))

    def put_own_line(self, wanted):
        """Have this line of the proxy's own key in root's authorized_keys and no other of its; None for none at all."""

        def write():
            make_folder("/root", 0o700)
            make_folder("/root/.ssh", 0o700, exact=True)
            others = [line for line in (read_file(AUTHORIZED) or "").splitlines() if not line.endswith(OWN)]
            write_file(AUTHORIZED, "".join(f"{line}\n" for line in [*others, *([wanted] if wanted else [])]), 0o600)

        inside(self.path, write, Deadline(FILES_TIME))

    def put_host_key(self, comment):
        """Put a fresh host key into the root. The private half is made in a folder that only root reads."""
        folder = os.path.join(self.folder, "host-key")
        if os.path.lexists(folder):
            shutil.rmtree(folder)  # of one that was killed here
        os.mkdir(folder, 0o700)
        try:
            path = os.path.join(folder, "key")
            command(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", path], self.path)
            with open(path, encoding="ascii") as file, open(f"{path}.pub", encoding="ascii") as public_file:
                private, public = file.read(), public_file.read()
        finally:
            shutil.rmtree(folder)

        def write():
            make_folder("/etc", 0o755)
            make_folder("/etc/ssh", 0o755)
            write_file(HOST_KEY, private, 0o600)
            write_file(f"{HOST_KEY}.pub", public, 0o644)

        inside(self.path, write, Deadline(FILES_TIME))
