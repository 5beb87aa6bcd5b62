# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where locks lie on a machine that is no proxy node, but reaches PDUs itself."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress

from ...core.errors import HeteroError, naming
from ...site.proxy_config import DEFAULTS


def own_run_folder() -> str:
    """Return the folder for locks on a machine that is no proxy node (a controller that reaches the PDU itself).

    :raises HeteroError: another account made the folder, and could so have any file of ours written.
    """
    account = os.geteuid()
    if account == 0:
        return DEFAULTS.run_folder
    folder = os.path.join(tempfile.gettempdir(), f"hetero-{account}")
    with naming(folder):
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        seen = os.lstat(folder)
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != account or stat.S_IMODE(seen.st_mode) & 0o022:
        what = f"is there, and is no folder of user id {account} alone"
        remedy = "look who made it (ls -ld), and have it removed; or set TMPDIR to a folder of your own"
        raise HeteroError(what, folder, remedy)
    return folder
