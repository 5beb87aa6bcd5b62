# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verb `image` for many boards, each under its lock and with its claim; the failure of one does not stop the others.

roots/provision.py makes a board's root, export and files.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Collection, Sequence

from ...core.errors import BadInput, HeteroError, Refused
from ...core.lines import line
from ...core.plays import play, stays
from ...drivers.boot.driver import DISK_ROOT, NFS_ROOT
from ...drivers.boot.registry import BootDrivers
from ...images.choice import REBUILD, check_delivery, image_of, image_store
from ...images.forms import Machine
from ...roots.disk_root import prepare_disk
from ...roots.machine_identity import must_be_keys
from ...roots.ownership import has_root, is_asked, must_never_have_run, refuse_lost, refuse_unproven
from ...roots.place import Place
from ...roots.provision import PHASE, prepare, remove
from ...roots.seeds import prepare_seed
from ...site import board_states
from ...site.image_names import default_name, is_source, valid_image
from ..evidence.adoption import catch_up, is_of_nobody_else
from ..evidence.changed_addresses import refuse_changed
from ..power.gone_boards import sign_of_life
from ..power.outlet_power import outlet_power
from ..power.presence import OWN_KEY, shown
from ..records.at_rest import is_at_rest, is_at_work
from ..records.claim_records import Claim
from ..records.store import nobodys
from ..work.board_work import BoardWork
from ..work.cut_off_moves import bring_after
from ..work.each_board import EVERY_TENANT, Tenant, side_by_side
from .rebuilds import must_have_keys, rebuilt_claim

if TYPE_CHECKING:
    from ...core.changes import Change
    from ...core.deadline import Deadline
    from ...images.store import Image
    from ...roots import proxy_node as roots
    from ...site.boards_file import Board
    from ..records.proxy import Proxy
    from ..work.each_board import Report

STOP_IT = "stop it first: tilera_boot with state stopped"
SEEN_ON = "its outlet was last seen on"
NEITHER = "its PDU says {power} of it"
#: What goes of a board that nobody has: the record in its place, of which another board's only one is kept.
RECORD, ANOTHERS = "the record of its claim", "the record of board{of}, which is kept under another name beside it"
MAY_BE_ITS = "{sign}, and no claim of it is known: what runs there may have its root from here"
#: The fields of an image that a result shows.
SHOWN = ("name", "hash", "arch", "cmdline", "kernels")


@dataclass(frozen=True)
class Source:
    """An image that is asked for.

    :param image: its name in the store, or the path or URL from which it is imported; None for no image.
    :param name: the name that it gets there; None for the one in its path or URL.
    :param checksum: "sha256:…", which a URL needs.
    :param arch: overrides what its archive says.
    :param replace: let a name that stands for another image stand for this one.
    """

    image: str | None
    name: str | None = None
    checksum: str | None = None
    arch: str | None = None
    replace: bool = False


@dataclass(frozen=True)
class ImageRequest:
    """A request to make boards ready.

    :param image: None for that of each board's claim.
    :param key: the user's public keys; None for those of each board's claim.
    :param boot_source: what the boards are to boot from; None for that of each board's claim.
    :param flavor: for a dry run, the flavor of boards that are not claimed yet.
    :param rebuilt: ids of boards for which a dry run of rebuilds.py came before this one.
    :param user_data: what cloud-init gets in roots from which no system ran yet. Empty: nothing, also not what an
        earlier request gave; None: nothing is given, and what is there stays.
    """

    image: Image | None = None
    key: str | None = None
    boot_source: str | None = None
    flavor: dict[str, Any] | None = None
    rebuilt: Collection[int] = ()
    user_data: str | None = None

    def claim_of(self, board: Board, claim: Claim | None) -> Claim | None:
        """Return the claim that a board would have by now if the steps before a dry run had been real."""
        if claim is None and self.image and self.key:
            dry = dry_claim(board, self.image, self.key)
            claim = replace(dry, boot_source=self.boot_source, flavor=self.flavor or {})
        if claim is not None and board.id in self.rebuilt:
            claim = rebuilt_claim(claim, self.image.name if self.image else None)
        return claim


def take_in(
    proxy: Proxy, source: Source, change: Change, deadline: Deadline
) -> tuple[Image | None, list[dict[str, Any]]]:
    """Import an image, or find it.

    :returns: the Image, and lines of what was done. In check mode the Image is None if it would be imported.
    """
    image, checksum, arch = source.image, source.checksum, source.arch
    if image is None:
        return None, []
    store = image_store(proxy)
    if not is_source(image):
        if source.name or checksum or arch:
            raise BadInput("is a name in the store, which is not imported", image, "give its path or URL, with a slash")
        return store.get(valid_image(image)), []
    name = source.name or default_name(image)
    before = store.names().get(name)
    with change.step("import"):
        found = store.import_image(image, name, checksum, Machine(arch), change, deadline, source.replace)
    if found is None or change.check or store.names().get(name) == before:
        return found, []
    text = f"{name} ({found.arch}) is in the store: sha256:{found.hash}"
    return found, [line("image", "", PHASE, text, change.seconds["import"])]


def present(
    proxy: Proxy,
    ids: Sequence[int],
    request: ImageRequest,
    change: Change,
    deadline: Deadline,
    tenant: Tenant = EVERY_TENANT,
) -> dict[str, Any]:
    """Make the boards ready to boot; return the module's result."""
    image, key = request.image, request.key

    def one(board: Board, claim: Claim | None, report: Report, change: Change) -> dict[str, Any]:
        claim = request.claim_of(board, claim) if change.check else claim
        if claim is None:
            raise nobodys(board.name, tenant.instance)
        refuse_changed(proxy, board)
        claim = claim if change.check else catch_up(proxy, claim)
        refuse_lost(proxy, board, claim)
        if not claim.image_hash and not change.check and is_asked(proxy, board, claim):
            _refuse_under_power(proxy, board, claim)
        if image is not None and claim.image and image.name != claim.image and image.hash != claim.image_hash:
            what = f"{claim.instance} was claimed with image {claim.image}, not {image.name}"
            raise Refused(what, board.name, REBUILD.format(name=claim.instance, image=image.name))
        if not key:
            must_have_keys(proxy, board, claim)
        fields = replace(claim, ssh_public_key=key) if key else claim
        source, found = claim.boot_source or NFS_ROOT, image or image_of(proxy, claim)
        if request.boot_source not in (None, source):
            what = f"{claim.instance} was claimed with boot source {source}, not {request.boot_source}"
            raise Refused(what, board.name, stays(claim.instance, "boot source"))
        if not claim.image_hash:  # one that has its root goes on with what it got
            check_delivery(proxy, board, found, BootDrivers(proxy).means(board), source)
        if source == DISK_ROOT:
            done = prepare_disk(Place(proxy, board), fields, found, change, deadline, report, request.user_data)
        else:
            done = prepare(proxy, board, fields, found, change, report, lambda: _proves(proxy, board, change))
            if request.user_data is not None:
                fresh = "root" in done["restored"]
                seeded = prepare_seed(Place(proxy, board), fields, found, request.user_data, change, report, fresh)
                done["restored"] += ["user_data"] if seeded else []
        return dict(done, changed=bool(done["restored"]))

    if key:
        must_be_keys(key)
    result = side_by_side(proxy, ids, PHASE, one, change, deadline, tenant)
    if image is not None:
        shown = dict(asdict(image), kernels=sorted(image.kernels))
        result["image"] = {field: value for field, value in shown.items() if field in SHOWN}
    return result


def _proves(proxy: Proxy, board: Board, change: Change) -> bool:
    """Return whether a board proves the host key of its claim just now."""
    work = BoardWork(proxy, board, change)
    work.record, work.driver = proxy.store.record(board.id), BootDrivers(proxy).of(board)
    return bool(work.system.host_key) and shown(work) == OWN_KEY


def _refuse_under_power(proxy: Proxy, board: Board, claim: Claim) -> None:
    """Raise Refused where a root is to be made anew while the board may still run from the old one: its stop failed."""
    record = proxy.store.record(board.id)
    if record.power == "on" or record.state == board_states.ERROR:
        seen = SEEN_ON if record.power == "on" else f"is in error: {record.note}"
        what = f"{seen}, and {claim.instance} is to get a new root there"
        remedy = f"stop it first ({play('stop_instance', instance=claim.instance)}), and run this again"
        raise Refused(what, board.name, remedy)


def dry_claim(board: Board, image: Image, key: str) -> Claim:
    """Return the claim that a board would have by now if the task before a dry run had been real."""
    return Claim(board.id, board.name, board.name, "", {}, image.name, key, created=0.0)


def clean(
    proxy: Proxy, board: Board, claim: Claim | None, change: Change, report: roots.Report, deadline: Deadline
) -> list[str]:
    """Remove what a board boots from, and return what there was; a dry run takes a board that runs as well.

    :raises Refused: the board runs from it or may do so, or it has a root without a claim and shows a sign of life.
    """
    refuse_changed(proxy, board)
    record = proxy.store.record(board.id)
    if record.state in board_states.AT_WORK and not change.check:
        raise Refused(f"is {record.state} from it", board.name, STOP_IT)
    if record.power == "on" and claim and not change.check and proxy.store.had_power(claim):
        refuse_unproven(proxy, board, claim)  # it says more
        raise Refused(f"{SEEN_ON}, and it may run from it", board.name, STOP_IT)
    if claim is None and not change.check and has_root(proxy, board):
        life = sign_of_life(proxy, board.id, deadline)
        if life:
            raise Refused(MAY_BE_ITS.format(sign=life[0]), board.name, STOP_IT)
    if claim is not None:
        bring_after(proxy, board, claim, change, report, deadline)
    if claim is not None and is_of_nobody_else(proxy, board, claim) and not change.check:
        proxy.store.keep_anew(board.id)  # as long as the root says whose it is; it ends with its claim
    return remove(proxy, board, change, report)


def _must_be_at_rest(proxy: Proxy, board: Board, claim: Claim, deadline: Deadline, never_ran: bool) -> None:
    """Raise Refused where a board may run from what is to be removed; its outlet is read for it.

    A board that had no power for its claim passes. So does a board that is recorded as running: `clean` refuses it.

    :param never_ran: the instance is known never to have run, so one in error is refused by its outlet alone.
    """
    store, kept = proxy.store, None
    with suppress(HeteroError):
        kept = store.kept(board.id)
    record = store.record(board.id)
    if record.state in board_states.AT_WORK or not (store.had_power(claim) or is_at_work(kept, record)):
        return
    seen: dict[str, Any] = {"id": board.id}
    unread = "; ".join(outlet_power(proxy, [seen], deadline).values())
    if seen["power"] in ("on", "off"):
        store.power_seen(board.id, seen["power"])
    elif seen["power"]:
        unread = NEITHER.format(power=seen.pop("power"))
    record, power = store.record(board.id), seen.get("power") or (None if unread else "off")  # one without an outlet
    if power and (is_at_rest(record, kept, power) or (never_ran and power == "off" and not is_at_work(kept, record))):
        return
    if power == "off":
        error = f"is in error: {record.note}" if record.state == board_states.ERROR else None
        what = error or f"it is {kept.state if kept else record.state} by the record of its claim"
    else:
        what = SEEN_ON if power else f"whether its outlet is off is not known ({unread})"
    refuse_unproven(proxy, board, claim)  # it says more
    raise Refused(f"{what}, and it may run from it", board.name, STOP_IT)


def say_what_would_go(proxy: Proxy, board: Board, report: roots.Report) -> None:
    """Report what a dry run does not remove."""
    runs = proxy.store.record(board.id).state in (board_states.BOOTING, board_states.RUNNING)
    report(PHASE, f"export, root and files would be removed{', once it is off' if runs else ''}")


def absent(
    proxy: Proxy,
    ids: Sequence[int],
    change: Change,
    deadline: Deadline,
    tenant: Tenant = EVERY_TENANT,
    never_ran: bool = False,
) -> dict[str, Any]:
    """Remove what the boards boot from; return the module's result. With `never_ran` refuse an instance that ever ran.

    A dry run takes a board that runs, for a dry run of its stop may have come before.
    """

    def one(board: Board, claim: Claim | None, report: Report, change: Change) -> dict[str, Any]:
        if never_ran:
            must_never_have_run(proxy, board, claim)
        if claim is not None and not change.check:
            _must_be_at_rest(proxy, board, claim, deadline, never_ran)
        there = clean(proxy, board, claim, change, report, deadline)
        if claim is None and board.id in proxy.store.kept_boards():
            # To clean a board without a claim is an operator's word that its record's instance has it no more.
            of = proxy.store.named_in(board.id)
            there = [*there, RECORD if of is None else ANOTHERS.format(of=of)]
            if change.note(f"{board.name} record", {"present": True}, {"present": False}) and not change.check:
                proxy.store.keep_anew(board.id)
        if there and change.check:
            say_what_would_go(proxy, board, report)
        return dict(removed=there, changed=bool(there))

    return side_by_side(proxy, ids, PHASE, one, change, deadline, tenant)
