# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a proxy node says of itself: who listens on a port, what its kernel lets NFS servers do.

Facts only; preflight.py says whether they are right for a proxy node.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import ipaddress
import os
import shutil
from typing import Mapping

from ...core.command import command
from ...core.machine import text_of
from ...core.printable import one_line
from ...devices.gpus import processes

#: The port of NFS, and who holds it where no program does.
NFS = 2049
KERNEL_SERVER = "the kernel's NFS server (nfs-kernel-server)"
#: Where Debian's packages, and who builds a program by hand, put programs; only root writes there.
INSTALLED = ("/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin")
#: Most characters of a process's name (TASK_COMM_LEN, 16 with the last zero).
COMM = 15


def listeners(protocol: str, port: int, address: str) -> dict[str, int]:
    """Return the sockets that listen on `port` of `address` or of all addresses: inode → whose it is (uid)."""
    found = {}
    for family in ("", "6"):
        for line in text_of(f"/proc/net/{protocol}{family}").splitlines()[1:]:
            columns = line.split()
            local, at = columns[1].rsplit(":", 1)
            listens = columns[3] == ("0A" if protocol == "tcp" else "07")
            if listens and int(at, 16) == port and (not int(local, 16) or _hex_address(local) == address):
                found[columns[9]] = int(columns[7])
    return found


def port_holders(protocol: str, port: int, address: str) -> set[str]:
    """Return names of the programs that listen on `port` of `address` or of all addresses.

    A process calls itself what it likes (PR_SET_NAME), and a set-uid program has the name of the link by which it was
    started. So a name stands alone only where root opened the port by an installed program of that name; else it is
    said whose the process is, and of which file.

    :raises TimedOut: a process keeps who asks about it waiting; the error names it.
    """
    found = listeners(protocol, port, address)
    sockets = {f"socket:[{inode}]": uid for inode, uid in found.items()}
    named = processes.look(lambda begin: _names(sockets, begin)) if sockets else []
    names, seen = {name for name, _held in named}, {held for _name, held in named}
    for held, uid in sockets.items():
        if held not in seen:  # the kernel's, another container's, or an account's, on its way between processes
            names.add(KERNEL_SERVER if port == NFS and not uid else _whose("a program outside this container", uid))
    return names


def _names(sockets: Mapping[str, int], begin: processes.Next) -> list[tuple[str, str]]:
    """Return [(what is said of a process, a socket that it holds)]."""
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        begin(int(process))
        for held in _open_files(process) & sockets.keys():
            with contextlib.suppress(OSError):
                found.append((_name(process, sockets[held]), held))
    return found


def _name(process: str, uid: int) -> str:
    """Return what is said of a process that holds a socket which the account `uid` opened.

    :raises OSError: the process ended.
    """
    name = one_line(text_of(f"/proc/{process}/comm").strip())
    # a program whose package was replaced since it began
    program = os.readlink(f"/proc/{process}/exe").partition(" (deleted)")[0]
    folder, file = os.path.split(program)
    if file[:COMM] != name or folder not in INSTALLED:
        name = f"{name} ({one_line(program)})"
    return _whose(name, uid)


def _whose(name: str, uid: int) -> str:
    return f"{name} of uid {uid}" if uid else name


def _open_files(process: str) -> set[str]:
    """Return what a process has open, as the kernel writes it; nothing of one that ended, or is kept from root too."""
    found = set()
    try:
        for entry in os.scandir(f"/proc/{process}/fd"):
            # a path too long to be told, say: it hides nothing else that the process has
            with contextlib.suppress(OSError):
                found.add(os.readlink(entry.path))
    except OSError:
        pass  # another container's, process 1 of some
    return found


def may_open_by_handle() -> bool:
    """Return whether the kernel lets us call open_by_handle_at.

    A handle of zeros is stale; EPERM says that the call never got so far.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    handle = (ctypes.c_uint8 * 16)()
    handle[0], handle[4] = 8, 1  # struct file_handle: 8 bytes, of type 1 (inode, generation)
    root = os.open("/", os.O_RDONLY)
    try:
        opened = libc.open_by_handle_at(root, ctypes.byref(handle), os.O_RDONLY)
        if opened < 0:
            return ctypes.get_errno() != errno.EPERM
        os.close(opened)
        return True
    finally:
        os.close(root)


def has_nfsd() -> bool:
    """Return whether the kernel's NFS server is there, loaded or to be loaded; in a container it is another's.

    A machine without systemd is refused for that (core/findings.py), and none of its containers is known here.
    """
    virt = "systemd-detect-virt"
    if shutil.which(virt) and command([virt, "--container"], ok=(0, 1)).strip() not in ("none", ""):
        return False
    modules = text_of(f"/lib/modules/{os.uname().release}/modules.dep")
    return "/nfsd/nfsd.ko" in modules or "\tnfsd\n" in text_of("/proc/filesystems")


def _hex_address(local: str) -> str:
    """Return an IPv4 address as /proc/net writes it: little-endian hex, in IPv6's table as a mapped address."""
    return str(ipaddress.IPv4Address(bytes.fromhex(local[-8:])[::-1]))
