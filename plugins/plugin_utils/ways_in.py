# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of instances for `ssh -F`, on the controller: what is in them, and which file of that name is none.

Action ssh_config writes them.
"""

from __future__ import annotations

import os

TEXT = """\
Host {instance}
  HostName {ip}
  User root
  StrictHostKeyChecking yes
  UserKnownHostsFile /dev/null
  KnownHostsCommand /usr/bin/echo {known_hosts}
"""


def is_ours(text: str, name: str) -> bool:
    """Return whether a file's text was written here for this instance, and is no other file of that name in ~/.ssh."""
    written = text.partition("\n")[2] if text.startswith("mode ") else text
    return written.startswith(TEXT.partition("{ip}")[0].format(instance=name))


def read(path: str) -> str | None:
    """Return the text of a file, or None; that of a file which others may read begins with a line that says so."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            mode = os.fstat(file.fileno()).st_mode & 0o777
            return file.read() if mode == 0o600 else f"mode {mode:04o}\n{file.read()}"
    except FileNotFoundError:
        return None
