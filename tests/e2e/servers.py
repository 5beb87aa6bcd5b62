# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards of the lab as servers with a BMC: sushy-tools' emulator and OpenIPMI's ipmi_sim start and stop their machines.

A server has the firmware of a PC (SeaBIOS, and the iPXE of its network card) and a disk that boots, which says so and
no more: it boots from the network only where its BMC was told to have it.
"""

from __future__ import annotations

import os
import pty
import socket
import subprocess
import threading
import tty
from contextlib import suppress

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline

#: What its console says last that has booted from its disk.
FROM_DISK = "booted from its own disk"
#: `machine on`, `off` or `state`; `machine next n|c` says what the next start begins with, network or disk, once.
PROGRAM = """\
#!/bin/sh
cd '{folder}' || exit 1
runs() {{ [ -s pid ] && grep -qs '^State:.[^ZX]' "/proc/$(cat pid)/status"; }}
case "$1" in
next) echo "$2" >next ;;
on) runs && exit 0
    first=$(cat next); echo '{standing}' >next
    setsid {qemu} -boot "order=$first" >>said 2>&1 </dev/null & echo $! >pid ;;
off) if runs; then kill -9 "$(cat pid)"; fi; : >pid ;;
state) if runs; then echo on; else echo off; fi ;;
esac
"""
#: A boot sector that prints with the BIOS (int 10h, ah 0Eh) what stands behind it up to a zero, and halts:
#: xor ax,ax; mov ds,ax; mov si,7C19h; lodsb; or al,al; jz sti; mov ah,0Eh; mov bx,7; int 10h; jmp lodsb; sti; hlt; jmp.
CODE = bytes.fromhex("31c08ed8be197cac08c07409b40ebb0700cd10ebf2fbf4ebfd")
SECTOR = 512


class Server:
    """The machine of one board; `program` starts and stops it, in the lab's network, from which it is to be called.

    :param standing: what it boots from where nobody says anything: n for the network, c for its disk.
    """

    def __init__(self, lab, folder, number, standing):
        (board,) = [one for one in lab.description["boards"] if one["id"] == number]
        self.folder, self.program, self.line = folder, folder / "machine", folder / "line"
        (folder / "disk").write_bytes((CODE + FROM_DISK.encode() + b"\r\n\0").ljust(SECTOR - 2, b"\0") + b"\x55\xaa")
        os.truncate(folder / "disk", 1 << 20)
        (folder / "next").write_text(f"{standing}\n")
        # with graphics=off SeaBIOS, and iPXE by it, speak to the serial line
        words = "qemu-system-x86_64 -machine pc,graphics=off -accel tcg -cpu qemu64,+rdrand -m 256 -nodefaults"
        words += " -no-user-config -display none -drive file=disk,format=raw,if=ide"
        words += f" -netdev tap,id=n0,ifname={board['tap']},script=no,downscript=no"
        words += f" -device virtio-net-pci,netdev=n0,mac={board['mac']}"
        words += f" -chardev socket,id=line,path={self.line},logfile=log,logappend=on -serial chardev:line"
        self.program.write_text(PROGRAM.format(folder=folder, qemu=words, standing=standing))
        self.program.chmod(0o755)

    @property
    def said(self):
        """What its console has said since it was made."""
        log = self.folder / "log"
        return log.read_bytes().decode("ascii", "replace") if log.exists() else ""

    @property
    def pid(self):
        """The process that it is; None where it is off."""
        if subprocess.run([self.program, "state"], check=True, capture_output=True).stdout != b"on\n":
            return None
        return int((self.folder / "pid").read_text())

    def stop(self):
        subprocess.run([self.program, "off"], check=True)

    def says(self, text, seconds=300):
        """Until its console has said this."""
        end = Deadline(seconds)
        while text not in self.said:
            assert not end.passed, self.said
            end.nap(0.2)


class Line:
    """The serial line of a server, which is there whether it has power or not: a terminal, of which a BMC takes hold.

    As on a real line, what nobody listens to is lost.
    """

    def __init__(self, server):
        self._bmc, self._held = pty.openpty()
        tty.setraw(self._held)
        os.set_blocking(self._bmc, False)
        self.device = os.ttyname(self._held)
        self._place = socket.socket(socket.AF_UNIX)
        self._place.bind(str(server.line))
        self._place.listen()
        self._machine, self._ends = None, False
        self._ways = [threading.Thread(target=way, daemon=True) for way in (self._spoken, self._typed)]
        for way in self._ways:
            way.start()

    def _spoken(self):
        """From each start of the machine until its end."""
        while not self._ends:
            with suppress(OSError):
                self._machine, _peer = self._place.accept()
                for data in iter(lambda: self._machine.recv(4096), b""):
                    with suppress(BlockingIOError):
                        os.write(self._bmc, data)

    def _typed(self):
        end = Deadline(24 * 3600)
        while not self._ends and not end.passed:
            try:
                data = os.read(self._bmc, 4096)
            except BlockingIOError:
                end.nap(0.05)
                continue
            except OSError:
                return
            with suppress(OSError, AttributeError):
                self._machine.sendall(data)

    def close(self):
        self._ends = True
        with suppress(OSError):
            self._place.shutdown(socket.SHUT_RDWR)
        self._place.close()
        for way in self._ways:
            way.join(20)
        os.close(self._bmc)
        os.close(self._held)
