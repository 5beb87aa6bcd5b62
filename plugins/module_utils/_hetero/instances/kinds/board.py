# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each verb on the boards of a request as one call: which steps it takes, in which order, and what ends it.

A step is what a module of its own does as well (board_claim, board_image, tilera_boot, board_wipe). Killed anywhere and
run again, a verb goes on: each step looks at what is there first.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Collection, Iterable, Mapping, NoReturn, Sequence

from ...boards.disk import wipes
from ...boards.evidence.unclaimed_instances import refuse_unclaimed
from ...boards.image import board_images, rebuilds
from ...boards.records.proxy import Proxy
from ...boards.verbs import lifecycle, release
from ...boards.work import board_claims, board_fit, board_leases, board_releases
from ...boards.work.each_board import Instances, board_of, claims_of
from ...boards.work.info import claim_fields
from ...boards.work.steps import AS_IT_IS, Steps
from ...claims.lost_database import listed
from ...core import job
from ...core.changes import Change
from ...core.deadline import Deadline
from ...core.errors import BadInput, HeteroError, Refused, naming_limits
from ...core.lines import line
from ...core.plays import play
from ...core.this_node import THIS_NODE
from ...drivers.boot.blame import BOARD, IMAGE
from ...images.choice import image_store
from ...roots.cloud_init import must_be_user_data, must_have_cloud_init
from ...site.board_states import ERROR
from ...site.image_names import valid_image
from ...site.instance import valid_instance
from ...site.leases import over
from ...site.owners import is_of, must_be_made, must_own, names_of, same
from .board_moves import migrated

if TYPE_CHECKING:
    from ...boards.records.claim_records import Claim
    from ...core.module import Module

#: Seconds for making roots, and for waiting until another verb lets go of a board meanwhile.
IMAGE_TIME = 1800.0
#: Seconds to wait for another verb on a board whose claim is changed or ended.
CLAIM_TIME = 30.0


def work(params: dict[str, Any], check: bool) -> dict[str, Any]:
    """Do what `state` says, and return the module's result."""
    actor = f"{params['owner'] or 'instance'} pid {os.getpid()}"
    with Proxy(params, actor, create=not check) as proxy:
        request = Request(proxy, params, check)
        try:
            with naming_limits(THIS_NODE):  # here, and not in core/module.py alone: what was done until then is told
                VERBS[params["state"]](request)
        except HeteroError as error:
            request.steps.broke_off(error)
        if params["state"] == "running" and params["flavor"] and not check:
            request.say_what_stays()
        return request.steps.result


def in_background(module: Module) -> NoReturn:
    """Do the same in a process that is followed by what it writes down of the request's instances."""
    params = module.params

    def prepare() -> tuple[str, dict[str, Any]]:
        with Proxy(params) as proxy:
            request = Request(proxy, params, False)
            names = sorted({request.name, *request.names, *(claim.instance for claim in request.claims)})
            return proxy.config.run_folder, dict(proxy.store.followed(), instances=names, limit=request.limit)

    job.in_background(module, prepare, lambda: work(params, False))


class Request:
    """What is asked for of one request's boards, and what came of its steps so far.

    :param params: the module's arguments.
    :ivar rebuilt: ids of boards that a dry run would have rebuilt.
    """

    def __init__(self, proxy: Proxy, params: dict[str, Any], check: bool) -> None:
        self.proxy, self.params, self.check = proxy, params, check
        self.name = valid_instance(params["instance"])
        self.created: tuple[float, ...] = tuple(params["created"])
        self.steps = Steps()
        self.rebuilt: list[int] = []

    @property
    def names(self) -> list[str]:
        """Return the instances that it has or is to have."""
        return names_of(self.name, max(1, min(self.params["count"], board_fit.MOST)), self.params["numbers"])

    @property
    def claims(self) -> list[Claim]:
        """Return the request's claims, of those numbers that are asked for."""
        return [claim for claim in self.proxy.store.claims() if is_of(vars(claim), self.name, self.params["numbers"])]

    def found(self) -> list[dict[str, Any]]:
        """Return its claims, as board_claim does.

        :raises Refused: what was looked up was given back since.
        """
        # of a smaller count than before, the others stay as they are
        store, claims = self.proxy.store, [claim for claim in self.claims if claim.instance in self.names]
        gone = len(self.created) - len(claims)  # it is told one time a claim, or one for all
        if not claims or gone > 0:
            whose = f"{gone} of its {len(self.created)} instances were" if claims else "was"
            raise Refused(f"{whose} given back meanwhile", self.name, "ask for it anew")
        for claim in claims:
            must_be_made(claim, self.created)
        boards = self.proxy.boards
        return [claim_fields(boards.get(one.board), store.record(one.board), one, store.has_run(one)) for one in claims]

    def ids(self) -> list[int]:
        """Return the ids of the boards of its claims, and say whose lease ended.

        From now on no step takes later claims of the same names for these.

        :raises Refused: there is none, or one is another owner's, or is not in the boards file.
        """
        claims, now = self.own_claims(), time.time()
        ended = [(claim, over(claim.instance, claim.expires, now)) for claim in claims]
        told = [line(one.instance, f"board{one.board}", "lease", text) for one, text in ended if text]
        self.steps.say(told)
        return [board_of(self.proxy, claim).id for claim in claims]

    def own_claims(self) -> list[Claim]:
        """Return its claims, also those of boards that the boards file does not name.

        :raises Refused: there is none, or one is another owner's, or all have another key than only_key.
        """
        claims = claims_of(self.proxy, self.name, self.params["numbers"], self.params["only_key"])
        for claim in claims:
            must_own(claim, self.params["owner"])
        self.created = self.created or tuple(claim.created for claim in claims)
        return claims

    @property
    def asked(self) -> Instances:
        """The instances that are asked for, as the steps take them."""
        words = (self.params["numbers"], self.created, self.params["only_key"])
        return Instances(self.name, self.params["owner"], *words)

    @property
    def options(self) -> lifecycle.Options:
        """Return the options of all its steps."""
        names = ("how", "soft_timeout", "timeout")
        return lifecycle.Options(
            check=self.check,
            instance=self.name,
            created=self.created,
            rebuilt=tuple(self.rebuilt),
            **{name: self.params[name] for name in names},
        )

    @property
    def attempts(self) -> int:
        """Return how many boards are tried, at least one."""
        return max(1, self.params["attempts"])

    @property
    def limit(self) -> float:
        """Return the longest that a verb can take (seconds)."""
        boots = self.attempts * (2 * self.options.limit_with_disk + IMAGE_TIME)
        return boots + (wipes.WipeRequest().limit if self.params["state"] in ("running", "absent") else 0.0)

    # ---- steps; each is True where it did not fail

    def claim(self, move: bool = False) -> list[dict[str, Any]]:
        """Claim what is asked for, or find it claimed, and return the claims as board_claim does.

        :param move: whether an instance whose board is in error gets another one.
        """
        fields = board_fit.ClaimRequest.__dataclass_fields__
        given = {name: value for name, value in self.params.items() if name in fields}
        given.update(numbers=tuple(self.params["numbers"]), image=self.params["image"] or "", move=move)
        change = Change(self.check)
        try:
            with change.step("claim"):
                self.must_take_user_data([self.params["image"]])
                result = board_claims.present(self.proxy, board_fit.ClaimRequest(self.name, **given), change)
        except BadInput as error:
            error.facts.setdefault(AS_IT_IS, {})
            raise
        # of a dry run that looks for what another one would have claimed it was said before, with its lease
        again = dict(lines=[], seconds=change.seconds) if self.check and self.created else change.result
        self.steps.took(dict(result, **again), "claim")
        return result["boards"]

    def must_take_user_data(self, images: Iterable[str | None]) -> None:
        """Raise BadInput where user_data are none, or one of these images has no cloud-init.

        An image that is not there is told by what makes roots of it.
        """
        user_data, store = self.params["user_data"], image_store(self.proxy)
        if user_data is None:
            return
        must_be_user_data(user_data)
        there = store.names()
        for name in sorted({name for name in images if name in there}):
            must_have_cloud_init(store.get(name))

    def make_ready(self, ids: Sequence[int], anew: bool = False, **given: Any) -> bool:
        """Make ready what boards boot from.

        :param anew: whether this asks for the instances, with all that they are to get: a request without user_data
            then takes out those of an earlier one. A start leaves them.
        """
        image = self.params["image"]
        found = image_store(self.proxy).get(valid_image(image)) if image else None
        change, deadline = Change(self.check), Deadline(IMAGE_TIME)
        key, user_data = self.params["ssh_public_key"], self.params["user_data"] or ("" if anew else None)
        asked = board_images.ImageRequest(found, key, rebuilt=self.rebuilt, user_data=user_data, **given)
        words = (ids, asked, change, deadline, self.asked.tenant)
        return self.steps.took(board_images.present(self.proxy, *words), "image")

    def boot(self, ids: Sequence[int], **given: Any) -> bool:
        return self.steps.took(lifecycle.start(self.proxy, ids, replace(self.options, **given)), "boot")

    def bring_up(self, ids: Sequence[int], **given: Any) -> bool:
        """Make ready what it boots from, as its claims have it, then boot it."""
        return self.make_ready(ids) and self.boot(ids, **given)

    def stop(self, ids: Sequence[int], **given: Any) -> bool:
        return self.steps.took(lifecycle.stop(self.proxy, ids, replace(self.options, **given)), "stop")

    def remove(self, ids: Sequence[int], never_ran: bool = False) -> bool:
        change, deadline = Change(self.check), Deadline(IMAGE_TIME)
        result = board_images.absent(self.proxy, ids, change, deadline, self.asked.tenant, never_ran)
        return self.steps.took(result, "remove")

    def end(
        self,
        ids: Sequence[int],
        never_ran: bool = False,
        left: Collection[int] = (),
        at_fault: Mapping[int, str] | None = None,
    ) -> None:
        """Take the boards from whoever has them; what fails stays claimed, and the next try goes on there.

        :param left: boards of the request that stay claimed as they are.
        :param at_fault: as of release.end.
        """
        asked = wipes.WipeRequest.of(self.proxy, method=self.params["wipe_method"], verify=self.params["wipe_verify"])
        result = release.end(self.proxy, ids, asked, replace(self.options, never_ran=never_ran), at_fault)
        self.steps.took(result, result["step"])
        ended = self.steps.boards
        # What was asked for anew meanwhile is left; what the boards file does not name is told here.
        anew = [claim.board for claim in self.claims if claim.instance in result["ended"]]
        # also where it has moved meanwhile; each once
        left = list(dict.fromkeys([*left, *ids, *anew, *(board["board"] for board in ended)]))
        change, deadline = Change(self.check), Deadline(CLAIM_TIME)
        with change.step("claim"):
            rest = board_releases.absent(self.proxy, self.asked, change, deadline, left=left, on=True)
        self.steps.took(dict(rest, **change.result), "release")
        self.steps.boards = sorted([*ended, *self.steps.boards], key=lambda board: board["board"])

    def take_back(self, ids: Sequence[int]) -> None:
        """Give boards back because what was to run on them is not sound; the verb fails all the same.

        One that is at fault itself stays out of use. Where it was found so before any power was switched for it,
        somebody may be at work there: it is left as it is, claimed.
        """
        store = self.proxy.store
        at_fault = {id: record for id, record in store.records(ids).items() if record.state == ERROR}
        left = [id for id, record in at_fault.items() if record.claim and not store.had_power(record.claim)]
        notes = {id: record.note for id, record in at_fault.items()}
        self.end([id for id in ids if id not in left], never_ran=True, left=left, at_fault=notes)

    def say_what_stays(self) -> None:
        """Tell who asked and did not get it which boards they have all the same, and what they may type.

        The end of it all is named only if that ends nothing that ran, before this request or on another node.
        """
        if not self.steps.failure:
            return
        with suppress(HeteroError):  # what went wrong first is told in any case
            ended = self.steps.being_ended
            held = [claim for claim in self.claims if claim.instance in self.names and claim.board not in ended]
            held = [claim for claim in held if same(claim.owner, self.params["owner"])]
            end = play("terminate_instance", instance=self.name)
            is_named = end in self.steps.failure["msg"]
            if held and (self.steps.as_it_is or not is_named):
                boards = listed([f"{claim.instance} on board{claim.board}" for claim in held])
                stay = "stay" if held[1:] else "stays"
                again = f"{boards} {stay} claimed: ask for {self.name} {self.steps.way_on}"
                store = self.proxy.store
                ran = any(store.has_run(claim) for claim in store.claims() if is_of(vars(claim), self.name))
                self.steps.add(again if is_named or ran or self.params["numbers"] else f"{again}, or {end} ends it")


def present(request: Request) -> None:
    """Claim its boards."""
    request.claim()


def running(request: Request) -> None:
    """Bring up what was claimed; if there is a flavor, claim first what is not claimed yet."""
    if not request.params["flavor"]:
        request.bring_up(request.ids())
        return
    claims = request.found() if request.created and not request.check else request.claim()
    request.created = tuple(claim["created"] for claim in claims)
    for left in reversed(range(request.attempts)):
        if not _tried(request, claims, last=not left):
            break
        if not request.check:
            request.found()  # what was ended meanwhile gets no other board
        claims = request.claim(move=True)
        request.steps.mend()
        request.created = tuple(claim["created"] for claim in claims)
    if request.check:  # no record tells yet whose these boards would be
        whose = {claim["board"]: claim["instance"] for claim in claims}
        for board in request.steps.boards:
            board["instance"] = whose.get(board["board"], board["instance"])


def _tried(request: Request, claims: Sequence[dict[str, Any]], last: bool) -> bool:
    """Try once to bring claimed boards up, and return whether another board is to be tried."""
    ids, steps = [claim["board"] for claim in claims], request.steps
    sound = [claim["board"] for claim in claims if claim["state"] != ERROR]
    source = request.params["boot_source"]
    if not request.make_ready(sound, anew=True, boot_source=source, flavor=request.params["flavor"]):
        if not request.check and not any(claim["image_hash"] or claim["ran"] for claim in claims):
            request.take_back(ids)
        return False
    if request.boot(ids, boot_source=source, image=request.params["image"]):
        return False
    if steps.blame == IMAGE:
        request.take_back(ids)
    elif steps.blame == BOARD and not last and request.params["board"] is None:
        blamed = [board["board"] for board in steps.boards if board["blame"] == BOARD]
        # A root from before, on a board that has power and by the database never had it: that may be an older copy.
        before = {claim["board"] for claim in claims if claim["image_hash"]}
        known = request.proxy.store.records(before.intersection(blamed))
        if not all(record.claim and request.proxy.store.had_power(record.claim) for record in known.values()):
            return False
        return request.remove(blamed, never_ran=True)
    return False


def stopped(request: Request) -> None:
    """Switch its boards off; their claims stay."""
    request.stop(request.ids(), keep=True)


def rebooted(request: Request) -> None:
    """Have its boards boot anew."""
    ids = request.ids()
    request.steps.took(lifecycle.reboot(request.proxy, ids, request.options), "boot")


def rebuilt(request: Request) -> None:
    """Write another image or key down, then replace the old roots and boot the new ones."""
    params, change, ids = request.params, Change(request.check), request.ids()
    request.must_take_user_data([params["image"]] if params["image"] else [one.image for one in request.claims])
    asked = rebuilds.RebuildRequest(params["image"], params["ssh_public_key"], params["fresh"])
    # a play that was killed has left its verb running: this one goes on where that one ends
    result = rebuilds.rebuild(request.proxy, request.asked, asked, change, Deadline(request.options.limit))
    if not request.steps.took(result, "rebuild"):
        ids = result["to_rebuild"]  # one that is refused does not keep the others from what was written down of them
    if not ids:
        return
    request.rebuilt = result["to_rebuild"] if request.check else []
    image = params["image"] if request.rebuilt else None
    if not result["to_rebuild"] or request.stop(result["to_rebuild"]):
        if not request.rebuilt:
            request.params = dict(params, image=None, ssh_public_key=None)  # what the claim names now
        request.bring_up(ids, image=image)


def extended(request: Request) -> None:
    """Set the end of its leases."""
    params, change = request.params, Change(request.check)
    words = (request.asked, params["lease_hours"], change, Deadline(CLAIM_TIME))
    request.steps.took(board_leases.extend(request.proxy, *words), "lease")


def absent(request: Request) -> None:
    """End it: its boards are off, clean and nobody's."""
    if request.claims:
        # One whose board the boards file does not name is said at the end, and the others' boards are free by then.
        ids = [claim.board for claim in request.own_claims() if claim.board in request.proxy.boards]
        request.end(ids, never_ran=request.params["never_ran"])
    else:
        request.steps.took(dict(boards=[], lines=refuse_unclaimed(request.proxy, request.name)), "release")


VERBS = {verb.__name__: verb for verb in (present, running, stopped, rebooted, rebuilt, migrated, extended, absent)}
