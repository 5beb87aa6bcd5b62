# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a QEMU machine that ended did so because it was to reset itself.

In a process that goes on after a reset, QEMU's emulation still has the code of the system before. Each page of memory
with such code is written to some hundred times more slowly, so that the boot after a reset takes minutes of a processor
where that from power on takes seconds. So QEMU is told to end at a reset (-no-reboot), and says so by its monitor
(event SHUTDOWN of the QEMU Machine Protocol); a new process goes on.
"""

from __future__ import annotations

import json
import os
import socket
from contextlib import suppress

#: The protocol says nothing of events before this.
BEGIN = b'{"execute": "qmp_capabilities"}\n'


class Resets:
    """A QEMU's monitor, for one run of it; of another command nothing is asked.

    :param argv: the command without it; `argv` and `descriptors` are then what is to be started.
    """

    def __init__(self, argv):
        self.argv, self.descriptors = list(argv), ()
        self._loop = None
        self._ours = self._its = None
        self._said, self._is_reset = b"", False
        if os.path.basename(argv[0]).startswith("qemu-system-"):
            self._ours, self._its = socket.socketpair()
            number = self._its.fileno()
            self.descriptors = (number,)
            self.argv += ["-no-reboot", "-chardev", f"socket,id=resets,fd={number}"]
            self.argv += ["-mon", "chardev=resets,mode=control"]

    def listen(self, loop):
        """Ask the machine, which has been started, to tell of its end, and read what it tells."""
        self._loop = loop
        if self._ours:
            self._its.close()
            self._ours.setblocking(False)
            with suppress(OSError):  # it has ended already
                self._ours.sendall(BEGIN)
            loop.add_reader(self._ours.fileno(), self._read)

    def seen(self):
        """Return whether the machine, which has ended, was to reset itself."""
        self._read()
        return self._is_reset

    def close(self):
        if self._ours:
            if self._loop:
                self._loop.remove_reader(self._ours.fileno())
            self._ours.close()
            self._its.close()
            self._ours = None

    def _read(self):
        """Read what there is: events of days would fill the socket, so that the last one would be lost."""
        while self._ours:
            try:
                data = self._ours.recv(65536)
            except BlockingIOError:
                return
            except ConnectionResetError:
                data = b""
            if not data:
                self._loop.remove_reader(self._ours.fileno())
                return
            *lines, self._said = (self._said + data).split(b"\n")
            self._is_reset = self._is_reset or any(map(_is_reset, lines))


def _is_reset(line):
    try:
        event = json.loads(line)
    except ValueError:
        return False
    return event.get("event") == "SHUTDOWN" and event["data"].get("reason") == "guest-reset"
