# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which owner (node) holds which instances of a request, after several owners were asked.

Two owners have claims of one instance after two plays asked at once, or one was killed: the oldest claim stays. The
owners' clocks decide, so they must be synchronised (NTP). Of equal times the first owner by name has it.
"""

from __future__ import annotations

import unicodedata
from itertools import takewhile
from typing import Any, Collection, Container, Final, Iterable, Mapping, Protocol

from ..core.errors import BadInput, Refused
from ..core.plays import play
from ..core.printable import printable, seen
from ..core.spelling import like
from .kinds import BOARD, OF_HOSTS
from .leases import as_date

#: Number of names that an answer lists.
TOLD = 4
#: Most characters of an owner: an e-mail address has 254 (RFC 5321), a user's name in AWX 150. Each answer of a node
#: has it with each claim.
LONGEST_OWNER = 255
OTHER_NAME = "choose another name"
#: What is said of a name of a request that waits, to another owner.
WAITED_FOR = "{owner} waits for what is to have that name, and asked before"
#: The form of Unicode in which the names of owners are compared: AWX keeps its users' in such a one (NFKC).
FORM: Final = "NFC"

#: What is typed for one that is there twice; and before that where both are one claim, one of them by an older copy.
WHICH = "say which is meant: leave out the nodes of the others, -e without=NODE"
MOVED = (
    f"it has moved, and a database is older than that: run {play('reconcile')}; where that does not end it, a host was "
    "put back as a whole, and its root is older: "
)

#: A claim as modules return it; and a result of board_info or host_info, with its owner as `item`.
Claim = Mapping[str, Any]
Result = Mapping[str, Any]


class MadeClaim(Protocol):
    """A claim as a store holds it."""

    @property
    def instance(self) -> str: ...

    @property
    def request(self) -> str: ...

    @property
    def owner(self) -> str: ...

    @property
    def created(self) -> float: ...


def same(owner: str | None, other: str | None) -> bool:
    """Return whether two names of owners are one: a letter with an accent is typed in two ways, which look alike.

    None is no owner's: a node may answer without one.
    """
    return owner is not None and other is not None and in_form(owner) == in_form(other)


def in_form(owner: str) -> str:
    """Return an owner's name as it is compared."""
    return unicodedata.normalize(FORM, owner)


def is_owner(owner: str | None, other: str) -> bool:
    """Return whether a name is that of an owner who is asked for; None asks for all."""
    return owner is None or same(owner, other)


def names_of(request: str, count: int, numbers: Container[int] = ()) -> list[str]:
    """Return the instances of a request: NAME, or NAME-1 … NAME-N, and of these only those of `numbers`, if given."""
    if count == 1:
        return [request]
    return [f"{request}-{number}" for number in range(1, count + 1) if not numbers or number in numbers]


def must_be_numbers(numbers: Iterable[int], count: int) -> None:
    """Raise BadInput for numbers that no instance of the request has."""
    wrong = [number for number in numbers if not 1 <= number <= count or count == 1]
    if wrong:
        what = f"has {', '.join(map(str, wrong))}, and the instances are {'one' if count == 1 else f'1 to {count}'}"
        raise BadInput(what, "numbers", "give numbers of NAME-1 … NAME-N, or leave it out for all of them")


def is_of(claim: Claim, request: str, numbers: Collection[int] = ()) -> bool:
    """Return whether a claim belongs to a request, or is the instance of that name; only those of `numbers`, if given.

    A claim of another name than NAME-1 … NAME-N is not of request NAME, whatever it says: the node may lie.
    """
    if request == claim["instance"]:
        return True
    number = number_of(claim["instance"], request)
    return request == claim["request"] and number is not None and (not numbers or number in numbers)


def must_be_made(claim: MadeClaim, created: Container[float] | None) -> None:
    """Raise Refused if a claim is not one of those that were looked up before: its name was claimed anew since.

    :param created: the times of those claims (unix seconds); without any nothing is checked.
    """
    if created and claim.created not in created:
        what = f"was given back meanwhile, and claimed anew by {claim.owner}"
        raise Refused(what, claim.instance, "run this again, which looks up whose it is")


def must_be_owner(owner: str) -> None:
    """Raise BadInput for an owner whom nobody can name: an empty one, or one that looks like another or is too long.

    Owners of an earlier release may be such ones; verbs that claim nothing take them.
    """
    if not owner.strip():
        raise BadInput("is empty", "owner", "say who asks")
    if len(owner) > LONGEST_OWNER:
        what = f"has {len(owner)} characters, and at most {LONGEST_OWNER} make a name"
        raise BadInput(what, "owner", "say it in fewer")
    if seen(owner) != owner:
        raise BadInput(f"'{seen(owner)}' has characters that nobody sees", "owner", "give a name without them")
    if owner.strip() != owner:
        raise BadInput(f"'{owner}' has blanks around it, which nobody sees", "owner", "give a name without them")


def must_own(claim: MadeClaim, owner: str | None) -> None:
    """Raise Refused where a claim is another owner's; None for any owner.

    A module's result has an owner as printable text, by which one of an earlier release is named as well.
    """
    if not (is_owner(owner, claim.owner) or owner == printable(claim.owner)):
        raise Refused(f"belongs to {claim.owner}", claim.instance, f"have {claim.owner} do it")


def number_of(instance: str, request: str) -> int | None:
    """Return N of the instance NAME-N of request NAME, or None for another instance."""
    tail = instance[len(request) + 1 :] if instance.startswith(f"{request}-") else ""
    return int(tail) if tail.isdigit() else None


def is_name_of(name: str, request: str, count: int | None = None) -> bool:
    """Return whether a name is that of a request, or of one of its instances NAME-1 … NAME-N.

    :param count: how many they are; None where that is not known, and any number counts.
    """
    number = number_of(name, request) if count != 1 else None
    return name == request or (number is not None and 1 <= number <= (count or number))


def waited_for(results: Iterable[Result], request: str, count: int, owner: str, asked: float | None) -> str:
    """Return who waits for a name of a request since before its owner asked, in words; "" where nobody does.

    :param results: as of `holders`. Each may have `queue`, dicts with request, owner and asked.
    :param asked: since when the request itself waits (unix seconds); None where it does not.
    """
    for result in results:
        for one in result.get("queue") or ():
            theirs = not same(one["owner"], owner) and (asked is None or one["asked"] < asked)
            if theirs and (is_name_of(one["request"], request, count) or is_name_of(request, one["request"])):
                return f"{one['request']}: {WAITED_FOR.format(owner=one['owner'])} ({result['item']}): {OTHER_NAME}"
    return ""


def refuse_taken(claims: Iterable[Claim], request: str, instances: Iterable[str], owner: str) -> None:
    """Raise Refused if another owner has a name that is asked for, as an instance or as a request: verbs take either.
    """
    for claim in claims:
        name = shared_name(claim, {request, *instances})
        if name and not same(claim["owner"], owner):
            raise Refused(f"belongs to {claim['owner']}", name, OTHER_NAME)


def mixed(claims: Collection[Claim], request: str, instances: list[str]) -> tuple[str, str, str] | None:
    """Return (name, what, remedy) if a name would be one instance and several at once, else None.

    Verbs take a name for either, so ending the one by its name would end the others too.

    :param claims: all of one owner, as dicts.
    """
    if instances == [request]:
        several = sorted(claim["instance"] for claim in claims if claim["request"] == request != claim["instance"])
        if several:
            told = ", ".join(several[:TOLD]) + (" …" if len(several) > TOLD else "")
            most = max(2, *(number_of(name, request) or 0 for name in several))
            what = f"stands for several that are there ({told})"
            return request, what, f"add -e count={most}, or {OTHER_NAME}"
        return None
    parts = {claim["request"] for claim in claims if claim["request"] not in (request, claim["instance"])}
    for name in [name for name in instances if name in parts]:
        return name, "stands for several that are there, and cannot be one of several", f"{OTHER_NAME} for several"
    for claim in claims:
        if claim["instance"] == request or (claim["instance"] in instances and claim["request"] != request):
            many = "several" if claim["instance"] == request else "one of several"
            what = f"is an instance by itself, and cannot be {many}"
            return claim["instance"], what, f"{OTHER_NAME} for several"
    return None


def refuse_mixed(claims: Collection[Claim], request: str, instances: list[str]) -> None:
    """Raise Refused if `mixed` finds a name that would be one instance and several."""
    found = mixed(claims, request, instances)
    if found:
        name, what, remedy = found
        raise Refused(what, name, remedy, as_it_is={})


def shared_name(claim: Claim, names: Container[str]) -> str | None:
    """Return the name of a claim's instance or request that is among `names`, or None."""
    return next((claim[key] for key in ("instance", "request") if claim[key] in names), None)


def taken(
    results: Iterable[Result], request: str, count: int, owner: str, numbers: Container[int] = ()
) -> list[dict[str, str]]:
    """Return which names of a request belong to others, and did so before `owner` had any claim of them.

    :param results: as of `holders`.
    :param owner: who asks.
    :param numbers: only these of NAME-1 … NAME-N; none for all.
    :returns: dicts of name, owner, item (the node that has it).
    """
    names = {request, *names_of(request, count, numbers)}
    found = []
    for result in results:
        for claim in result["claims"]:
            name = shared_name(claim, names)
            if name:
                found.append((claim["created"], str(result["item"]), claim["owner"], name))
    found.sort()
    others = takewhile(lambda one: not same(one[2], owner), found)
    return [dict(name=name, owner=whose, item=item) for _created, item, whose, name in others]


def as_text(others: list[dict[str, str]]) -> str:
    """Return what `taken` found, in words."""
    told = ", ".join(f"{one['name']}: belongs to {one['owner']} ({one['item']})" for one in others[:TOLD])
    more = f" and {len(others) - TOLD} more" if len(others) > TOLD else ""
    return f"{told}{more}: {OTHER_NAME}"


def holders(
    results: Iterable[Result],
    request: str,
    count: int | None = None,
    owner: str | None = None,
    keep: Container[str] | None = None,
    numbers: Collection[int] = (),
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return (parts, surplus): which node holds which instances of a request.

    Instances that were made ready come first, then the oldest.

    :param results: of board_info and host_info, each with its node as `item`.
    :param count: look for NAME or NAME-1 … NAME-N, whatever request they belong to; None: for the instance of that name
        and all of the request of that name.
    :param owner: who asks. Their claims that were not made ready are surplus if an older claim has the name, or if
        `keep` is given and does not have it.
    :param numbers: only these of NAME-1 … NAME-N; none for all.
    :returns: lists of dicts of item, kind, claims, boards (their ids), numbers (none for NAME itself).
    """
    names = None if count is None else set(names_of(request, count, numbers))
    found = []
    for result in results:
        for claim in result["claims"]:
            of_it = is_of(claim, request, numbers) and not (numbers and claim["instance"] == request)
            if of_it if names is None else claim["instance"] in names:
                found.append((claim.get("image_hash") is None, claim["created"], str(result["item"]), claim, result))
    found.sort(key=lambda one: one[:3])
    stays, parts, surplus = set(), {}, {}
    for _unready, _created, item, claim, result in found:
        ours = same(claim["owner"], owner) and claim.get("image_hash") is None
        if claim["instance"] not in stays and not (ours and keep is not None and claim["instance"] not in keep):
            stays.add(claim["instance"])
            _add(parts, item, claim, result, request)
        elif ours:
            _add(surplus, item, claim, result, request)
    return list(parts.values()), list(surplus.values())


def twice(results: Iterable[Result], request: str, owner: str | None = None) -> list[str]:
    """Return as texts the instances that several nodes have made: a verb cannot know which one is meant.

    An instance of the request counts as made twice, too, where a node has one of that name outside the request, whoever
    owns it: one of the nodes may lie.

    :param results: as of `holders`. A node that the inventory has under two names counts once.
    :param owner: only this owner's instances; None for all.
    """
    claims = [(claim, str(result["item"])) for result in results for claim in result["claims"]]
    ours = [(claim, item) for claim, item in claims if is_of(claim, request) and is_owner(owner, claim["owner"])]
    names = {claim["instance"] for claim, _item in ours}
    by_itself = [both for both in claims if both[0]["instance"] in names and not is_of(both[0], request)]
    found: dict[str, dict[tuple[float, str, str], str]] = {}
    for claim, item in [*ours, *by_itself]:
        if claim.get("image_hash"):
            same = (claim["created"], str(claim.get("name")), str(claim.get("ip")))
            found.setdefault(claim["instance"], {}).setdefault(same, item)
    told = []
    for instance, made in sorted(found.items()):
        if len(made) > 1:
            places = [f"{one[1]} of {made[one]} (since {as_date(one[0])})" for one in sorted(made)]
            why = MOVED if len({created for created, _name, _ip in made}) == 1 else ""
            told.append(f"{instance} is there {len(places)} times, on {', '.join(places)}: {why}{WHICH}")
    return told


def ended(results: Iterable[Result], request: str, owner: str | None = None) -> str:
    """Return in words which instances of a request were ended because their lease was over, and when; "" for none.

    :param results: as of `holders`. Each may have `ended`, dicts with instance, owner and time.
    :param owner: only what was this owner's; None for all.
    """
    told = []
    for result in results:
        ours = [one for one in result.get("ended", ()) if is_of(dict(one, request=request), request)]
        found = [one for one in ours if is_owner(owner, one["owner"])]
        if found:
            names = sorted(one["instance"] for one in found)
            more = f" and {len(names) - TOLD} more" if len(names) > TOLD else ""
            last = as_date(max(one["time"] for one in found))
            told.append(f"{result['item']} ended {', '.join(names[:TOLD])}{more} at {last}")
    return f"{'; '.join(told)}, as the lease was over: what it had is removed" if told else ""


def alike(claims: Iterable[MadeClaim], request: str) -> list[dict[str, str]]:
    """Return, of each owner, the name of a request that is most similar to one that a node does not have.

    :param claims: all of the node's claims.
    :returns: dicts with instance and owner, as many as there are owners of similar names.
    """
    names: dict[str, set[str]] = {}
    for claim in claims:
        names.setdefault(claim.owner, set()).add(claim.request)
    found = {owner: like(request, sorted(theirs)) for owner, theirs in sorted(names.items())}
    return [dict(instance=near, owner=owner) for owner, near in found.items() if near]


def meant(results: Iterable[Result], request: str, owner: str) -> str:
    """Return `is jackie meant?`: the owner's own name that is most similar to one that no node has; "" for none.

    :param results: as of `holders`. Each may have `alike`, dicts with instance and owner.
    """
    theirs = {one["instance"] for result in results for one in result.get("alike", ()) if same(one["owner"], owner)}
    near = like(request, sorted(theirs))
    return f"is {near} meant?" if near else ""


def _add(parts: dict[str, dict[str, Any]], item: str, claim: Claim, result: Result, request: str) -> None:
    kind = OF_HOSTS.get(claim.get("kind", ""), BOARD).name
    part = parts.setdefault(item, dict(item=item, kind=kind, claims=[], boards=[], numbers=[]))
    part["claims"].append(claim)
    there = [board["id"] for board in result.get("boards", ())]
    part["boards"] += [claim["board"]] if claim.get("board") in there else []
    number = number_of(claim["instance"], request)
    if number is not None:
        part["numbers"].append(number)
