# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a play decides about a request, step by step, from what the nodes said: who has it (`find`), whom to ask for it
(`choose`), what came of that (`claimed`), and whose claim stays where two plays asked at once (`settle`).

A step is a function of values: the request, the answers and the plan of the step before. It returns the plan that the
next step, and the tasks between them, go by. Rules of choice are filters/schedule.py's, those of names
module_utils/_hetero/site/owners.py's.
"""

from __future__ import annotations

import time
from typing import Any, Dict, Iterable, List, Mapping, Sequence

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.plays import play
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import owners
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.schedule import schedule
from ansible_collections.hetero.compute.plugins.plugin_utils.heard import ask_for_it, unasked, words_of

#: One module's answer, with the node it is of as `item`.
Answer = Dict[str, Any]
#: What is asked for: instance, owner, flavor, count, partial, placement, board, boot_source, image.
Request = Mapping[str, Any]
#: Which node is asked for which instances, or has them: item, kind, numbers, claims.
Part = Dict[str, Any]
Plan = Dict[str, Any]


class Stop(Exception):
    """The play ends here, and why.

    :param result: of the module that failed, for programs that read the play's result.
    """

    def __init__(self, why: str, result: Mapping[str, Any] | None = None) -> None:
        super().__init__(why)
        self.result = dict(result or {})


def find(
    request: Request, answers: Sequence[Answer], without: Iterable[str], force: bool = False, to: str | None = None
) -> Plan:
    """Who has an instance, or the parts of a request, for a verb on all of it.

    :param answers: of all nodes that may have it.
    :param without: nodes that were left out.
    :param force: also what is another owner's.
    :param to: the verb, where there must be something to do it to.
    :returns: parts, and lines for people.
    :raises Stop: a node was not asked, the instance is another owner's or is there twice, or something of it is there
        of which no claim is known.
    """
    name, owner = request["instance"], request["owner"]
    _stop(unasked(answers, name, without))
    _stop("\n".join(owners.unclaimed(answers)))
    parts, _surplus = owners.holders(answers, name)
    others = sorted({claim["owner"] for part in parts for claim in part["claims"]} - {owner})
    if others and not force:
        whose = ", ".join(others)
        raise Stop(f"{name} belongs to {whose}, not to {owner}: ask {whose}, or add -e force=true")
    _stop("\n".join(owners.twice(answers, name, None if force else owner)))
    if not parts and to:
        raise Stop(f"There is no instance {name} to {to}: {ask_for_it(name)}")
    nowhere = f"{name}: no such instance on {', '.join(answer['item'] for answer in answers)}"
    return dict(parts=parts, lines=[] if parts else [nowhere, *owners.notes(answers)])


def choose(request: Request, answers: Sequence[Answer], without: Iterable[str], before: Plan) -> Plan:
    """Whom to ask for which instances of a request.

    :param before: the plan of the round before; empty in the first.
    :returns: the plan: visits, which are parts to ask for; before, the names that were there at the first look;
        refused, what nodes refused for good.
    :raises Stop: a node was not asked, or several have made what is asked for.
    """
    _stop(unasked(answers, request["instance"], without))
    _stop("\n".join(owners.twice(answers, request["instance"], request["owner"])))
    refused = before.get("refused", [])
    found = _schedule(request, answers, refused)
    there = [claim["instance"] for part in found["parts"] for claim in part["claims"]]
    # What a node refused for lack of room may be there at the next look.
    kept = [one for one in refused if one["failure"].get("unfit")]
    return dict(before, visits=found["visits"], before=before.get("before", there), refused=kept, looked=True)


def alone(part: Part) -> Plan:
    """The plan that asks the only node without a look before: it says itself why it has nothing."""
    return dict(visits=[part], refused=[], looked=False)


def claimed(
    request: Request, answers: Sequence[Answer], plan: Plan, said: Mapping[str, Mapping[str, Any]], wait: Wait
) -> Plan:
    """What came of the visits of a plan.

    :param answers: those that the plan was made from; none where nobody was asked.
    :param said: {node: result of module `instance`} of the visits.
    :returns: the plan: parts; placed, whether they are all of the request; again, whether others were just quicker and
        a second look is worth it; surplus, parts to give back; waits; text, why not all is placed; lines for people.
    :raises Stop: a node cannot be reached any more, or the only node failed.
    """
    if plan.get("placed") and not plan["visits"]:
        return dict(plan, surplus=[])
    names = owners.names_of(request["instance"], request["count"])
    parts: List[Part] = []
    refused, broken = list(plan["refused"]), []
    for visit in plan["visits"]:
        node = visit["item"]
        result = said[node]
        if result.get("unreachable"):
            raise Stop(_left_behind(request, plan, node, words_of(result)))
        failure = result.get("failure") or {}
        if "rejected" in failure and "step" not in result:
            refused = [one for one in refused if one["item"] != node] + [dict(item=node, failure=failure)]
        elif failed(result):
            if not plan["looked"]:  # the only node has said what it took back, and what stays claimed
                raise Stop(words_of(result), result)
            broken.append(f"{node}: {words_of(result)}")
        else:
            given = [claim for claim in result["instances"] if claim["instance"] in names]
            boards = [claim["board"] for claim in given if "board" in claim]
            parts.append(dict(item=node, kind=visit["kind"], numbers=visit["numbers"], claims=given, boards=boards))
    held = {claim["instance"] for part in parts for claim in part["claims"]}
    placed = not broken and len(held) >= (1 if request["partial"] else request["count"])
    again = not (placed or broken or plan.get("looked_again")) and bool(plan["visits"])
    plan = dict(plan, parts=parts, refused=refused, placed=placed, again=again, looked_again=True, lines=[])
    keep = None if placed or again or wait.check else plan.get("before", [])
    # The only node gives back by itself what is not enough.
    known = answers if wait.check or not plan["looked"] else _with(answers, parts)
    plan["surplus"] = owners.holders(known, request["instance"], request["count"], request["owner"], keep)[1]
    if broken:
        return dict(plan, waits=False, text="; ".join(broken))
    if placed or not plan["looked"]:
        return dict(plan, waits=False, text="")
    found = _schedule(request, answers, refused)
    return dict(plan, waits=False, text=found["text"]) if again else dict(plan, **wait.goes_on(request, plan, found))


class Wait:
    """How long a play looks for a node again and again.

    :param minutes: in all; 0 for not at all.
    :param interval: seconds between looks.
    :param check: of a dry run, which waits for nothing and gives nothing back.
    """

    def __init__(self, minutes: float = 0.0, interval: float = 10.0, check: bool = False) -> None:
        self.minutes, self.interval, self.check = minutes, interval, check

    def goes_on(self, request: Request, plan: Plan, found: Mapping[str, Any]) -> Plan:
        """Whether to look again, from what the last look found: waits, text, lines, pause (seconds), until, told.

        Times are of this machine's monotonic clock.
        """
        name, text, told = request["instance"], found["text"], found["waiting"]
        if not self.minutes or self.check or not found["possible"]:
            return dict(waits=False, text=text)
        now, minutes = time.monotonic(), f"{self.minutes:g} min"
        until = plan.get("until", now + 60 * self.minutes)
        left = until - now
        if left <= 0:
            return dict(waits=False, text=f"{text}\n  waited {minutes}")
        lines = []
        if "until" not in plan:
            lines = [f"{name} waits for {request['flavor']['name']}, {minutes} at most: {told}"]
        elif told != plan["told"]:
            lines = [f"{name} waits, {-(-left // 60):.0f} min more at most: {told}"]
        pause = max(1, round(min(self.interval, left)))
        return dict(waits=True, text=text, lines=lines, pause=pause, until=until, told=told)


def settle(request: Request, answers: Sequence[Answer], plan: Plan, without: Iterable[str]) -> Plan:
    """Whose the names are, where another play may have claimed them on another node since this one asked.

    The oldest claim stays, and what was made ready for somebody is never taken away here. Also of names like it: NAME-2
    of one is another's, where somebody asked for several NAMEs.

    :param answers: of all nodes, asked again after the claim.
    :returns: the plan: surplus, to give back; taken, whose a name is where it is another's; visits, the older claims to
        follow, where there are any.
    :raises Stop: a node was not asked.
    """
    name, count, owner = request["instance"], request["count"], request["owner"]
    _stop(unasked(answers, name, without))
    others = owners.taken(answers, name, count, owner)
    if others:
        surplus = owners.holders(answers, name, count, owner, plan["before"])[1]
        return dict(plan, surplus=surplus, taken=owners.as_text(others), visits=[])
    parts, surplus = owners.holders(answers, name, count, owner)
    moved = surplus or {part["item"] for part in parts} != {part["item"] for part in plan["parts"]}
    return dict(plan, surplus=surplus, taken="", visits=parts if moved else [])


def _schedule(request: Request, answers: Sequence[Answer], refused: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return schedule(
        answers,
        request["flavor"],
        name=request["instance"],
        count=request["count"],
        partial=request["partial"],
        strategy=request["placement"],
        board=request["board"],
        boot_source=request["boot_source"],
        image=request["image"],
        owner=request["owner"],
        refused=refused,
    )


def _left_behind(request: Request, plan: Plan, node: str, why: str) -> str:
    """What is said of a node that went away while it was asked to claim, and how the others' parts are given back."""
    name = request["instance"]
    text = f"{node} cannot be reached any more: {why}. What others gave of {name} stays claimed: run this again"
    # Where something of it ran before this request, ending it all would end that, too.
    if plan.get("before") != []:
        return text
    end = play("terminate_instance", instance=name, without=",".join([*plan.get("without", ()), node]))
    return f"{text}, or give it back with {end}"


def _with(answers: Sequence[Answer], parts: Sequence[Part]) -> list[Answer]:
    """The answers as they would be now that these parts are claimed."""
    known = {answer["item"]: answer for answer in answers}
    for part in parts:
        answer = known.get(part["item"], dict(item=part["item"], claims=[]))
        made = [claim for claim in part["claims"] if "created" in claim and "owner" in claim]
        given = {(claim["instance"], claim["created"]) for claim in made}
        others = [claim for claim in answer["claims"] if (claim["instance"], claim["created"]) not in given]
        known[part["item"]] = dict(answer, claims=[*others, *made])
    return list(known.values())


def failed(result: Mapping[str, Any]) -> bool:
    """Whether module `instance` failed: it says why, or not what there is. The task's `failed` is the play's."""
    return "msg" in result or "instances" not in result


def _stop(why: str) -> None:
    """Stop where there is something to say."""
    if why:
        raise Stop(why)
