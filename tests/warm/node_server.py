# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`node_server.py CHANNEL LISTENER ROOT COPY CALL`: becomes COPY/CALL on a played node, for each node_call.py.

It has imported what the modules import of Python and of the copy of the collection. That lies in ROOT as on a node, so
it knows itself by the path there. The module itself is read on the node.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import pkgutil
import runpy
import select
import signal
import socket
import sys


def import_first(root, copy):
    """Import what all modules import: what lies beside the copy before the root changes, for there is none of it."""
    with open(f"{root}.names", encoding="utf-8") as names:
        for name in names.read().split():
            with contextlib.suppress(ImportError):  # some are no files, but were made by their package
                importlib.import_module(name)
    outside = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    os.chroot(root)
    sys.path.insert(0, copy)
    for found in pkgutil.iter_modules([f"{copy}/hetero/modules"]):
        importlib.import_module(f"hetero.modules.{found.name}")
    sys.path.remove(copy)
    os.fchdir(outside)
    os.chroot(".")
    os.close(outside)


def serve(channel, listener):
    """Return what is asked for, in the process that does it; None here, once its end of the channel is closed."""
    while True:
        ready, _writing, _failing = select.select([channel, listener], [], [])
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if channel in ready:
            return None
        client, _address = listener.accept()
        if os.fork() == 0:
            channel.close()
            listener.close()
            return answered(client)
        client.close()


def answered(client):
    """Return what the client asks for, in a further process; this one tells him how that ended, and ends."""
    files = asked(client)
    pid = os.fork()
    if pid == 0:
        client.close()
        return take(files)
    drop(files)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with contextlib.suppress(OSError):  # he may be gone
        client.send(str(code if code >= 0 else 128 - code).encode())
    os._exit(0)


def main(channel, listener, root, copy, call):
    import_first(root, copy)
    gc.collect()
    gc.freeze()
    request = serve(channel, listener)
    if request is not None:
        os.setsid()
        os.umask(request["umask"])
        os.chroot(request["root"])
        os.chdir("/")
        sys.argv = [f"{copy}/{call}"]
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
    from forking import asked, drop, take

    del sys.path[0]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sockets = [socket.socket(fileno=int(number)) for number in sys.argv[1:3]]
    main(*sockets, *sys.argv[3:])
