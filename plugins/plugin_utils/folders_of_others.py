# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who else may write in a folder of the controller, or put another one in its place.

As StrictModes of sshd: what is above it counts as well, and each link that leads to it (extensions/ci has the same for
itself, for it needs no collection).
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from contextlib import suppress
from typing import Iterator

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import brief

#: The owner of what a user namespace has no number for, as of the host's folders in a sandbox (kernel.overflowuid).
UNMAPPED = 65534
#: What /proc/self/uid_map has where each number is mapped.
ALL_MAPPED = "4294967295"


def of_others(path: str) -> str:
    """Return in words that others may write in a folder, or lead to another one by its name; "" where they may not.

    A folder that is not there yet is looked at from the nearest one above it on.
    """
    return next(filter(None, (_theirs(place, above) for place, above in _way(path))), "")


def _way(path: str) -> Iterator[tuple[str, bool]]:
    """Yield a folder, each one above it, and what links lead to, with whether it is above; each once."""
    todo, seen = [(os.path.abspath(path), False)], set()
    while todo:
        place, above = todo.pop()
        if (place, above) in seen:
            continue
        seen.add((place, above))
        yield place, above
        todo.append((os.path.dirname(place), True))
        if os.path.islink(place):
            todo.append((os.path.join(os.path.realpath(os.path.dirname(place)), os.readlink(place)), above))


def _theirs(place: str, above: bool) -> str:
    """Return in words what others may do there. In a sticky folder above they cannot touch what is ours."""
    why = ""
    with suppress(OSError):  # not there, or not for us: who writes the files says that
        link, seen = os.lstat(place), os.stat(place)
        if stat.S_ISLNK(link.st_mode) and not _ours(link.st_uid):
            why = f"to which a link of another user leads ({link.st_uid})"
        elif not (above and seen.st_mode & stat.S_ISVTX):
            why = _written(place, seen)
        if not why and not _ours(seen.st_uid) and not (above and _is_unmapped(seen.st_uid)):
            why = f"which belongs to another user ({seen.st_uid})"
    return f"below {place}, {why}" if why and above else why


def _written(place: str, seen: os.stat_result) -> str:
    if seen.st_mode & stat.S_IWOTH:
        return "in which everybody may write"
    if not seen.st_mode & stat.S_IWGRP:
        return ""
    # with an ACL these bits are what it allows at most (acl(5))
    with suppress(OSError, AttributeError):  # file systems without any, Python of macOS
        if "system.posix_acl_access" in os.listxattr(place):
            return f"in which its ACL lets others write (remedy: setfacl -b {place})"
    theirs = [name for name, uid in _members(seen.st_gid).items() if not _ours(uid)]
    return f"in which its group may write ({brief(', '.join(sorted(theirs)))})" if theirs else ""


def _ours(uid: int) -> bool:
    """Return whether an account is root or this one; and root may act for who called sudo."""
    return uid in (0, os.geteuid()) or (os.geteuid() == 0 and str(uid) == os.environ.get("SUDO_UID"))


def _is_unmapped(uid: int) -> bool:
    with suppress(OSError), open("/proc/self/uid_map", encoding="ascii") as file:
        return uid == UNMAPPED and ALL_MAPPED not in file.read()
    return False


def _members(group: int) -> dict[str, int]:
    """Return the accounts of a group, {name: user id}; those of root's own, which some distributions give to accounts
    that nobody logs in to, are not looked for.
    """
    found = {one.pw_name: one.pw_uid for one in pwd.getpwall() if group and one.pw_gid == group}
    named: list[str] = []
    with suppress(KeyError):  # a number without a group
        named = grp.getgrgid(group).gr_mem if group else []
    for name in named:
        with suppress(KeyError):  # an account that was removed
            found[name] = pwd.getpwnam(name).pw_uid
    return found
