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

#: The protocol says nothing of events before this.
BEGIN = b'{"execute": "qmp_capabilities"}\n'


class Resets:
    """A QEMU's monitor, for one run of it; of another command nothing is asked.

    :param argv: the command without it; `argv` and `descriptors` are then what is to be started.
    """

    def __init__(self, argv):
        self.argv, self.descriptors = list(argv), ()
        self._ours = self._its = None
        if os.path.basename(argv[0]).startswith("qemu-system-"):
            self._ours, self._its = socket.socketpair()
            number = self._its.fileno()
            self.descriptors = (number,)
            self.argv += ["-no-reboot", "-chardev", f"socket,id=resets,fd={number}"]
            self.argv += ["-mon", "chardev=resets,mode=control"]

    def listen(self):
        """Ask the machine, which has been started, to tell of its end."""
        if self._ours:
            self._its.close()
            self._ours.sendall(BEGIN)

    def seen(self):
        """Return whether the machine, which has ended, was to reset itself."""
        said = b""
        while self._ours:
            try:
                data = self._ours.recv(65536)
            except ConnectionResetError:
                data = b""
            if not data:
                break
            said += data
        return any(_is_reset(line) for line in said.splitlines())

    def close(self):
        for end in filter(None, (self._ours, self._its)):
            end.close()


def _is_reset(line):
    try:
        event = json.loads(line)
    except ValueError:
        return False
    return event.get("event") == "SHUTDOWN" and event["data"].get("reason") == "guest-reset"
