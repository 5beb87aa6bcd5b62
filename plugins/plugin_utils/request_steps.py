# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a play decides about a request, step by step, from what the nodes said: who has it (`find`), which nodes to ask
for it (`choose`), what they gave (`claimed`), and whose claim stays if two plays asked at once (`settle`; after the
first claim both at once, `confirmed`).

A step is a function of values: the request, the answers, and the plan of the step before. It returns the plan for the
next step and for the tasks between them. The rules of choice are in filters/schedule.py, those of names in
module_utils/_hetero/site/owners.py.
"""

from __future__ import annotations

from typing import Any, Container, Dict, Iterable, List, Mapping, NamedTuple, Sequence

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.plays import play
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import brief, one_line
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import owners
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.instance_states import ARRIVING
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.moves import (
    Move,
    is_whole,
    moving,
    without_halves,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.without_claims import notes, unclaimed
from ansible_collections.hetero.compute.plugins.plugin_utils import endings
from ansible_collections.hetero.compute.plugins.plugin_utils.heard import unasked, words_of
from ansible_collections.hetero.compute.plugins.plugin_utils.queue_steps import Wait, names_of, numbers_of

#: One node's answer, with the node as `item`.
Answer = Dict[str, Any]
#: What is asked for: instance, owner, flavor, count, numbers (only these of NAME-1 … NAME-N; none for all), partial,
#: placement, board, proxy, boot_source, image.
Request = Mapping[str, Any]
#: Which node is asked for which instances, or has them: item, kind, numbers; claims and boards of one that has them.
Part = Dict[str, Any]
Plan = Dict[str, Any]
#: Verbs on an instance that moves, and has a claim on two nodes: they see the one that it is at present.
WITH_HALVES = ("migrate", "show")


class Stop(Exception):
    """The play ends here. The text says why.

    :param result: of the module that failed, for programs that read the play's result.
    :param ending: how the request ended (endings.py), where no module's result says it.
    """

    def __init__(self, why: str, result: Mapping[str, Any] | None = None, ending: str = endings.REQUEST) -> None:
        super().__init__(why)
        self.result = dict(result or {})
        self.ending = endings.of_node(self.result) if result else ending


def find(
    request: Request, answers: Sequence[Answer], without: Iterable[str], force: bool = False, to: str | None = None
) -> Plan:
    """Return which nodes have an instance, or the instances of a request, for a verb on all of it.

    :param answers: of all nodes that may have it.
    :param without: nodes that were left out.
    :param force: also if it belongs to another owner.
    :param to: the verb, if there has to be something for it.
    :returns: parts, and lines for people.
    :raises Stop: a node was not asked, the instance belongs to another owner or is there twice, or a node has something
        of it without a claim.
    """
    name, owner = request["instance"], request["owner"]
    _stop(unasked(answers, name, without), endings.OWNER)
    found = moving(answers)
    answers, halves = without_halves(answers, found), [one for one in found if one.is_of(name)]
    _stop("\n".join(map(one_line, unclaimed(answers, ends=to is None))))
    parts, _surplus = owners.holders(answers, name, numbers=numbers_of(request))
    theirs = {claim["owner"] for part in parts for claim in part["claims"]}
    others = sorted(one for one in theirs if not owners.same(one, owner))
    if others and not force:
        whose = ", ".join(one_line(brief(other)) for other in others)
        raise Stop(f"{name} belongs to {whose}, not to {owner}: ask {whose}, or add -e force=true")
    _stop("\n".join(owners.twice(answers, name, None if force else owner)))
    if halves and to not in (None, *WITH_HALVES):
        _stop("\n".join(one_line(one.told) for one in halves))
    if parts:
        ended = [_half(one, request) for one in halves] if to is None else []
        return dict(parts=_joined([*parts, *ended]), lines=[], moves=[_as_plan(one) for one in halves])
    over = owners.ended(answers, name, None if force else owner)
    why = f" ({over})" if over else ""
    near = owners.meant(answers, name, owner)
    status = f"{near} {play('status')}" if near else play("status")
    if to:
        ask = play("provision_instance", instance=name, flavor="FLAVOR")
        remedy = f"{status} shows who has what; ask for it with {ask}"
        raise Stop(f"There is no instance {name} to {to}{why}: {remedy}")
    asked = ", ".join(answer["item"] for answer in answers)
    meant = brief(", ".join(f"{name}-{number}" for number in sorted(numbers_of(request)))) or name
    nowhere = f"{meant}: no such instance on {asked}{why}: {status} shows who has what"
    return dict(parts=parts, lines=[nowhere, *notes(answers)])


def _half(move: Move, request: Request) -> Part:
    """Return the half of an instance that is not the instance at present as a part of its own, which is to end, too."""
    node, claim = move.half
    return owners.holders([dict(item=node, claims=[claim])], request["instance"])[0][0]


def _joined(parts: Sequence[Part]) -> list[Part]:
    """Return parts with one for each node."""
    found: dict[str, Part] = {}
    for part in parts:
        there = found.setdefault(part["item"], dict(part, claims=[], boards=[], numbers=[]))
        for key in ("claims", "boards", "numbers"):
            there[key] = [*there[key], *part[key]]
    return list(found.values())


def _as_plan(move: Move) -> dict[str, Any]:
    """Return what tasks are to know of an instance that moves."""
    ways = dict(ended=one_line(move.ended), goes_back=move.goes_back)
    told = dict(instance=move.instance, leaves=move.leaves, arrives=move.arrives, was_started=move.was_started)
    told.update(mover=move.of.get("mover") or "", came_by=move.to.get("mover") or "", is_whole=is_whole(move.to))
    told.update(departure=move.of.get("departure") or "", came_of=move.to.get("departure") or "")
    told.update(left_for=move.of.get("leaves_for") or "", is_alone=move.of.get("state") == ARRIVING)
    return dict(told, **ways)


def choose(request: Request, answers: Sequence[Answer], without: Iterable[str], before: Plan) -> Plan:
    """Return which nodes to ask for which instances of a request.

    :param before: the plan of the round before; {} in the first.
    :returns: the plan: visits, which are parts to ask for; before, the request's instances that were there at the first
        look; new, whether nothing at all of its name was; refused, what nodes refused for good.
    :raises Stop: a node was not asked, several have made what is asked for, or another owner waits for its name.
    """
    name = request["instance"]
    _stop(unasked(answers, name, without), endings.OWNER)
    _stop("\n".join(one_line(one.told) for one in moving(answers) if one.instance in {name, *names_of(request)}))
    _stop("\n".join(owners.twice(answers, name, request["owner"])))
    _stop(owners.waited_for(answers, name, request["count"], request["owner"], before.get("asked")))
    refused = before.get("refused", [])
    found = _schedule(request, answers, _newest(refused, before.get("tried", ())))
    elsewhere = sorted({part["item"] for part in found["parts"]} - {request["proxy"]}) if request["proxy"] else []
    if elsewhere:
        where = f"{name} is on {', '.join(elsewhere)}, not on {request['proxy']}"
        raise Stop(f"{where}: leave out proxy=, or terminate it first ({play('terminate_instance', instance=name)})")
    there = [claim["instance"] for part in found["parts"] for claim in part["claims"]]
    first = dict(before=there, new=not owners.holders(answers, name)[0])
    # What a node refused for lack of room may be there at the next look.
    kept = [one for one in refused if one["failure"].get("unfit")]
    return dict(first, **dict(before, visits=found["visits"], refused=kept, looked=True))


class Given(NamedTuple):
    """What the visited nodes gave: `parts`; `refused`, dicts of item and failure of those without room; and as texts
    `broken`, those that failed otherwise, and `fewer`, those that gave less than asked.
    """

    parts: List[Part]
    refused: List[Dict[str, Any]]
    broken: List[str]
    fewer: List[str]


def claimed(
    request: Request,
    answers: Sequence[Answer],
    plan: Plan,
    said: Mapping[str, Mapping[str, Any]],
    wait: Wait,
    without: Iterable[str] = (),
) -> Plan:
    """Return what came of the visits of a plan.

    :param answers: those from which the plan was made; none if nobody was asked.
    :param said: {node: result of module `instance`} of the visits.
    :returns: the plan: parts; placed, whether they are all of the request; again, whether others were just quicker and
        a second look is worth it; surplus, parts to give back; waits; text, why not all is placed; ending, as a word of
        endings.py; lines for people.
    :raises Stop: a node cannot be reached any more, or the only node failed.
    """
    if plan.get("placed") and not plan["visits"]:
        return dict(plan, surplus=[])
    parts, refused, broken, fewer = _given(request, plan, said, without)
    held = {claim["instance"] for part in parts for claim in part["claims"]}
    placed = not broken and len(held) >= (1 if request["partial"] else len(names_of(request)))
    tried = _newest(refused, plan.get("tried", ()))
    again = not (placed or broken) and bool(plan["visits"])
    if again and plan.get("looked_again"):  # others may have what these nodes keep for somebody
        asked = [*tried, *plan["visits"]]
        again = not plan.get("waits") and _have_room(request, answers, {one["item"] for one in asked})
    plan = dict(plan, parts=parts, refused=refused, placed=placed, again=again, looked_again=True, lines=[])
    plan["tried"] = tried if again else []
    # All or nothing: only what was there at the first look stays. The only node gives back by itself.
    keep = None if placed or again else plan.get("before", [])
    known = answers if wait.check or not plan["looked"] else _with(answers, parts)
    plan["surplus"] = _holders(known, request, keep)[1]
    if broken or placed or not plan["looked"]:
        ending = endings.of_all([said[visit["item"]] for visit in plan["visits"]]) if broken else endings.GIVEN
        return dict(plan, waits=False, text="; ".join(broken), ending=ending)
    found = _schedule(request, answers, tried)
    found["text"] = "\n  ".join([found["text"], *fewer])
    return dict(plan, waits=False, text=found["text"]) if again else dict(plan, **wait.goes_on(request, plan, found))


def _newest(refused: Sequence[Dict[str, Any]], before: Iterable[Dict[str, Any]]) -> list[Dict[str, Any]]:
    """Return refusals with those of an earlier round, of nodes that have not refused again."""
    items = {one["item"] for one in refused}
    return [*refused, *(one for one in before if one["item"] not in items)]


def _have_room(request: Request, answers: Sequence[Answer], asked: Container[str]) -> bool:
    """Return whether nodes that were not asked yet look as if they could serve a request."""
    left = [answer for answer in answers if answer["item"] not in asked]
    return bool(left and _schedule(request, left, [])["enough"])


def _given(request: Request, plan: Plan, said: Mapping[str, Mapping[str, Any]], without: Iterable[str]) -> Given:
    """Return what the visited nodes gave; raise Stop as `claimed` does."""
    names = names_of(request)
    given = Given([], list(plan["refused"]), [], [])
    for visit in plan["visits"]:
        node, result = visit["item"], said[visit["item"]]
        failure = result.get("failure") or {}
        if result.get("unreachable"):
            raise Stop(_left_behind(request, plan, node, words_of(result), without), ending=endings.OWNER)
        if failure.get("rejected") and "step" not in result:
            given.refused[:] = [one for one in given.refused if one["item"] != node]
            given.refused.append(dict(item=node, failure=failure))
        elif _failed(result):
            if not plan["looked"]:  # the only node has said what it took back, and what stays claimed
                raise Stop(words_of(result), result)
            given.broken.append(f"{node}: {words_of(result)}")
        else:
            claims = [claim for claim in result["instances"] if claim.get("instance") in names]
            boards = [claim["board"] for claim in claims if "board" in claim]
            part = dict(item=node, kind=visit["kind"], numbers=visit["numbers"], claims=claims, boards=boards)
            given.parts.append(part)
            asked, there = len(visit["numbers"]) or len(names), len({claim["instance"] for claim in claims})
            if there < asked:
                given.fewer.append(f"{node} gave {there} of the {asked} that it was asked for")
    return given


def confirmed(
    request: Request,
    answers: Sequence[Answer],
    plan: Plan,
    said: Mapping[str, Mapping[str, Any]],
    wait: Wait,
    without: Sequence[str] = (),
) -> Plan:
    """Return what came of the first visits of a plan, as `claimed` does; and where that is all of the request, whose
    the names are, as `settle` does. Of a dry run, which has claimed nothing, `moves` are nodes that would give back.

    :param answers: of all nodes, asked again after the claim. The only node of a site is not asked at all.
    """
    known = [_as_before(answer, request, plan["before"]) for answer in answers if "claims" in answer and plan["looked"]]
    plan = claimed(request, known, plan, said, wait, without)
    if not plan["placed"] or not plan["looked"]:
        return plan
    if wait.check:
        return dict(plan, taken="", moves=sorted(part["item"] for part in plan["surplus"]))
    return settle(request, answers, plan, without)


def _as_before(answer: Answer, request: Request, before: Container[str]) -> Answer:
    """Return an answer without what its owner has claimed of a request since the first look: who claimed it says so.

    What another play of the same owner has claimed meanwhile is not to be given back with this one's.
    """
    names, owner = {name for name in names_of(request) if name not in before}, request["owner"]
    claims = answer["claims"]
    others = [one for one in claims if one["instance"] not in names or not owners.same(one["owner"], owner)]
    return dict(answer, claims=others)


def settle(request: Request, answers: Sequence[Answer], plan: Plan, without: Iterable[str]) -> Plan:
    """Return whose the names are, as another play may have claimed them on another node since this one asked.

    The oldest claim stays, and what was made ready for somebody is never taken away here. NAME-2 of a request for
    several NAMEs may also be an instance of another owner.

    :param answers: of all nodes, asked again after the claim.
    :returns: the plan: surplus, to give back; taken, which owner has a name of it before, or ""; visits, the older
        claims to follow, if there are any; moves, the nodes that any of this is for, or may be after the visits.
    :raises Stop: a node was not asked.
    """
    name, count, owner = request["instance"], request["count"], request["owner"]
    _stop(unasked(answers, name, without), endings.OWNER)
    answers = without_halves(answers, moving(answers))
    others = owners.taken(answers, name, count, owner, numbers_of(request))
    parts, surplus = _holders(answers, request, plan["before"] if others else None)
    moved = others or surplus or {part["item"] for part in parts} != {part["item"] for part in plan["parts"]}
    moves = sorted({part["item"] for part in [*parts, *surplus, *plan["parts"]]}) if moved else []
    visits = parts if moved and not others else []
    taken = dict(taken=owners.as_text(others), ending=endings.REQUEST) if others else dict(taken="")
    return dict(plan, surplus=surplus, visits=visits, moves=moves, **taken)


def _schedule(request: Request, answers: Sequence[Answer], refused: Sequence[Dict[str, Any]]) -> dict[str, Any]:
    # no play of a site with one node needs it, nor most verbs; and Ansible compiles anew what is imported
    from ansible_collections.hetero.compute.plugins.plugin_utils.filters.schedule import schedule

    return schedule(
        answers,
        request["flavor"],
        name=request["instance"],
        count=request["count"],
        partial=request["partial"],
        strategy=request["placement"],
        board=request["board"],
        proxy=request["proxy"],
        boot_source=request["boot_source"],
        image=request["image"],
        owner=request["owner"],
        refused=refused,
        numbers=numbers_of(request),
    )


def _holders(answers: Sequence[Answer], request: Request, keep: Container[str] | None) -> tuple[list[Part], list[Part]]:
    """Return (parts, surplus) of a request, as owners.holders does."""
    name, count, owner = request["instance"], request["count"], request["owner"]
    return owners.holders(answers, name, count, owner, keep, numbers_of(request))


def _left_behind(request: Request, plan: Plan, node: str, why: str, without: Iterable[str]) -> str:
    """Return what is said of a node that went away while it was asked to claim, and how to give back the others' parts.
    """
    name, why = request["instance"], why.rstrip(".")
    if not plan["looked"]:
        return f"{node} cannot be reached: {why}. What it has claimed of {name}, if anything, stays: run this again"
    text = f"{node} cannot be reached any more: {why}. What others gave of {name} stays claimed: run this again"
    # Ending it all would also end what ran under this name before this request.
    if not plan["new"]:
        return text
    end = play("terminate_instance", instance=name, without=",".join([*without, node]))
    return f"{text}, or give it back with {end}"


def _with(answers: Sequence[Answer], parts: Sequence[Part]) -> list[Answer]:
    """Return the answers as they would be now that these parts are claimed."""
    known = {answer["item"]: answer for answer in answers}
    for part in parts:
        answer = known.get(part["item"], dict(item=part["item"], claims=[]))
        made = [claim for claim in part["claims"] if claim.get("created") is not None and "owner" in claim]
        given = {(claim["instance"], claim["created"]) for claim in made}
        others = [claim for claim in answer["claims"] if (claim["instance"], claim["created"]) not in given]
        known[part["item"]] = dict(answer, claims=[*others, *made])
    return list(known.values())


def _failed(result: Mapping[str, Any]) -> bool:
    """Return whether module `instance` failed, by its own words: the play sets the task's `failed`."""
    return "msg" in result or "instances" not in result


def _stop(why: str, ending: str = endings.REQUEST) -> None:
    """Raise Stop if there is a reason."""
    if why:
        raise Stop(why, ending=ending)
