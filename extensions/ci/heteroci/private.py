# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder in which boards of jobs have their keys: nobody else's of this machine (as StrictModes of sshd)."""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import stat

from . import endings
from .endings import NoBoard

#: The owner of what a user namespace has no number for, as of the host's folders in a sandbox (kernel.overflowuid), and
#: what /proc/self/uid_map has where each number is mapped.
UNMAPPED, ALL_MAPPED = 65534, "4294967295"


def private_folder(path):
    """Make a folder, and those above it, for this user alone, whatever its umask is: ssh obeys its ssh_config."""
    before = os.umask(0o077)
    try:
        os.makedirs(path, exist_ok=True)
    finally:
        os.umask(before)


def must_be_own(path):
    """Raise NoBoard for a folder in which others of this machine write, or in whose place they may put another: ssh
    runs what they put into its ssh_config, and Ansible and this program write where their links lead.
    """
    for place, above in _way(path):
        whose = _others_at(place, above)
        if whose:
            what = f"the folder for keys, {path}, {f'is below {place}, which ' if above else ''}{whose}"
            raise NoBoard(endings.REQUEST, f"{what}: set HETERO_STATE (or --state) to one that is yours alone")


def _way(path):
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


def _others_at(place, above):
    """Return in words what others may do there. In a sticky folder above they cannot touch what is ours."""
    link, seen = os.lstat(place), os.stat(place)
    if stat.S_ISLNK(link.st_mode) and not _ours(link.st_uid):
        return f"is a link of another user ({link.st_uid})"
    if not _ours(seen.st_uid) and not (above and _is_unmapped(seen.st_uid)):
        return f"belongs to another user ({seen.st_uid})"
    if above and seen.st_mode & stat.S_ISVTX:
        return ""
    if seen.st_mode & stat.S_IWOTH:
        return "may be written by everybody"
    if not seen.st_mode & stat.S_IWGRP:
        return ""
    # with an ACL these bits are what it allows at most (acl(5))
    with contextlib.suppress(OSError, AttributeError):  # file systems without any, Python of macOS
        if "system.posix_acl_access" in os.listxattr(place):
            return f"may be written by others by its ACL (remedy: setfacl -b {place})"
    members = _others(seen.st_gid)
    return f"may be written by its group ({', '.join(sorted(members))})" if members else ""


def _ours(number):
    return number in (os.geteuid(), 0)


def _is_unmapped(number):
    with contextlib.suppress(OSError), open("/proc/self/uid_map", encoding="ascii") as file:
        return number == UNMAPPED and ALL_MAPPED not in file.read()
    return False


def _others(group):
    """Return the names of the accounts in a group that are neither this one nor root; none of root's own group."""
    members, named = {one.pw_name: one.pw_uid for one in pwd.getpwall() if one.pw_gid == group}, []
    with contextlib.suppress(KeyError):  # a number without a group
        named = grp.getgrgid(group).gr_mem
    for name in named:
        with contextlib.suppress(KeyError):  # an account that was removed
            members[name] = pwd.getpwnam(name).pw_uid
    return {name for name, number in members.items() if group and not _ours(number)}
