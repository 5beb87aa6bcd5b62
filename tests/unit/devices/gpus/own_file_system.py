# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A program of an account that mounts a file system of its own (FUSE, in a user namespace), and opens a file of it.

HOW is "open"; "mapped"; "itself", a process of a container that waits for itself as it ends; "broken", where the file
is a folder from then on; "silent", where nothing is answered any more; "inside", so too, and it has that as its root;
"later", where the test has it so; or "refusing" with errors of its own. For those five an overlay lies over it, as
whose maker the kernel asks this program, for root too. "sending" sends the device and a text that is not answered, and
closes the device; "leaving" leaves for another program, and the file's close is not answered. It also opens a device
node, says "holding" and which process the server is, and goes on until that ends.
"""

from __future__ import annotations

import array
import ctypes
import mmap
import os
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress

ACCOUNT = 12345
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
#: Numbers of requests (linux/fuse.h).
LOOKUP, GETATTR, OPEN, READ, STATFS, INIT, OPENDIR = 1, 3, 14, 15, 17, 26, 27
#: Requests that want no answer: FORGET, INTERRUPT, BATCH_FORGET.
UNANSWERED = (2, 36, 42)
ENOSYS, ODD = 38, 511

#: What its folder has: the device of FUSE, the node that it opens, and where it mounts.
FUSE, NODE, POINT = "fuse", "innocent", "point"

libc = ctypes.CDLL(None, use_errno=True)
#: What the server was told by a signal: SIGUSR1 is "silent", SIGUSR2 "broken", SIGHUP "refusing".
told: list[int] = []


def attributes(node: int) -> bytes:
    """Return struct fuse_attr: the first node is a folder, the second a file of 4096 bytes."""
    mode = stat.S_IFDIR | 0o755 if node == 1 else stat.S_IFREG | 0o644
    return struct.pack("=6Q10I", node, 4096, 8, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer(number: int, node: int) -> bytes | None:
    """Return the answer to a request, or None. Nothing of it is kept by the kernel, which asks each time."""
    if number == INIT:
        return struct.pack("=4I2H2I2HI28x", 7, 31, 65536, 0, 16, 12, 65536, 1, 256, 0, 0)
    if number == LOOKUP:
        return struct.pack("=4Q2I", 2, 0, 0, 0, 0, 0) + attributes(2)
    if number == GETATTR:
        return struct.pack("=Q2I", 0, 0, 0) + attributes(1 if signal.SIGUSR2 in told else node)
    if number == STATFS:
        return struct.pack("=5Q4I24x", 9, 9, 9, 9, 9, 4096, 255, 4096, 0)
    return {OPEN: bytes(16), OPENDIR: bytes(16), READ: b"x" * 4096}.get(number)


def serve(device: int) -> None:
    while True:
        request = os.read(device, 1 << 17)
        _size, number, unique, node = struct.unpack_from("=IIQQ", request)
        if number in UNANSWERED or signal.SIGUSR1 in told:
            continue
        body = answer(number, node)
        error = 0 if body is not None else -ENOSYS
        if number == LOOKUP and signal.SIGHUP in told:
            body, error = None, -ODD
        os.write(device, struct.pack("=IiQ", 16 + len(body or b""), error, unique) + (body or b""))


def mount(kind: str, point: str, options: str) -> None:
    if libc.mount(kind.encode(), point.encode(), kind.encode(), 0, options.encode()):
        raise OSError(ctypes.get_errno(), f"mount {kind} at {point}")


@contextmanager
def holding(folder, number: tuple[int, int], how: str, init: int | None = None, cgroups=()):
    """Yield the program, which holds the character device of this number, with its server's pid as `server`; None where
    the kernel has no FUSE.

    :param init: of a container, whose root then does it all, and puts the overlay over its /dev.
    :param cgroups: folders of the container's, or of others that the program is to be in.
    """
    (folder / POINT).mkdir()
    os.chown(folder / POINT, ACCOUNT, ACCOUNT)
    folder.chmod(0o755)
    for name, (major, minor) in ((FUSE, (10, 229)), (NODE, number)):
        os.mknod(folder / name, stat.S_IFCHR, os.makedev(major, minor))
        (folder / name).chmod(0o666)
    argv = [sys.executable, __file__, str(folder), how, str(init or ""), *cgroups]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        word, server = process.stdout.readline().split()
        process.server = int(server)
        try:
            yield process if word == b"holding" else None
        finally:
            with suppress(ProcessLookupError):
                os.kill(int(server) or process.pid, signal.SIGKILL)
            process.kill()


def become_account() -> None:
    os.setgroups([])
    os.setresgid(ACCOUNT, ACCOUNT, ACCOUNT)
    os.setresuid(ACCOUNT, ACCOUNT, ACCOUNT)
    libc.prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: else its files in /proc are root's
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "unshare")
    for name, line in (("setgroups", "deny"), ("uid_map", f"0 {ACCOUNT} 1"), ("gid_map", f"0 {ACCOUNT} 1")):
        os.write(os.open(f"/proc/self/{name}", os.O_WRONLY), line.encode())


def become_root_of(init: int) -> None:
    spaces = [os.open(f"/proc/{init}/ns/{name}", os.O_RDONLY) for name in ("user", "mnt")]
    for space in spaces:
        if libc.setns(space, 0):
            raise OSError(ctypes.get_errno(), "setns")
    os.setgroups([])
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)


def join(cgroups: tuple[str, ...]) -> None:
    for cgroup in cgroups:
        os.write(os.open(f"{cgroup}/cgroup.procs", os.O_WRONLY), b"0")


def enter(init: int, cgroups: tuple[str, ...]) -> None:
    """Be in a container's cgroups, and as a child in its namespace of processes: from here on it ends with it."""
    join(cgroups)
    if libc.setns(os.open(f"/proc/{init}/ns/pid", os.O_RDONLY), 0):
        raise OSError(ctypes.get_errno(), "setns")
    if os.fork():
        os._exit(0)


def serve_itself(device: int) -> None:
    """Have open what it serves itself, before the device: so it waits for itself when it is killed."""
    device, lower = os.dup2(device, 200), device
    os.close(lower)
    threading.Thread(target=serve, args=(device,), daemon=True).start()
    os.open("/sys/file", os.O_RDONLY)
    print("holding 0", flush=True)
    signal.pause()


def send(file: int, text: mmap.mmap) -> None:
    """Have a thread send a file with a text that nobody reads from its disk, and close it here."""
    pair = socket.socketpair()
    message = [text], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file]))]
    # the other end stays open by the thread's arguments
    threading.Thread(target=lambda own, other: own.sendmsg(*message), args=pair, daemon=True).start()
    time.sleep(0.5)
    os.close(file)


def main(folder: str, how: str, init: str = "", *cgroups: str) -> None:
    here = os.open(folder, os.O_RDONLY)  # folders above it may be closed to the account
    os.chdir(here)
    if how == "itself":
        enter(int(init), cgroups)
    else:
        join(cgroups)
    become_root_of(int(init)) if init else become_account()
    try:
        device = os.open(FUSE, os.O_RDWR, dir_fd=here)
    except OSError:
        print("none 0", flush=True)
        return
    point, over = ("/sys", "/dev") if init else (POINT, "/mnt/all")
    mount("fuse", point, f"fd={device},rootmode=40000,user_id=0,group_id=0")
    if how == "itself":
        serve_itself(device)
    server = os.fork()
    if server == 0:
        libc.prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP):
            signal.signal(number, lambda number, _frame: told.append(number))
        with suppress(OSError):  # it was ended
            serve(device)
        os._exit(0)
    os.close(device)
    if how in ("silent", "inside", "broken", "later", "refusing"):
        own = "/etc" if init else "/mnt"
        mount("tmpfs", own, "")
        for name in ("upper", "work", "all"):
            os.mkdir(f"{own}/{name}")
        upper = f":{own}/upper" if how == "inside" else f",upperdir={own}/upper,workdir={own}/work"
        mount("overlay", over, f"lowerdir={point}{upper},userxattr")
        point = over
    file = os.open(f"{point}/file", os.O_RDONLY)
    if how == "mapped":
        libc.mmap.restype = ctypes.c_void_p
        assert libc.mmap(None, ctypes.c_size_t(4096), 1, 2, file, ctypes.c_long(0)) != ctypes.c_void_p(-1).value
        os.close(file)
    node = os.open(NODE, os.O_RDWR, dir_fd=here)
    text = mmap.mmap(file, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ) if how == "sending" else None
    if how == "inside":
        os.chroot(point)
    if how in ("silent", "inside", "sending", "leaving"):
        os.kill(server, signal.SIGUSR1)
    if how == "refusing":
        os.kill(server, signal.SIGHUP)
    if text is not None:
        send(node, text)
    if how == "broken":
        os.kill(server, signal.SIGUSR2)
        with suppress(OSError):
            os.fstat(file)
    print("holding", server, flush=True)
    if how == "leaving":
        os.execv("/bin/true", ["true"])
    os.waitpid(server, 0)  # before the file is closed, which waits for an answer


if __name__ == "__main__":
    main(*sys.argv[1:])
