# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fault of the program that LXC's hooks run. LXC reads ten pieces of what a hook says, and not the rest.

Tests nodes/compute_host/gpu_start.py.
"""

from __future__ import annotations

import socket
import subprocess
import sys

from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.compute_host import gpu_start

PROGRAM = f"""
from {gpu_start.__name__} import hooks, main

def started(arguments, environ):
    try:
        return environ["no such word"]
    except KeyError as error:
        raise ValueError("the last word") from error

hooks.started = started
main([])
"""


def test_the_last_word_of_a_fault_is_in_the_first_piece():
    """Lost: why a container does not start: its operator saw where the fault was found, and not which."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # which keeps the pieces apart
    with ours, its:
        done = subprocess.run([sys.executable, "-c", PROGRAM], stderr=its, check=False, timeout=600)
        assert ours.recv(65536).endswith(b"ValueError: the last word\n")
    assert done.returncode == 1
