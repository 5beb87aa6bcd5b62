# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folders in which a node keeps what is its own: the machine that runs unit tests may be one, and no test is to
touch them. Which one did is known by what its process was about to write there, and by what is there after it.
"""

from __future__ import annotations

import os
import sys

FOLDERS = ("/var/lib/hetero", "/etc/hetero", "/tftpboot")
DATABASES = ("host.db", "state.db")
#: Audit events of what makes, changes or removes a file (docs.python.org/3/library/audit_events.html), beside those of
#: "open", whose flags say whether it does.
CHANGES = {"os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "os.truncate", "sqlite3.connect"}


class Watch:
    """What this process, and those that it forks, did to the folders since `begin()`."""

    def __init__(self, folders=FOLDERS):
        self.folders = folders
        self.begin()
        sys.addaudithook(self._heard)

    def begin(self):
        self._calls, self._before = [], self._seen()

    def touched(self):
        """What was done there, in words; empty also where another process alone changed something."""
        return self._calls if self._seen() != self._before else []

    def _seen(self):
        places = [os.path.join(folder, name) for folder in self.folders for name in ("", *DATABASES)]
        return [_state(place) for place in places]

    def _heard(self, event, given):
        if event in CHANGES or (event == "open" and given[2] and given[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)):
            texts = [os.fsdecode(path) for path in given[:2] if isinstance(path, (str, bytes))]
            if any(text.removeprefix("file:").startswith(self.folders) for text in texts):
                self._calls.append(f"{event} {' '.join(texts)}")


def _state(path):
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns
