# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`tile.py BASE FILE [BOARD…]`: the lab's image of boards once more, as a Tilera board's: no ssh server of its own, but
what answers tile-monitor and closes its port, and no arguments for the kernel, which such a board's firmware does not
pass. Beside FILE lie its .kernel and .initrd, for boards that have them in flash.

The root is NFS, which the initrd knows by itself. For each BOARD there is also a kernel for a root on its disk, and an
initrd that goes with it.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile

ABOUT = "image.json"
INITTAB = "root/etc/inittab"
AGENT = "root/etc/tile-agent"
SSHD = "::respawn:/usr/sbin/sshd -D -e -r\n"
ANSWERS = "::respawn:/usr/sbin/busybox-init nc -ll -p 963 -e /etc/tile-agent\n"
IPTABLES = "root/usr/sbin/iptables"
IFCONFIG, BUSYBOX = "root/usr/sbin/ifconfig", "busybox-init"
ON_NFS, ON_DISK = "root=/dev/nfs", "root=/dev/sda1"
#: The word that OpenStack's blueprint has in the kernel for a board's disk, vmlinux_N_2. Behind this kernel it changes
#: nothing, and shows which kernel a file is.
TLR_ROOT = b"TLR_ROOT=/dev/sda1\n"
DISK_INITRD = "initrd_2"


def add(tar, like, name, data, mode):
    member = tarfile.TarInfo(name)
    member.mtime, member.mode, member.size = like.mtime, mode, len(data)
    tar.addfile(member, io.BytesIO(data))


def knows(initrd, words):
    """An initrd with words of its own for initrd-init, in an archive before it."""
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(f"{folder}/etc")
        with open(f"{folder}/etc/cmdline", "w", encoding="ascii") as file:
            file.write(f"{words}\n")
        pack = ["cpio", "-o", "-H", "newc", "--quiet", "-R", "0:0"]
        names = b"etc\netc/cmdline\n"
        return subprocess.run(pack, cwd=folder, input=names, stdout=subprocess.PIPE, check=True).stdout + initrd


def main(base, target, *boards):
    here, stem = os.path.dirname(os.path.abspath(__file__)), os.path.splitext(target)[0]
    partial = f"{target}.partial"
    with tarfile.open(base) as old, tarfile.open(partial, "w", format=tarfile.GNU_FORMAT) as new:
        for member in old:
            content = old.extractfile(member) if member.isreg() else None
            if member.name in ("kernel", "initrd"):
                data = content.read()
                own = knows(data, ON_NFS) if member.name == "initrd" else data
                with open(f"{stem}.{member.name}", "wb") as file:
                    file.write(own)
                add(new, member, member.name, own, member.mode)
                if member.name == "initrd" and boards:
                    add(new, member, DISK_INITRD, knows(data, ON_DISK), member.mode)
                for board in boards if member.name == "kernel" else ():
                    add(new, member, f"kernel.d/{board}.disk", data + TLR_ROOT, member.mode)
                continue
            if member.name == ABOUT:
                about = {key: value for key, value in json.load(content).items() if key != "cmdline"}
                about.update({"initrds": {"disk": DISK_INITRD}} if boards else {})
                add(new, member, ABOUT, json.dumps(about).encode(), 0o644)
                continue
            if member.name != INITTAB:
                new.addfile(member, content)
                continue
            text = content.read().decode()
            if SSHD not in text:
                raise SystemExit(f"{INITTAB} does not start sshd as this script knows it: {text}")
            add(new, member, INITTAB, text.replace(SSHD, ANSWERS).encode(), 0o644)
            for script, name in (("tile-agent", AGENT), ("tile-iptables", IPTABLES)):
                with open(os.path.join(here, script), "rb") as file:
                    add(new, member, name, file.read(), 0o755)
            link = tarfile.TarInfo(IFCONFIG)
            link.type, link.linkname, link.mode, link.mtime = tarfile.SYMTYPE, BUSYBOX, 0o777, member.mtime
            new.addfile(link)
    os.replace(partial, target)


if __name__ == "__main__":
    main(*sys.argv[1:])
