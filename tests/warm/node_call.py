# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`node_call.py ADDRESS ROOT`: has node_server.py call a module of a played node, with this program's standard files.

It ends as the call does.
"""

from __future__ import annotations

import os
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from forking import ask, drop


def main(address, root):
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    channel.connect(address)
    standard = [0, 1, 2]
    ask(channel, dict(root=root, umask=os.umask(0), env=dict(os.environ)), standard)
    drop(standard)  # who reads of the call sees its end
    return int(channel.recv(100) or 1)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
