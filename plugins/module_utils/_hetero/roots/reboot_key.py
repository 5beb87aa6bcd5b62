# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proxy's own key pair for rebooting boards, and the line with which a root lets it do that and nothing else.

The private half never leaves the proxy. A tenant who wants no reboot by ssh takes the line out of what the board
reads; the proxy then reboots by power.
"""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

from ..core.errors import HeteroError
from ..files.removal import remove_tree
from .key_pairs import make_pair

if TYPE_CHECKING:
    from ..images.proxy_node import ProxyNode

#: The pair lies in this folder below the state folder.
FOLDER = "reboot-key"
NAME = "id_ed25519"
#: What the line's forced command says before it reboots, so that a login that did not get there is told apart.
MARK = "hetero: rebooting"
#: `restrict` (OpenSSH 7.2 and later) forbids forwarding, terminals and whatever comes to be; an older server ignores
#: the line as a whole, which is safe.
LINE = 'restrict,command="echo {mark}; exec /sbin/reboot" {key} hetero: reboot only'


def private_key(proxy: ProxyNode) -> str:
    """Return the path of the private half."""
    return proxy.folder(FOLDER, NAME)


def wanted(proxy: ProxyNode) -> bool:
    """Return whether roots are to hold the line (`soft_reboot` in proxy.json)."""
    return bool(proxy.config.soft_reboot)


def reboot_line(proxy: ProxyNode, check: bool = False) -> str:
    """Return the line for a root's authorized_keys; make the key pair where there is none.

    :param check: make nothing (check mode); where there is no pair, the line has a remark in place of the key.
    """
    public = f"{private_key(proxy)}.pub"
    if not os.path.exists(public):
        if check:
            return LINE.format(mark=MARK, key="(the key of a pair that is made then)")
        _make(proxy)
    try:
        with open(public, encoding="ascii") as file:
            kind, blob = file.read().split()[:2]
    except (OSError, ValueError) as error:
        remedy = f"remove {os.path.dirname(public)}, and run this again: a new pair is made"
        raise HeteroError(f"cannot be read ({error})", public, remedy) from error
    return LINE.format(mark=MARK, key=f"{kind} {blob}")


def _make(proxy: ProxyNode) -> None:
    """Make both halves or none, by one rename, under a lock: only one of several processes makes the pair."""
    folder = proxy.folder(FOLDER)
    scratch = f"{folder}.new"
    os.makedirs(proxy.config.state_folder, mode=0o700, exist_ok=True)
    lock = os.open(f"{folder}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        # The holder runs ssh-keygen, which has a limit of its own.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(os.path.join(folder, f"{NAME}.pub")):
            return
        for left in (scratch, folder):  # left by a process that was killed here
            remove_tree(left)
        os.mkdir(scratch, 0o700)
        path = os.path.join(scratch, NAME)
        make_pair(path, "hetero: reboot only", path)
        os.rename(scratch, folder)
    finally:
        os.close(lock)
