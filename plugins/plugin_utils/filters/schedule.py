# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.schedule`: whom to ask for a flavor, in which order, and why nobody else, by the rules of
module_utils/_hetero/scheduling/schedule.py.
"""

from __future__ import annotations

from typing import Any, Collection, Iterable, Sequence

from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.fit import TOLERANCE
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.flavor_check import validate
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.nodes import (
    Verdict,
    no_board,
    verdicts,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.schedule import (
    SPREAD,
    Schedule,
    missing_of,
    plan,
    refusals,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.owners import (
    as_text,
    holders,
    mixed,
    names_of,
    same,
    taken,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.without_claims import unclaimed

NO_LOOP = (
    "hetero.compute.schedule needs, with name, results of board_info and host_info of a loop over nodes, which say by "
    "item whose each is"
)


def schedule(
    nodes: Any,
    flavor: dict[str, Any],
    name: str | None = None,
    count: int = 1,
    partial: bool = False,
    strategy: str = SPREAD,
    board: Any = None,
    boot_source: str = "nfs",
    image: str | None = None,
    owner: str | None = None,
    refused: Iterable[dict[str, Any]] = (),
    proxy: str | None = None,
    tolerance: float = TOLERANCE,
    numbers: Collection[int] = (),
) -> dict[str, Any]:
    if isinstance(nodes, (str, dict)):
        raise AnsibleFilterError("hetero.compute.schedule needs a list of results of board_info and host_info")
    try:
        validate(flavor)
        who, nodes = name or "somebody", list(nodes)
        board = None if board in (None, "") else int(board)
        offering = [one for one in nodes if not proxy or one.get("item") == proxy]
        found = verdicts(flavor, offering, board, tolerance, boot_source == "disk", image)
        asked = [one for one in nodes if "claims" in one] if name else []
        if not all("item" in one for one in asked):
            raise AnsibleFilterError(NO_LOOP)
        missing = missing_of(holders(asked, who, count, owner, numbers=numbers)[0], who, count, numbers)
        others = taken(asked, who, count, owner, numbers) if name and owner else []
        # Made anew on another node, or on one that it has left, it would exist twice, and be empty for its tenant.
        lost = unclaimed(asked, {who, *names_of(who, count, numbers)}, moved=not missing)
        names = names_of(who, count, numbers)
        against = as_text(others) if others else "; ".join(lost) or _mixed(asked, who, names, owner, missing)
        one = Schedule(flavor, found, len(missing), strategy, partial, refusals(refused), no_board(board, offering))
        return dict(
            candidates=[_shown(node, room=node.room) for node in one.candidates],
            rejected=[_rejected(node, *one.reasons(node)) for node in one.rejected],
            room=one.room,
            enough=one.enough and not against,
            possible=one.possible and not against,
            some=one.some and not against,
            most=0 if against else one.most,
            could=one.could,
            text=against or one.text(who, len(names)),
            wants=one.wants(who, len(names)),
            waiting=one.waiting(),
            taken=others,
            **dict(plan(one, asked, who, count, owner, numbers), **({"visits": []} if against else {})),
        )
    except BadInput as error:
        raise AnsibleFilterError(f"hetero.compute.schedule: {error}") from error


def _mixed(
    asked: Sequence[dict[str, Any]], who: str, names: list[str], owner: str | None, missing: Collection[str]
) -> str:
    """Return why a name for one instance and several is refused, or "". Nothing is refused if all instances exist."""
    ours = [claim for one in asked for claim in one["claims"] if same(claim["owner"], owner)]
    found = mixed([claim for claim in ours if missing or claim["instance"] in names], who, names)
    return "{}: {}: {}".format(*found) if found else ""


def _rejected(node: Verdict, reasons: Iterable[str], never: bool) -> dict[str, Any]:
    return _shown(node, reasons=list(reasons), never=never)


def _shown(node: Verdict, **more: Any) -> dict[str, Any]:
    return dict(owner=node.owner, kind=node.kind, name=node.name, **more)
