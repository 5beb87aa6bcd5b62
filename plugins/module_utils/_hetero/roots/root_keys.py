# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The keys in a board's root: the user's keys, the host key, and the line of the proxy's own key.

What is missing is put there. Nothing is written where the tenant's files prevent that. No new host key is made while
the board still proves the known one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Protocol

from ..core.errors import HeteroError, Refused
from ..core.plays import play
from ..core.printable import brief, one_line
from .machine_identity import HOST_KEY_PLACES, KEY_PLACES, fingerprint, odd_place
from .reboot_key import reboot_line, wanted

if TYPE_CHECKING:
    from ..core.changes import Change
    from ..site.boards_file import Board
    from .proxy_node import Keeps, Report, RootClaim, RootsNode
    from .roots import Root


KEY_IS_GONE = (
    "its host key is gone from its root; while it runs it keeps the one that is known; the next start from off makes a "
    "new one"
)
KEY_DIFFERS = (
    "another host key lies in its root than the one that it proves; while it runs it keeps the one that is known"
)
HOST_KEY = "host key"


class Rooted(Protocol):
    """What this file uses of a board's place on its proxy (place.Place)."""

    board: Board
    root: Root


def keeper(
    proxy: RootsNode, board: Board, claim: RootClaim, report: Report, proves: Callable[[], bool] | None
) -> Keeps:
    """Return a function that tells, and reports, whether a claim keeps its known host key whichever is in its root.

    A running board shows the key that it read when it started, and by that key alone is it known to be its instance's.
    The function is called with the key that is in the root, or None.
    """

    def keeps(found: str | None) -> bool:
        if not claim.host_key or found == claim.host_key:
            return False
        proven = proves is not None and proves()
        if found is None and (proven or proxy.store.record(board.id).power == "on"):
            report("image", KEY_IS_GONE)
            return True
        if proven:
            report("image", KEY_DIFFERS)
        return proven

    return keeps


def prepare_keys(
    place: Rooted, claim: RootClaim, change: Change, restored: list[str], ready: bool, keeps: Keeps | None
) -> str | None:
    """Put the user's keys and a host key into the root where they are missing; return the public host key.

    :param restored: the names of what was missing are appended to it.
    :param ready: whether the root is mounted, so that its files can be read.
    :param keeps: what `keeper` returned; None for a new root.
    """
    root = place.root
    found: dict[str, Any] = root.inspect(claim.ssh_public_key) if ready else {"key": False, "host_key": None}
    kept = keeps is not None and keeps(found["host_key"])
    if kept:
        found["host_key"] = claim.host_key
    if ready and keeps is not None:
        _refuse_odd(root, claim, found)
    prints = [fingerprint(line) for line in claim.ssh_public_key.strip().splitlines()]
    before = {"authorized": prints if found["key"] else [], "host_key": found["host_key"]}
    after = {"authorized": prints, "host_key": found["host_key"] or "a fresh ed25519 key"}
    if change.note(f"{place.board.name} keys", before, after):
        restored += [] if found["key"] else ["key"]
        restored += [] if found["host_key"] else [HOST_KEY]
        if not change.check:
            if not found["key"]:
                root.put_key(claim.ssh_public_key)
            if not found["host_key"]:
                root.put_host_key(claim.instance)
            found = root.inspect(claim.ssh_public_key)
            found["host_key"] = claim.host_key if kept else found["host_key"]
            if not found["key"] or not found["host_key"]:
                raise HeteroError("keys are not there after they were put in", root.path, "check its links")
    return found["host_key"]


def _refuse_odd(root: Root, claim: RootClaim, found: dict[str, Any]) -> None:
    """Raise Refused where keys are missing in a tenant's root, and its files prevent them from being put there."""
    places = [] if found["key"] else [KEY_PLACES]
    for folders, files in [*places, *([] if found["host_key"] else [HOST_KEY_PLACES])]:
        odd = odd_place(root.path, folders, files)
        if odd:
            name, is_what = odd[0], brief(one_line(odd[1]))
            anew = play("rebuild_instance", instance=claim.instance, fresh="true")
            what = f"{name} in its root is {is_what}, so no key can be put there; nothing in its root was changed"
            remedy = f"remove {name} in the instance, or give it a new root, with which all in the old one goes: {anew}"
            raise Refused(what, claim.instance, remedy)


def prepare_own_line(
    proxy: RootsNode, place: Rooted, claim: RootClaim, change: Change, restored: list[str], ready: bool
) -> None:
    """Put the line that lets this proxy reboot the board by ssh into the root; remove it where that is turned off."""
    own = [reboot_line(proxy, change.check)] if wanted(proxy) else []
    found = place.root.inspect(claim.ssh_public_key)["own"] if ready else []
    if change.note(f"{place.board.name} reboot by ssh", {"lines": found}, {"lines": own}):
        restored += ["reboot line"]
        if not change.check:
            place.root.put_own_line(own[0] if own else None)
            if place.root.inspect(claim.ssh_public_key)["own"] != own:
                raise HeteroError("the line is not there after it was put in", place.root.path, "check its links")
