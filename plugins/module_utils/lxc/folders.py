# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In which folders of this host containers run now: anybody may start one in a folder of his own (option lxcpath), and
it has what its device cgroup opens to it all the same.
"""

from __future__ import annotations

import glob
import os
import re
from contextlib import suppress

from .liblxc import monitor_owner

#: Sockets of this network namespace; a monitor's has the abstract name <lxcpath>/<name>/command.
SOCKETS = "/proc/thread-self/net/unix"
NAMED = re.compile(r" @(?P<lxcpath>/.*)/(?P<name>[^/]+)/command$", re.MULTILINE)
#: What liblxc makes of a name that is too long for a socket (commands_utils.c, lxc_make_abstract_socket_name).
SHORTENED = re.compile(r" @lxc/[0-9a-f]{16}/command$", re.MULTILINE)
#: What a monitor calls itself (lxccontainer.c, do_lxcapi_start).
TITLE = re.compile(r"\[lxc monitor\] (?P<lxcpath>/.*) (?P<name>[^ /]+)")


def in_use(sockets=SOCKETS, proc="/proc"):
    """Folders in which a container of root's runs now; what an account without rights says counts for nothing."""
    with open(sockets, encoding="utf-8", errors="surrogateescape") as file:
        text = file.read()
    found = [(one["lxcpath"], one["name"]) for one in NAMED.finditer(text)]
    folders = {lxcpath for lxcpath, name in found if monitor_owner(name, lxcpath) == 0}
    return sorted(folders | (_of_monitors(proc) if SHORTENED.search(text) else set()))


def _of_monitors(proc):
    """The same by what root's processes call themselves: a socket's shortened name does not tell its folder."""
    folders = set()
    for path in glob.glob(f"{proc}/[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it may have ended meanwhile
            with open(f"{path}/cmdline", encoding="utf-8", errors="surrogateescape") as file:
                title = TITLE.fullmatch(file.read().rstrip("\0"))
            if title and os.stat(path).st_uid == 0:
                folders.add(title["lxcpath"])
    return folders
