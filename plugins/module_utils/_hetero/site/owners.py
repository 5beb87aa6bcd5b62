# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who holds what of a request, when several owners were asked for it. Claims of one instance on two owners come from
two plays that asked at once, or from one that was killed: the oldest stays.

The owners' clocks decide, so they keep one time (NTP); of equal ones the first owner by name has it.
"""

from __future__ import annotations

from itertools import takewhile
from typing import Any, Collection, Container, Iterable, Iterator, Mapping, Protocol

from ..core.errors import BadInput, Refused
from .kinds import BOARD, OF_HOSTS
from .leases import as_date

#: Names that an answer tells one by one.
TOLD = 4
OTHER_NAME = "choose another name"

#: A claim as modules tell it; and what board_info and host_info answer, with the owner of it as `item`.
Claim = Mapping[str, Any]
Result = Mapping[str, Any]


class MadeClaim(Protocol):
    """A claim as a store has it."""

    @property
    def instance(self) -> str: ...

    @property
    def owner(self) -> str: ...

    @property
    def created(self) -> float: ...


def names_of(request: str, count: int, numbers: Container[int] = ()) -> list[str]:
    """The instances of a request: NAME, or of several NAME-1 … NAME-N, and of those the ones of `numbers`."""
    if count == 1:
        return [request]
    return [f"{request}-{number}" for number in range(1, count + 1) if not numbers or number in numbers]


def must_be_numbers(numbers: Iterable[int], count: int) -> None:
    """BadInput for numbers that no instance of the request has."""
    wrong = [number for number in numbers if not 1 <= number <= count or count == 1]
    if wrong:
        what = f"has {', '.join(map(str, wrong))}, and the instances are {'one' if count == 1 else f'1 to {count}'}"
        raise BadInput(what, "numbers", "give numbers of NAME-1 … NAME-N, or leave it out for all of them")


def is_of(claim: Claim, request: str, numbers: Collection[int] = ()) -> bool:
    """Whether a claim is of a request, or is the instance itself; of several only those of `numbers`."""
    if request == claim["instance"]:
        return True
    return request == claim["request"] and (not numbers or number_of(claim["instance"], request) in numbers)


def must_be_made(claim: MadeClaim, created: Container[float] | None) -> None:
    """Refused where a claim is none of those that were looked up: its name was claimed anew since.

    :param created: when these were made; none asks for nothing.
    """
    if created and claim.created not in created:
        what = f"was given back meanwhile, and claimed anew by {claim.owner}"
        raise Refused(what, claim.instance, "run this again, which looks up whose it is")


def number_of(instance: str, request: str) -> int | None:
    """N of an instance NAME-N of a request NAME; None of another."""
    tail = instance[len(request) + 1 :] if instance.startswith(f"{request}-") else ""
    return int(tail) if tail.isdigit() else None


def refuse_taken(claims: Iterable[Claim], request: str, instances: Iterable[str], owner: str) -> None:
    """Refused where a name that is asked for is another owner's, of an instance or of a request: verbs take either."""
    for claim in claims:
        name = shared_name(claim, {request, *instances})
        if name and claim["owner"] != owner:
            raise Refused(f"belongs to {claim['owner']}", name, OTHER_NAME)


def mixed(claims: Collection[Claim], request: str, instances: list[str]) -> tuple[str, str, str] | None:
    """(name, what, remedy) where a name is to be one instance and several at once; None where it is not.

    Verbs take a name for either, so that who ends the one by it would end the others, too.

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
    """Refused where `mixed` says that a name would be one instance and several."""
    found = mixed(claims, request, instances)
    if found:
        name, what, remedy = found
        raise Refused(what, name, remedy)


def shared_name(claim: Claim, names: Container[str]) -> str | None:
    """The name of a claim's instance or request that is among `names`; None where none of them is."""
    return next((claim[key] for key in ("instance", "request") if claim[key] in names), None)


def taken(results: Iterable[Result], request: str, count: int, owner: str) -> list[dict[str, str]]:
    """Whose the names of a request are, where they are another's and were before any claim of `owner` for them.

    :returns: dicts: name, owner, item (the node that has it).
    """
    names = {request, *names_of(request, count)}
    found = []
    for result in results:
        for claim in result["claims"]:
            name = shared_name(claim, names)
            if name:
                found.append((claim["created"], str(result["item"]), claim["owner"], name))
    found.sort()
    others = takewhile(lambda one: one[2] != owner, found)
    return [dict(name=name, owner=whose, item=item) for _created, item, whose, name in others]


def as_text(others: list[dict[str, str]]) -> str:
    """What `taken` found, for who asked."""
    told = ", ".join(f"{one['name']}: belongs to {one['owner']} ({one['item']})" for one in others[:TOLD])
    more = f" and {len(others) - TOLD} more" if len(others) > TOLD else ""
    return f"{told}{more}: {OTHER_NAME}"


def holders(
    results: Iterable[Result],
    request: str,
    count: int | None = None,
    owner: str | None = None,
    keep: Container[str] | None = None,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(parts, surplus): which owner holds which instances of a request, what was made ready first, then the oldest.

    :param results: of board_info and host_info, each with its owner as `item`.
    :param count: only NAME, or NAME-1 … NAME-N, whatever they were asked for as; None: the instance of that name and
        all of a request of that name.
    :param owner: who asks. What is theirs and was not made ready is surplus where an older claim has its name, or
        where `keep` is given and does not name it.
    :returns: lists of dicts: item, kind, claims, boards (their ids), numbers (none where it is NAME itself).
    """
    names = None if count is None else set(names_of(request, count))
    found = []
    for result in results:
        for claim in result["claims"]:
            if is_of(claim, request) if names is None else claim["instance"] in names:
                found.append((claim.get("image_hash") is None, claim["created"], str(result["item"]), claim, result))
    found.sort(key=lambda one: one[:3])
    stays, parts, surplus = set(), {}, {}
    for _unready, _created, item, claim, result in found:
        ours = claim["owner"] == owner and claim.get("image_hash") is None
        if claim["instance"] not in stays and not (ours and keep is not None and claim["instance"] not in keep):
            stays.add(claim["instance"])
            _add(parts, item, claim, result, request)
        elif ours:
            _add(surplus, item, claim, result, request)
    return list(parts.values()), list(surplus.values())


def twice(results: Iterable[Result], request: str, owner: str | None = None) -> list[str]:
    """Instances that several nodes have made, as texts: a verb cannot know which one is meant.

    :param results: as of `holders`. A node that the inventory has by two names has each instance once.
    :param owner: only what is this owner's; None for all.
    """
    found: dict[str, dict[tuple[float, str, str], str]] = {}
    for result in results:
        for claim in result["claims"]:
            if is_of(claim, request) and claim.get("image_hash") and owner in (None, claim["owner"]):
                same = (claim["created"], str(claim.get("name")), str(claim.get("ip")))
                found.setdefault(claim["instance"], {}).setdefault(same, str(result["item"]))
    told = []
    for instance, made in sorted(found.items()):
        if len(made) > 1:
            places = [f"{one[1]} of {made[one]} (since {as_date(one[0])})" for one in sorted(made)]
            which = "say which is meant: leave out the nodes of the others, -e without=NODE"
            told.append(f"{instance} is there {len(places)} times, on {', '.join(places)}: {which}")
    return told


def unclaimed(results: Collection[Result], names: Container[str] | None = None) -> list[str]:
    """What is there of instances that no node has a claim of, as texts; NODE may have been given an older database.

    :param results: as of `holders`; each may have `unclaimed`, dicts with `instance` and `text`. What a node says of an
        instance that it has a claim of itself counts: its claim is the older one.
    :param names: only of these instances; None for all.
    """
    has = {(claim["instance"], str(result["item"])) for result in results for claim in result["claims"]}
    told = []
    for item, one in _unclaimed(results, harmless=False):
        asked = names is None or one["instance"] in names
        if asked and not any(instance == one["instance"] and other != item for instance, other in has):
            told.append(f"{one['instance']} on {item}: {one['text']}")
    return told


def notes(results: Iterable[Result]) -> list[str]:
    """What lies there that is no instance's, and is to be looked at, as texts; `results` as of `unclaimed`."""
    return [f"{one['name']} on {item}: {one['text']}" for item, one in _unclaimed(results, harmless=True)]


def _unclaimed(results: Iterable[Result], harmless: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    for result in results:
        for one in result.get("unclaimed", ()):
            if one.get("harmless", False) == harmless:
                yield str(result["item"]), one


def _add(parts: dict[str, dict[str, Any]], item: str, claim: Claim, result: Result, request: str) -> None:
    kind = OF_HOSTS.get(claim.get("kind", ""), BOARD).name
    part = parts.setdefault(item, dict(item=item, kind=kind, claims=[], boards=[], numbers=[]))
    part["claims"].append(claim)
    there = [board["id"] for board in result.get("boards", ())]
    part["boards"] += [claim["board"]] if claim.get("board") in there else []
    number = number_of(claim["instance"], request)
    if number is not None:
        part["numbers"].append(number)
