# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A connection into the root of a proxy that is only a folder (proxies.py): Ansible's local one, with chroot before.

Beside the root, a file `down` says that the node cannot be reached, a file `answers` how many calls of modules it
answers before it cannot be, files `says-MODULE` what it says in place of that module, and a pipe `silent` that it does
not answer while a job is followed, as one whose power is gone; with a file `silent_once` it does again by a new
connection. A file `breaks` says how many looks at a job break their connection. A file `together` beside all roots
names nodes, each of which says nothing before the others are asked as well.
PROXY_LATENCY is the time that each command takes on its way (seconds). PROXY_COMMANDS is a file that gets a line for
each.
"""

from __future__ import annotations

import glob
import os
import shlex
import time

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.connection.local import Connection as Local

from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.call import BEGUN
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.tools import CALL
from ansible_collections.hetero.compute.plugins.plugin_utils.short_calls import COPY, PYTHON

DOCUMENTATION = """
name: folder
short_description: Run in a folder as the root
description: Runs commands of a host in the folder of its name below PROXY_ROOTS.
author: hetero.compute contributors (@hetero-compute)
extends_documentation_fragment: connection_pipelining
"""

#: The command that calls a module of a node's copy.
SHORT = f"/bin/sh -c '{PYTHON} -I {COPY}/{CALL} && sleep 0'"
#: Has the test run's server answer that (tests/warm).
CLIENT = os.path.join(os.path.dirname(os.path.realpath(__file__)), *[".."] * 3, "warm", "node_call.py")
#: Where a node that was given another Python has something of its own.
OTHER_PYTHON = ("usr/bin", "usr/lib/python3*", "usr/local/lib")


class Connection(Local):
    """Local, but for its root."""

    transport = "folder"

    @property
    def _root(self):
        return os.path.join(os.environ["PROXY_ROOTS"], self._play_context.remote_addr, "root")

    def exec_command(self, cmd, in_data=None, sudoable=True):
        if os.path.exists(f"{os.path.dirname(self._root)}/down") or self._has_answered_enough(in_data):
            raise AnsibleConnectionFailure(f"Failed to connect to {self._play_context.remote_addr}: No route to host")
        if "PROXY_COMMANDS" in os.environ:
            with open(os.environ["PROXY_COMMANDS"], "a", encoding="utf-8") as file:
                file.write(f"{self._play_context.remote_addr}\n")
        self._wait_for_others()
        time.sleep(float(os.environ.get("PROXY_LATENCY", "0")))
        said = self._said(in_data or b"")
        if said is not None:
            return 0, said, b""
        if in_data and b"One look at a job" in in_data:
            self._be_silent_or_break()
        inside = f"chroot {shlex.quote(self._root)} /bin/sh -c {shlex.quote(cmd)}"
        if cmd == SHORT and self._is_served:
            words = [PYTHON, "-I", "-S", CLIENT, os.environ["HETERO_NODE_CALLS"], self._root]
            inside = f"exec {shlex.join(words)}"
        return super().exec_command(inside, in_data=in_data, sudoable=sudoable)

    @property
    def _is_served(self):
        """Whether the node has this machine's Python, and the copy that all nodes of the test run share."""
        if "HETERO_NODE_CALLS" not in os.environ:
            return False
        own = f"{os.path.dirname(self._root)}/upper"
        shared = f"{os.environ['HETERO_BUILDS']}/node{COPY}"
        if any(glob.glob(f"{own}/{name}") for name in OTHER_PYTHON) or not os.path.exists(f"{self._root}{COPY}"):
            return False
        return os.path.exists(shared) and os.path.samefile(shared, f"{self._root}{COPY}")

    def _be_silent_or_break(self):
        silent = f"{os.path.dirname(self._root)}/silent"
        if os.path.exists(silent):
            with open(silent, encoding="utf-8"):  # nobody writes to it
                raise AnsibleConnectionFailure("somebody wrote to it")
        if self._counted_down("breaks"):
            raise AnsibleConnectionFailure("Data could not be sent to remote host")

    def _said(self, call):
        """What the node is to say to this call of a module, if anything."""
        for path in glob.glob(f"{os.path.dirname(self._root)}/says-*"):
            if f'"module": "{path.rpartition("-")[2]}"'.encode() in call:
                with open(path, "rb") as file:
                    return f"{BEGUN}\n".encode() + file.read()
        return None

    def _has_answered_enough(self, call):
        return b'"module": "' in (call or b"") and self._counted_down("answers") == 0

    def _counted_down(self, name):
        """What the file of that name held, which is one less now; None without one."""
        path = f"{os.path.dirname(self._root)}/{name}"
        if not os.path.exists(path):
            return None
        with open(path, "r+", encoding="ascii") as file:
            left = int(file.read())
            file.seek(0)
            file.truncate()
            file.write(str(max(0, left - 1)))
        return left

    def _wait_for_others(self):
        """Once for a node; for 200 s at most."""
        folder, name = os.environ["PROXY_ROOTS"], self._play_context.remote_addr
        if not os.path.exists(f"{folder}/together"):
            return
        with open(f"{folder}/together", encoding="ascii") as file:
            names = file.read().split()
        if name not in names or os.path.exists(f"{folder}/{name}/asked"):
            return
        with open(f"{folder}/{name}/asked", "w", encoding="ascii"):
            pass
        until = time.monotonic() + 200
        while not all(os.path.exists(f"{folder}/{other}/asked") for other in names):
            if time.monotonic() > until:
                raise AnsibleConnectionFailure("the others were not asked meanwhile")
            time.sleep(0.02)

    def put_file(self, in_path, out_path):
        return super().put_file(in_path, self._root + out_path)

    def fetch_file(self, in_path, out_path):
        return super().fetch_file(self._root + in_path, out_path)

    def reset(self):
        """Where `silent_once` is there, the node answers by the next connection."""
        folder = os.path.dirname(self._root)
        if os.path.exists(f"{folder}/silent_once"):
            os.unlink(f"{folder}/silent")
