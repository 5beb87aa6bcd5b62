# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`hetero restore`: before the NFS server starts, mounts the roots of all claims again and tells it what to export.

The claims and the roots themselves say what is to be there. A claim is believed by the database; and by its own record
(claims/boardN.json), where the root of that board was made for it and the database has no claim of the board, or an
older one: it may be a copy, or have been begun anew. The units that run this are role tftp_proxy's; how a root is
mounted and how a server is told is known to images/.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Callable, Iterator, Mapping, Sequence

from ...boards.evidence.changed_addresses import address_at_work, at_work, refuse_changed, served_elsewhere
from ...boards.records.proxy import Proxy
from ...core.deadline import Deadline
from ...core.errors import HeteroError, Refused, naming, told
from ...core.locks import lock
from ...core.plays import play
from ...images.choice import image_store
from ...nfs.exports import exporter
from ...roots.board_parts import root_of_board
from ...roots.made_json import is_unread, token_of
from ...roots.ownership import made_for, refuse_anothers, refuse_lost, roots_there
from ...roots.place import Place
from ...roots.roots import UNMOUNT_TIME
from ...site.boot_sources import DISK
from ...site.proxy_config import CONFIG, files_of
from ...site.state_folder import ROOTS
from ..verb_parser import verb_parser

if TYPE_CHECKING:
    from ...boards.records.claim_records import Claim
    from ...nfs.exporter import Export, Exporter
    from ...site.boards_file import Board
    from ...site.proxy_config import ProxyConfig

VERB = "restore"
DOES = "Mount the boards' roots, and tell the NFS server what to export before it starts."
#: Where no file can be: a database there reads as empty.
NOWHERE = os.path.join(os.devnull, "state.db")
BY_RECORDS = "{why}; until then roots are exported by the records of their claims"
BY_RECORD = f"exported by the record of its claim, of which the database does not tell: {play('reconcile')} adopts it"
LOOK = f"nothing of it is touched: {play('reconcile')} says what can be done"
RAN_BY_RECORD = "{name} ran from {folder} by the record of its claim, and neither that nor the claim is there"
NO_ROOTS = "no root of a board is there, and instances ran: {names}"
#: The way where what holds the roots is not mounted, and where they are gone for good; {folder} holds them.
MOUNT = (
    "the NFS server is not started, so that boards wait for it: mount the file system that the roots are on, and it "
    "starts; or, where they are gone for good, say so by a folder, mkdir -p {folder}/none, and it starts once without "
    f"them: then rebuild what ran for new roots, or terminate it; {play('reconcile')} says more"
)
#: The folder that says so.
WORD = "none"
UNNAMED = "names none of the boards whose roots are to be exported: {names}"
#: The way where another file took its place, and where those boards are gone for good.
NAME_THEM = (
    "the NFS server is not started, so that boards wait for it: put the file back that names them, and it starts; or, "
    f"where they are gone for good, end their claims: {play('reconcile', forget='NAME')}"
)
UNNAMED_AT = f"exported to {{address}} as before; the boards file does not name it: add it; {play('reconcile')} tells"
UNREAD_ROOT = "its root is there, and what made.json says of whom it was made for cannot be read"


def restore(proxy: Proxy, say: Callable[[str], object], lost: HeteroError | None = None) -> list[Export]:
    """Mount what is to be mounted, have the server begin with all that is, and return that.

    A root that cannot be mounted is said and left out: its empty folder would be served in its stead. Where all that
    instances ran from is missing, what holds the roots may not be mounted, and the server is not to start. Nothing is
    written into the database.

    It is not to start either where the boards file names none of the boards that have roots: it may be another node's.
    Where it only lacks some, those that may be at work are served on at the addresses of their exports.

    :param say: called with a text for each thing that was done or could not be.
    :param lost: why the database cannot be read; it is raised where the records give nothing to export either. The
        server is not to start then: a board that waits for it goes on later, one without export does not.
    """
    exports: list[Export] = []
    rows = {claim.board: claim for claim in proxy.store.claims()}
    roots = (number for number, _folder, _made in roots_there(proxy.config.state_folder))
    records, missing, unnamed, is_named = [], [], [], False
    with suppress(HeteroError):  # the database and the roots count alone then
        records = proxy.store.kept_boards()
    for number in sorted({*rows, *roots, *records}):
        name, claim = f"board{number}", rows.get(number)
        try:
            with naming(name):
                claim = _claim_of(proxy, number, claim)
                export = _restored(proxy, claim, say) if claim else None
                if claim and export and claim != rows.get(number):
                    say(f"{name} of {claim.instance}: {BY_RECORD}")
        except Exception as error:  # noqa: BLE001 - whatever is odd about one root, the others' boards get theirs
            whose = f"{name} of {claim.instance}" if claim else name
            say(f"{whose} is not exported: {told(error, name)}")
            if isinstance(error, Refused) and not root_of_board(proxy, number).exists():
                missing.append(whose)
        else:
            exports += [export] if export else []
            is_named = is_named or (export is not None and number in proxy.boards)
        if number not in proxy.boards and claim and claim.image_hash and claim.boot_source != DISK:
            unnamed.append(f"{name} of {claim.instance}")
    if lost and not exports:
        raise lost
    if unnamed and not is_named:
        raise Refused(UNNAMED.format(names=", ".join(unnamed)), "boards file", NAME_THEM)
    folder = os.path.join(proxy.config.state_folder, ROOTS)
    there = os.listdir(folder) if os.path.isdir(folder) else []
    is_empty = missing and not exports and not any(map(_is_root, there))
    if is_empty and WORD not in there:
        raise Refused(NO_ROOTS.format(names=", ".join(missing)), folder, MOUNT.format(folder=folder))
    _server(proxy.config).begin_with(exports, proxy.config.run_folder)
    if is_empty:
        with suppress(OSError):
            os.rmdir(os.path.join(folder, WORD))
    return exports


def _is_root(name: str) -> bool:
    return not name.startswith(".") and name != WORD  # a lock lies below a mount as well


def parser() -> argparse.ArgumentParser:
    """Return the parser of its words."""
    return verb_parser(VERB, DOES, CONFIG, "proxy")


def main(arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)

    def say(text: str) -> None:
        sys.stderr.write(f"{text}\n")

    with _node(files_of(options.config)) as (proxy, lost):
        if lost:
            say(BY_RECORDS.format(why=lost))
        exports = restore(proxy, say, lost)
    sys.stdout.write(f"to be exported: {', '.join(export.pseudo for export in exports) or 'nothing'}\n")
    return 0


@contextmanager
def _node(files: Mapping[str, str]) -> Iterator[tuple[Proxy, HeteroError | None]]:
    """Yield the node, and why its database cannot be read, or None; in that one's place it then has an empty one.

    :param files: the parameters `config`, `boards_file` and `state_db`.
    """
    actor, lost = f"hetero {VERB}", None
    with ExitStack() as stack:
        try:
            proxy = stack.enter_context(Proxy(files, actor, create=False))
            proxy.store.claims()
        except HeteroError as error:
            lost = error
            empty = dict(files, state_db=NOWHERE)
            proxy = stack.enter_context(Proxy(empty, actor, create=False, lost=True))
        yield proxy, lost


def _claim_of(proxy: Proxy, number: int, row: Claim | None) -> Claim | None:
    """Return the claim of a board for which its root may be exported; None where there is nothing to be exported.

    :param number: the board's id, which the boards file need not have.
    :param row: the claim that the database has of the board.
    :raises Refused: the board has a root, and neither database nor record has a claim that it was made for.
    """
    root = root_of_board(proxy, number)
    made, name, unread = root.made(), f"board{number}", None
    try:
        kept = proxy.store.kept(number)
    except HeteroError as error:
        kept, unread = None, error
    of_record = kept is not None and made is not None and made.claim == token_of(kept.claim)
    if kept and made and of_record and (row is None or row.created < kept.claim.created):
        if made.whole and made.image != kept.claim.image_hash:
            what = f"its root is of another image than the record of {kept.claim.instance}'s claim names"
            raise Refused(what, name, LOOK)
        return kept.claim
    ran = kept is not None and kept.ran and kept.claim.boot_source != DISK
    if row is None and kept and ran and not root.exists() and not proxy.store.was_released(kept.claim):
        raise Refused(RAN_BY_RECORD.format(name=kept.claim.instance, folder=root.folder), name, LOOK)
    if row is not None or not root.exists() or root.is_half_removed or (made and not made.whole):
        return row
    what = f"its root is that of {made_for(root)}, and "
    if unread:
        what += f"the database has no claim of the board, and {unread.thing}: {unread.what}"
    elif kept:
        what += f"{proxy.store.path_of_kept(number)} is the record of another claim ({kept.claim.instance}'s)"
    else:
        what += "neither the database nor a record has a claim of the board"
    raise Refused(UNREAD_ROOT if is_unread(root) else what, name, LOOK)


def _restored(proxy: Proxy, claim: Claim, say: Callable[[str], object]) -> Export | None:
    """Return the export of a claim whose root is there and mounted; None for one that was not provisioned yet.

    :raises Refused: its instance ran from a root that is not there.
    """
    board = _board(proxy, claim)
    place = Place(proxy, board)
    made = place.root.made()
    refuse_lost(proxy, board, claim)
    if is_unread(place.root):
        raise Refused(UNREAD_ROOT, board.name, LOOK)
    if made is None or not made.whole:
        return None
    refuse_anothers(proxy, board, claim)
    image = image_store(proxy).get(made.image)
    if not place.root.ready(image):
        # A verb that holds the board does what its own claim needs. None does after a restart of the machine.
        with lock(proxy.config.run_folder, board.name, VERB, proxy.actor, Deadline(0)):
            place.root.unmount(Deadline(UNMOUNT_TIME))  # half of it, where one was killed
            place.root.mount(image)
        say(f"{board.name} of {claim.instance}: root mounted")
    address = address_at_work(proxy, board)
    if claim.board not in proxy.boards:
        say(f"{board.name} of {claim.instance}: {UNNAMED_AT.format(address=address)}")
    elif address == board.ip:
        refuse_changed(proxy, board)
    return replace(place.export, clients=(address,))


def _board(proxy: Proxy, claim: Claim) -> Board:
    """Return a claim's board; one that may be at work without a row in the boards file, with its export's address.

    :raises BadInput: the boards file does not name it, and it is at rest, or its address is not known.
    """
    number, others = claim.board, list(proxy.boards.values())
    if number not in proxy.boards and others and proxy.store.had_power(claim) and at_work(proxy, number):
        address = served_elsewhere(proxy, number)
        if address:
            return replace(others[0], id=number, ip=address)
    return proxy.board(number)


def _server(config: ProxyConfig) -> Exporter:
    return exporter(config.exports, os.path.join(config.state_folder, "exports"))
