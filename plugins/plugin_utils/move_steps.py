# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a play decides about an instance that is to move to another compute host: to which one (`target`), and where it
is from then on (`moved`).

They are steps as those of request_steps.py, which finds the instance.
"""

from __future__ import annotations

import secrets
from typing import Any, Iterable, Iterator, Mapping, Sequence

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.plays import play
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import one_line
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.spelling import like
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.kinds import BOARD, CONTAINER
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.moves import GOES_ON
from ansible_collections.hetero.compute.plugins.plugin_utils.heard import words_of
from ansible_collections.hetero.compute.plugins.plugin_utils.request_steps import Answer, Plan, Stop

SEVERAL = "{name} is {count} instances, and one at a time moves: name it, such as -e instance={first}"
ELSEWHERE = "{name} moves to {arrives} already, not to {node}: leave out node="
TAKE_BACK = ", or take that back: {back}"
NO_WAY_BACK = "{name} is on {arrives}, and what it had on {leaves} is being removed: nothing is taken back; {goes_on}"
NO_MOVE = "{name} does not move, so there is nothing to take back"
NOT_OF_A_BOARD = (
    "{name} has a board of {here}, and back=true takes the move of a container or guest back: leave it out, and name "
    "the board to move to: -e board=ID"
)
LEFT = (
    "{name} leaves {leaves} for {arrives}, which was not asked, and may have started it: have that in the inventory, "
    "and leave it out by no without="
)
UNCLAIMED = (
    "{name} leaves {leaves} for {arrives}, which has something of it without a claim, and may run it: nothing of it is "
    "started or copied elsewhere: {text}"
)
NOT_ASKED = (
    "{name} moves from {leaves} to {arrives}, and was never started there: it goes on where {leaves} is asked too: "
    "have that in the inventory, and leave it out by no without=; where it is lost for good, set it up anew under its "
    "name"
)
BESIDE = (
    "{name} moves from {leaves} to {arrives}, and {leaves} has something of it without a claim: its copy is not "
    "started beside that: {text}"
)
OLDER = (
    "{name} has a root on {leaves}, and a whole one on {arrives} that is no copy of it: which of the two is newer only "
    "people can say, and nothing is started, copied or removed: once it is known that nobody needs the one on "
    "{arrives}, {end_new} ends it, and {goes_on}; or, where that is so of the one on {leaves}, {end_old} ends that"
)
STARTS_OTHER = ", and {goes_on} with the other one"
COPIES = (
    "{name} comes from {leaves}, and its root is whole on {arrives} and on {other}: which of the two is newer only "
    "people can say: leave out the node of the other one, -e without=NODE"
)
NO_FORMER = (
    "{name} came to {leaves} and to {arrives} from a host that has no claim of it any more: nothing is taken back; "
    "{goes_on}"
)
NOTHING_THERE = "{name} has nothing on {leaves} any more: nothing is taken back; {goes_on}"
TAKEN = "its root is whole on {arrives}, and {leaves} has nothing of it any more: it is started here"
NO_HOST = "node is {node}: give the name of a GPU host or KVM host, such as -e node={near}"
NO_BOARD = "{name} is a {kind} on {here}, and board is {board}: leave it out, or name the host: -e node=HOST"
OF_A_BOARD = "{name} has a board of {here}, and node is {node}: name another board of it: -e board=ID"
NO_ANSWER = "{node} cannot be asked: {why}"
NOWHERE = "{name} cannot move: {why}"
ALONE = "the site has no other GPU host or KVM host"
IS_THERE = "{name} is on {node} already"
MOVES = "moves from {leaves} to {arrives}: {mib} MiB of its root are copied"


def target(
    request: Mapping[str, Any],
    answers: Sequence[Answer],
    plan: Plan,
    came: Mapping[str, Any],
    node: str,
    back: bool = False,
) -> Plan:
    """Return to which host an instance moves.

    :param answers: of all nodes, on all that they have.
    :param plan: of step `find`.
    :param came: what the host that it leaves says of it (module instance_copy, step described), or the one to which it
        moves, where that alone has a claim; {} where it was started on the other one already.
    :param node: the host that is wanted; "" for any.
    :param back: whether it is to be where it was, and its move is to be given up.
    :returns: the plan: leaves and arrives, by their names in the inventory; copies, whether its root is yet to be
        copied; run, by which the hosts tell this run of the playbook from others, or that of the claim on the host that
        it leaves, where it only goes on; left_by and came_by, the runs that the claims on the two hosts named at this
        look; goes_back; lines for people.
    :raises Stop: it cannot move, or not there; or a host that may have started it was not asked.
    """
    name, claims = request["instance"], [claim for part in plan["parts"] for claim in part["claims"]]
    kind, board, here = plan["parts"][0]["kind"], request.get("board") or "", plan["parts"][0]["item"]
    if kind == BOARD.name and back:
        raise Stop(NOT_OF_A_BOARD.format(name=name, here=here))
    if kind == BOARD.name:
        raise Stop(OF_A_BOARD.format(name=name, here=here, node=one_line(node)[:60]))
    if board:
        raise Stop(NO_BOARD.format(name=name, kind=kind, here=here, board=one_line(board)[:60]))
    if len(claims) != 1:
        first = sorted(claim["instance"] for claim in claims)[0]
        raise Stop(SEVERAL.format(name=name, count=len(claims), first=first))
    name = claims[0]["instance"]
    if came.get("comes_from"):
        _must_be_whole_here_alone(name, plan, came["comes_from"])
        return _without_its_former_host(name, answers, came["comes_from"], here, node, back)
    if plan.get("moves"):
        to = _goes_on(name, plan["moves"][0], came, node, back)
        if to["copies"] or back:
            _must_be_nowhere_else(name, answers, to["leaves"], came.get("other") or plan["moves"][0]["left_for"])
        return to
    left_for = came.get("other") or ""
    _must_be_nowhere_else(name, answers, here, left_for)
    left_by = claims[0].get("mover") or ""
    if back and left_for:
        by = dict(run=_new_run(), left_by=left_by, came_by="")
        return dict(by, leaves=here, arrives="", copies=False, goes_back=True, lines=[])
    if back:
        raise Stop(NO_MOVE.format(name=name))
    if node == here:
        lines = [IS_THERE.format(name=name, node=node)]
        by = dict(run="", left_by="", came_by="")
        return dict(by, leaves="", arrives=here, copies=False, goes_back=False, lines=lines)
    arrives = _chosen(name, answers, here, came, node)
    told = MOVES.format(leaves=here, arrives=arrives, mib=-(-int(came["bytes"]) >> 20))
    lines = [f"{name:<7} {told}"]
    by = dict(run=_new_run(), left_by=left_by, came_by="")
    return dict(by, leaves=here, arrives=arrives, copies=True, goes_back=False, lines=lines)


def _goes_on(name: str, move: Mapping[str, Any], came: Mapping[str, Any], node: str, back: bool) -> Plan:
    """Return the plan for an instance that moves already, of which both hosts have a claim."""
    leaves, arrives = move["leaves"], move["arrives"]
    if move["ended"] and not (back and move["goes_back"]):
        raise Stop(move["ended"])
    if back and (move["is_alone"] or not move["goes_back"]):
        goes_on, why = GOES_ON.format(name=name), NO_FORMER if move["is_alone"] else NO_WAY_BACK
        raise Stop(why.format(name=name, arrives=arrives, leaves=leaves, goes_on=goes_on))
    if not back:
        _must_be_no_older_root(name, move, came)
    if node not in ("", arrives) and not back:
        word = play("migrate_instance", instance=name, back="true")
        way = TAKE_BACK.format(back=word) if move["goes_back"] else ""
        raise Stop(ELSEWHERE.format(name=name, arrives=arrives, node=node) + way)
    copies = not back and not move["was_started"]
    by = dict(run=_new_run() if copies or back else move["mover"], left_by=move["mover"], came_by=move["came_by"])
    return dict(by, leaves=leaves, arrives=arrives, copies=copies, goes_back=back, lines=[])


def _must_be_no_older_root(name: str, move: Mapping[str, Any], came: Mapping[str, Any]) -> None:
    """Raise Stop where there is a whole root on the new host that is no copy of the former one as it left: a move there
    was taken back while that host was away, or the host was lost since, and is there again as it was before. What its
    tenant wrote since is in the former root alone. Of a move that an earlier release began nobody knows it.
    """
    if move["was_started"]:
        may_be, departure = bool(move["left_for"]), move["departure"]
    else:
        may_be, departure = move["is_whole"], came.get("departure")
    if may_be and (not departure or departure != move["came_of"]):
        leaves, arrives = move["leaves"], move["arrives"]
        words = dict(name=name, leaves=leaves, arrives=arrives, goes_on=GOES_ON.format(name=name))
        words["end_new"] = play("terminate_instance", instance=name, without=leaves)
        words["end_old"] = play("terminate_instance", instance=name, without=arrives)
        raise Stop((OLDER + ("" if move["was_started"] else STARTS_OTHER)).format(**words))


def _must_be_whole_here_alone(name: str, plan: Plan, leaves: str) -> None:
    """Raise Stop where several hosts have a whole copy of the root of an instance whose former host has no claim."""
    for move in plan.get("moves") or ():
        if move["is_whole"]:
            raise Stop(COPIES.format(name=name, leaves=leaves, arrives=move["leaves"], other=move["arrives"]))


def _without_its_former_host(
    name: str, answers: Sequence[Answer], leaves: str, arrives: str, node: str, back: bool
) -> Plan:
    """Return the plan for an instance whose root was copied as a whole, and of which its new host alone has a claim:
    the former one was lost meanwhile, and set up anew. What is on the new host may be all that there is of it.
    """
    words = dict(name=name, leaves=leaves, arrives=arrives)
    if leaves not in {answer["item"] for answer in answers}:
        raise Stop(NOT_ASKED.format(**words))
    for text in _without_a_claim(name, answers, leaves):
        raise Stop(BESIDE.format(**words, text=text))
    if back:
        raise Stop(NOTHING_THERE.format(name=name, leaves=leaves, goes_on=GOES_ON.format(name=name)))
    if node not in ("", arrives):
        raise Stop(ELSEWHERE.format(name=name, arrives=arrives, node=node))
    by = dict(run="", left_by="", came_by="")
    lines = [f"{name:<7} {TAKEN.format(leaves=leaves, arrives=arrives)}"]
    return dict(by, leaves="", arrives=arrives, copies=False, goes_back=False, lines=lines)


def _new_run() -> str:
    """Return what no other run of the playbook has; a letter goes before, or Ansible would make numbers of some."""
    return f"r{secrets.token_hex(8)}"


def _must_be_nowhere_else(name: str, answers: Sequence[Answer], here: str, left_for: str) -> None:
    """Raise Stop where the host to which an instance was on its way may run it: that was not asked, or has it, and does
    not know of it in its database. So it may, too, where the instance has a claim on a third host by another run.
    """
    if left_for and left_for not in {answer["item"] for answer in answers}:
        raise Stop(LEFT.format(name=name, leaves=here, arrives=left_for))
    for text in _without_a_claim(name, answers, left_for):
        raise Stop(UNCLAIMED.format(name=name, leaves=here, arrives=left_for, text=text))


def _without_a_claim(name: str, answers: Sequence[Answer], node: str) -> Iterator[str]:
    """Yield what a node has of an instance that its database does not know."""
    for answer in answers:
        if answer["item"] == node:
            there = [one for one in answer.get("unclaimed") or () if one["instance"] == name and not one.get("half")]
            yield from (one_line(one["text"]) for one in there)


def _chosen(name: str, answers: Sequence[Answer], here: str, came: Mapping[str, Any], node: str) -> str:
    """Return the best host for an instance, other than the one where it is."""
    hosts = [answer for answer in answers if "hypervisors" in answer and answer["item"] != here]
    if node:
        asked = next((answer for answer in answers if answer["item"] == node), None)
        if asked is not None and "claims" not in asked:
            raise Stop(NO_ANSWER.format(node=node, why=words_of(asked)))
        names = [answer["item"] for answer in hosts]
        if node not in names:
            raise Stop(NO_HOST.format(node=one_line(node)[:60], near=like(node, names) or "HOST"))
        hosts = [answer for answer in hosts if answer["item"] == node]
    if not hosts:
        raise Stop(NOWHERE.format(name=name, why=ALONE))
    # as in request_steps.py
    from ansible_collections.hetero.compute.plugins.plugin_utils.filters.schedule import schedule

    found = schedule(hosts, _wanted(came), image=came["image"])
    if not found["visits"]:
        raise Stop(found["text"].replace("somebody", name, 1))
    best: str = found["visits"][0]["item"]
    return best


def _wanted(came: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flavor of an instance, with the architecture of the GPUs that it has."""
    flavor = dict(came["flavor"])
    if came.get("kind") == CONTAINER.section and came["kinds"]:
        flavor["extra_specs"] = {**(flavor.get("extra_specs") or {}), "gpu_arch": f"s== {came['kinds'][0]}"}
        flavor["extra_specs"].pop("capabilities:gpu_arch", None)
    return flavor


def moved(plan: Plan, to: Plan, runs: bool, check: bool) -> Plan:
    """Return the plan of step `find` with the instance where it is after its root was copied, or was not.

    :param to: the plan of step `target`.
    :param runs: whether it is to be started there.
    :param check: whether nothing was done, as in check mode.
    :returns: the plan, with settles, the run that the claim there is to name before its former root is removed.
    """
    at = to["leaves"] if to["goes_back"] else to["arrives"]
    nothing = not runs or (check and bool(to["leaves"]))
    parts: Iterable[Any] = [] if nothing else [dict(part, item=at, boards=[]) for part in plan["parts"]]
    leaves = "" if to["goes_back"] or check else to["leaves"]
    by = dict(run=to["run"], came_by=to["run"] if to["copies"] else to["came_by"])
    return dict(plan, parts=list(parts), leaves=leaves, arrives=to["arrives"], settles=_new_run(), **by)
