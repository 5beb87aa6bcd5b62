# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A connection into the root of a proxy that is only a folder (proxies.py): Ansible's local one, with chroot before.

Beside the root, a file `down` says that the node cannot be reached, and a pipe `silent` that it does not answer while a
job is followed, as one whose power is gone; with a file `silent_once` it does again by a new connection.
"""

from __future__ import annotations

import os
import shlex

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.connection.local import Connection as Local

DOCUMENTATION = """
name: folder
short_description: Run in a folder as the root
description: Runs commands of a host in the folder of its name below PROXY_ROOTS.
author: hetero.compute contributors (@hetero-compute)
extends_documentation_fragment: connection_pipelining
"""


class Connection(Local):
    """Local, but for its root."""

    transport = "folder"

    @property
    def _root(self):
        return os.path.join(os.environ["PROXY_ROOTS"], self._play_context.remote_addr, "root")

    def exec_command(self, cmd, in_data=None, sudoable=True):
        if os.path.exists(f"{os.path.dirname(self._root)}/down"):
            raise AnsibleConnectionFailure(f"Failed to connect to {self._play_context.remote_addr}: No route to host")
        silent = f"{os.path.dirname(self._root)}/silent"
        if in_data and b"One look at a job" in in_data and os.path.exists(silent):
            with open(silent, encoding="utf-8"):  # nobody writes to it
                raise AnsibleConnectionFailure("somebody wrote to it")
        inside = f"chroot {shlex.quote(self._root)} /bin/sh -c {shlex.quote(cmd)}"
        return super().exec_command(inside, in_data=in_data, sudoable=sudoable)

    def put_file(self, in_path, out_path):
        return super().put_file(in_path, self._root + out_path)

    def fetch_file(self, in_path, out_path):
        return super().fetch_file(self._root + in_path, out_path)

    def reset(self):
        """Where `silent_once` is there, the node answers by the next connection."""
        folder = os.path.dirname(self._root)
        if os.path.exists(f"{folder}/silent_once"):
            os.unlink(f"{folder}/silent")
