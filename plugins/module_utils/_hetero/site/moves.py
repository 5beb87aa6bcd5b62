# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An instance that moves from one compute host to another has a claim on each, of one name and one time: which of the
two is the instance at present, and what people read of it.
"""

from __future__ import annotations

from typing import Any, Collection, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

from ..core.errors import Refused
from ..core.plays import play
from .instance_states import ARRIVING, ENDING, HALVES, LEAVING
from .owners import is_of

#: Phase of the events of a move, and the last one on the host that an instance has left.
PHASE, GONE = "move", "its root here is removed, for it has moved to {host}"
#: Notes of the two claims.
TO, FROM, WAS_OFF = "moves to {host}", "moves from {host}", ", and did not run"
GOES_ON = f"{play('migrate_instance', instance='{name}')} goes on"
MOVES = f"{{name}} moves from {{leaves}} to {{arrives}}: {GOES_ON}"
#: What is said, and can be typed, of one whose end was begun on one of its hosts, and cut off.
ENDED = "its end was begun on {node}"
END = f"{play('terminate_instance', instance='{name}')} ends all of it"
BACK = play("migrate_instance", instance="{name}", back="true")
OR_BACK = f", or, by an operator's word, {BACK} has it on {{leaves}} again, as it was there"

#: A node's answer, with the node as `item`; and what people and plays read of a claim.
Result = Mapping[str, Any]
Claim = Mapping[str, Any]
#: A claim, after its node.
There = Tuple[str, Claim]


class Move(NamedTuple):
    """The two claims of an instance that moves.

    :param leaves, arrives: the nodes, by their names in the inventory.
    :param of, to: the claims there.
    :param was_started: whether it may have run on the new host, and has not ended there: the new claim is the instance
        since.
    """

    instance: str
    leaves: str
    arrives: str
    of: Claim
    to: Claim
    was_started: bool

    @property
    def told(self) -> str:
        """Return in words that it moves, and how that goes on."""
        return self.ended or MOVES.format(name=self.instance, leaves=self.leaves, arrives=self.arrives)

    @property
    def ended(self) -> str:
        """Return in words that its end was begun, and what to do; "" where it was not.

        Where only its former root was being removed, as it runs on the new host, that is no end of it.
        """
        if ENDING not in (self.to["state"], self.of["state"]) or self.was_started:
            return ""
        node = self.arrives if self.to["state"] == ENDING else self.leaves
        ways = f"{END}{OR_BACK if self.goes_back else ''}".format(name=self.instance, leaves=self.leaves)
        return f"{self.instance}: {ENDED.format(node=node)}: {ways}"

    @property
    def goes_back(self) -> bool:
        """Return whether it can be where it was: nothing is removed there."""
        return bool(self.of["state"] != ENDING)

    def is_of(self, request: str) -> bool:
        """Return whether it is the instance of that name, or one of that request."""
        return is_of(self.of, request)

    @property
    def half(self) -> Tuple[str, Claim]:
        """Return (node, claim) of the half that is not the instance at present."""
        return (self.leaves, self.of) if self.was_started else (self.arrives, self.to)


def leaving_note(host: str, ran: bool) -> str:
    """Return the note of a claim in state LEAVING.

    :param host: to which it moves.
    :param ran: whether it is to run again if it goes back.
    """
    return TO.format(host=host) + ("" if ran else WAS_OFF)


def host_of(note: str) -> str:
    """Return to which host an instance moves, by the note of the claim that leaves."""
    begin = TO.partition("{")[0]
    return note[len(begin) :].partition(",")[0] if note.startswith(begin) else ""


def comes_from(note: str) -> str:
    """Return from which host an instance moves, by the note of the claim that arrives."""
    begin = FROM.partition("{")[0]
    return note[len(begin) :] if note.startswith(begin) else ""


def ran(note: str) -> bool:
    """Return whether an instance ran before it left, by the note of its claim."""
    return not note.endswith(WAS_OFF)


def is_half(state: str, note: str) -> bool:
    """Return whether a claim is one of those of an instance that moves, also where its end was begun there."""
    return state in HALVES or (state == ENDING and bool(note))


def is_whole(claim: Claim) -> bool:
    """Return whether the root was made for a claim: of one that arrives, it was copied as a whole."""
    return bool(claim.get("image_hash"))


def must_not_move(instance: str, state: str, note: str) -> None:
    """Raise Refused where an instance moves, by one of its two claims."""
    if is_half(state, note):
        raise Refused(note or state, instance, GOES_ON.format(name=instance))


def moving(results: Iterable[Result], key: str = "claims") -> List[Move]:
    """Return the moves of instances of which several nodes have a claim; of one instance that which goes on is first.

    :param results: of host_info, each with its node as `item`.
    :param key: where in them the claims are.
    """
    found: dict[tuple[str, float], list[There]] = {}
    for result in results:
        for claim in result.get(key) or ():
            if "created" in claim and claim.get("state") is not None:
                found.setdefault((claim["instance"], claim["created"]), []).append((str(result["item"]), claim))
    return [move for (instance, _created), there in sorted(found.items()) for move in _moves(instance, there)]


def _moves(instance: str, there: Sequence[There]) -> List[Move]:
    """Return the moves of one instance: one; and one more for each further host at which a run was killed that had just
    claimed there what it needs, beside another run. It never ran there.

    Where it comes to several hosts from one that has no claim of it, it is where its root is whole.
    """
    comes = [one for one in there if one[1]["state"] == ARRIVING]
    comes.sort(key=lambda one: (not is_whole(one[1]), one[0]))
    here, told = [one for one in there if one not in comes], []
    if len(here) == 2:
        to = _arrives(here)
        if to is None:
            return []
        of = next(one for one in here if one is not to)
        told = [Move(instance, of[0], to[0], of[1], to[1], to[1]["state"] != ENDING)]
        here = [to if told[0].was_started else of]
    elif not here:
        here, comes = comes[:1], comes[1:]
    if len(here) != 1:  # a node lies
        return []
    node, claim = here[0]
    comes.sort(key=lambda one: bool(one[1].get("mover") != claim.get("mover")))  # by the run that switched it off
    return told + [Move(instance, node, arrives, claim, comer, False) for arrives, comer in comes]


def _arrives(both: Sequence[There]) -> There | None:
    """Return which of two claims of an instance, none of them arriving, is where it moves to; None where it does not
    move.
    """
    leaves, ends = ([one for one in both if one[1]["state"] == state] for state in (LEAVING, ENDING))
    if len(leaves) == 1:
        return next(one for one in both if one is not leaves[0])
    if ends and both[0][1].get("name") != both[1][1].get("name"):  # else a node is asked by two names
        return next((one for one in both if one not in ends), both[1])
    return None


def without_halves(results: Iterable[Result], moves: Collection[Move], key: str = "claims") -> List[dict[str, Any]]:
    """Return answers without the halves of instances that move: each is there once."""
    left_out = {(node, claim["instance"], claim["created"]) for node, claim in (move.half for move in moves)}
    return [
        {
            **result,
            key: [
                claim
                for claim in result.get(key) or ()
                if (str(result["item"]), claim["instance"], claim.get("created")) not in left_out
            ],
        }
        if key in result
        else dict(result)
        for result in results
    ]
