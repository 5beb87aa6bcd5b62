# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`tile.py BASE FILE`: the lab's image of boards once more, as a Tilera board's: no ssh server of its own, but what
answers tile-monitor and closes its port, and no arguments for the kernel, which such a board's firmware does not pass.
Beside FILE lie its .kernel and .initrd, for boards that have them in flash.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import tarfile

ABOUT = "image.json"
INITTAB = "root/etc/inittab"
AGENT = "root/etc/tile-agent"
SSHD = "::respawn:/usr/sbin/sshd -D -e -r\n"
ANSWERS = "::respawn:/usr/sbin/busybox-init nc -ll -p 963 -e /etc/tile-agent\n"
IPTABLES = "root/usr/sbin/iptables"
IFCONFIG, BUSYBOX = "root/usr/sbin/ifconfig", "busybox-init"


def add(tar, like, name, data, mode):
    member = tarfile.TarInfo(name)
    member.mtime, member.mode, member.size = like.mtime, mode, len(data)
    tar.addfile(member, io.BytesIO(data))


def main(base, target):
    here, stem = os.path.dirname(os.path.abspath(__file__)), os.path.splitext(target)[0]
    partial = f"{target}.partial"
    with tarfile.open(base) as old, tarfile.open(partial, "w", format=tarfile.GNU_FORMAT) as new:
        for member in old:
            content = old.extractfile(member) if member.isreg() else None
            if member.name in ("kernel", "initrd"):
                with open(f"{stem}.{member.name}", "wb") as file:
                    shutil.copyfileobj(content, file)
                content.seek(0)
            if member.name == ABOUT:
                about = {key: value for key, value in json.load(content).items() if key != "cmdline"}
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
