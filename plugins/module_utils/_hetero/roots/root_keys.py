# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The keys in a board's root: its user's, the host key by which it is known, the proxy's own line; what is missing is
put there, and nothing where a tenant made that impossible, or while the board still proves what is known.
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
    """A board's place on its proxy (provision.Place), as far as its root goes."""

    board: Board
    root: Root


def keeper(
    proxy: RootsNode, board: Board, claim: RootClaim, report: Report, proves: Callable[[], bool] | None
) -> Keeps:
    """A function that tells whether a claim's host key stays the one that is known, whichever is in its root, and says
    so: the board shows what it has read when it started, and by nothing else is it known to be its instance's.

    It is called with the key that is in the root, None for none.
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
    """The user's keys and a host key, in the root; returns the public host key.

    :param restored: grows by the names of what was missing.
    :param ready: whether the root's files are there to be looked at.
    :param keeps: of `keeper`; None for a root that is new.
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
    """Refused where keys are missing in a root that its tenant has, and cannot be put there."""
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
    """The line that lets this proxy reboot the board by ssh; gone where that is turned off."""
    own = [reboot_line(proxy, change.check)] if wanted(proxy) else []
    found = place.root.inspect(claim.ssh_public_key)["own"] if ready else []
    if change.note(f"{place.board.name} reboot by ssh", {"lines": found}, {"lines": own}):
        restored += ["reboot line"]
        if not change.check:
            place.root.put_own_line(own[0] if own else None)
            if place.root.inspect(claim.ssh_public_key)["own"] != own:
                raise HeteroError("the line is not there after it was put in", place.root.path, "check its links")
