# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check several boards side by side, each in a process of its own: one that a request wants is off and free at once,
whatever the others do. checks.py checks one.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Iterator, Mapping, Sequence

from ...core.child import Child
from ...core.deadline import Deadline
from ...core.errors import BadInput, HeteroError
from ...core.lines import line
from ...core.readiness import readable
from ...scheduling.fit import grouped
from ..records.proxy import Proxy
from . import checks
from .checks import CheckRequest

#: Boards that are checked at the same time, each by a process of some 20 MB. How many boot at once is the proxy's limit
#: (boots_at_once), which counts them with all other boots.
AT_ONCE = 8
UNFORESEEN = "see the traceback in what this process wrote to its standard error"
NONE_CAN_BE = "no board can be checked: {whys}"
#: Reasons that are said why boards are not checked, where all idle ones are.
TOLD = 5


def ids_of(proxy: Proxy, ids: Sequence[int], most: int | None = None) -> list[int]:
    """Return the ids of the boards to check: those that are named, else the idle ones, at most so many.

    :raises BadInput: a board is named twice.
    """
    if len(set(ids)) != len(ids):
        raise BadInput("names a board twice", "boards", "name each once")
    return [proxy.board(one).id for one in ids] or checks.idle(proxy)[0][:most]


def check(
    files: Mapping[str, Any], ids: Sequence[int], request: CheckRequest, at_once: int = AT_ONCE
) -> dict[str, Any]:
    """Check these boards, or all idle ones; return the module's result.

    :param files: as of Proxy.
    :param at_once: how many boards are checked at the same time.
    """
    with Proxy(files, create=not request.check) as proxy:
        wanted, (_can, why) = ids_of(proxy, ids), checks.idle(proxy)
    lines = [] if wanted else [line(None, "", checks.PHASE, none_can_be(why))]
    found = {one["board"]: one for one in results(files, wanted, request, at_once)}
    boards = [found[one] for one in wanted]
    failed = [one for one in boards if one["failed"]]
    done = dict(
        boards=[{key: value for key, value in one.items() if key != "lines"} for one in boards],
        changed=any(one["changed"] for one in boards),
        not_checked={} if ids else why,
        lines=[*lines, *(told for one in boards for told in one["lines"])],
    )
    return dict(done, failed=True, msg="; ".join(one["error"] for one in failed)) if failed else done


def results(
    files: Mapping[str, Any], ids: Sequence[int], request: CheckRequest, at_once: int
) -> Iterator[dict[str, Any]]:
    """Yield the result of each board (checks.check), in the order in which they end."""
    waiting, running = list(ids), {}
    while waiting or running:
        while waiting and len(running) < at_once:
            board = waiting.pop(0)
            running[Child(partial(_one, files, board, request))] = board, Deadline(request.longest)
        done = readable(list(running), min(deadline.left for _board, deadline in running.values()))
        for child in done or [one for one, (_board, deadline) in running.items() if deadline.passed]:
            board, deadline = running.pop(child)
            yield _answer(child, board, deadline)


def _one(files: Mapping[str, Any], board: int, request: CheckRequest) -> dict[str, Any]:
    with Proxy(files, create=not request.check) as proxy:
        return checks.check(proxy, board, request)


def _answer(child: Child, board: int, deadline: Deadline) -> dict[str, Any]:
    """Return what a child found; one that broke off has failed, and the next check takes its board up."""
    name = f"board{board}"
    try:
        answer: dict[str, Any] = child.answer(deadline, name, UNFORESEEN)
    except HeteroError as error:
        return dict(
            board=board, name=name, instance=None, changed=True, failed=True, error=str(error), tests=[], lines=[],
            wanted_by=None,
        )  # fmt: skip
    return answer


def none_can_be(why: Mapping[str, str]) -> str:
    """Return the text that no board can be checked.

    :param why: {name of a board: why it is not checked}.
    """
    return NONE_CAN_BE.format(whys=_whys(why))


def _whys(why: Mapping[str, str]) -> str:
    names: dict[str, list[str]] = {}
    for name, text in why.items():
        names.setdefault(text, []).append(name)
    told = grouped(("boards", name, (text,)) for text in list(names)[:TOLD] for name in names[text])
    left = sum(len(names[text]) for text in list(names)[TOLD:])
    return "; ".join([*told, *([f"{left} more"] if left else [])]) or "the boards file names none"
