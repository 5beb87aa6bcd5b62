# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A process asks a program that has imported much to fork: the new process does what it would have begun with that.

What is asked for goes through a file without a name, whose size no socket bounds; with it go the standard input,
output and error that the new process has. The servers run as the programs that they stand for: nothing is imported
here but Python's own.
"""

from __future__ import annotations

import json
import os
import socket


def ask(channel, request, files):
    """:param files: descriptors of a standard input, output and error."""
    with open(os.memfd_create("request"), "r+b") as paper:
        paper.write(json.dumps(request).encode())
        paper.flush()
        socket.send_fds(channel, [b"?"], [paper.fileno(), *files])


def asked(channel):
    """Descriptors of what is asked for and of the three standard files; none once nobody asks any more."""
    _mark, files, _flags, _from = socket.recv_fds(channel, 1, 4)
    return files


def take(files):
    """What is asked for; the standard files are this process's own from now on."""
    paper, *standard = files
    for number, file in enumerate(standard):
        os.dup2(file, number)
        os.close(file)
    with open(paper, "rb") as written:
        written.seek(0)
        request = json.load(written)
    os.environ.clear()
    os.environ.update(request["env"])
    return request


def drop(files):
    for file in files:
        os.close(file)
