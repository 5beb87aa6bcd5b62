# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.reconcile_table`: what reconcile found of boards, containers and GPUs, in one table."""

from __future__ import annotations

from typing import Any, Iterator, Sequence

from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.kinds import OF_HOSTS
from ansible_collections.hetero.compute.plugins.plugin_utils.columns import GAP, aligned, left_beside, wrapped

HEADING = ("NODE", "RECORD", "INSTANCE", "OUTLET", "SSH", "FOUND", "DONE")
AS_RECORDED = [{"found": "as recorded", "done": ""}]
WOULD = "would be "
UNNAMED = "of no board in the boards file"


def rows_of(board: dict[str, Any], check: bool = False) -> Iterator[tuple[str, ...]]:
    """Yield a row for each finding of a board. Only the first row names the board."""
    first = [board[key] or "-" for key in ("name", "recorded", "instance", "power", "ssh")]
    for number, found in enumerate(board["found"] or AS_RECORDED):
        own = first if number == 0 else [""] * len(first)
        said = ": not touched" in found["found"]
        done = ("" if said else "not touched") if found["done"] is None else found["done"]
        if check and found["done"] and not done.startswith(WOULD):
            done = WOULD + done
        yield (*own, found["found"], done)


def summed_up(
    kind: str, records: Sequence[dict[str, Any]], check: bool = False, others: Sequence[str] = ()
) -> list[str]:
    """Return `10 boards: 8 as recorded, 2 mended, 0 to look at`; "" if there is nothing.

    A record of which something was mended and something else is to be looked at counts in both.

    :param others: further findings in words, with their numbers (`1 of no board in the boards file`).
    """
    fine = sum(not record["found"] for record in records)
    done = [[found["done"] for found in record["found"]] for record in records]
    to_see = sum(None in each for each in done)
    mended = f"{sum(any(each) for each in done)} {WOULD if check else ''}mended"
    named = f"1 {kind[:-1]}" if len(records) == 1 else f"{len(records)} {kind}"
    sums = [f"{named}: {fine} as recorded, {mended}, {to_see} to look at"] if records else []
    return ["; ".join([*sums, *others])] if sums or others else []


def fitted(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield rows as lines of at most WIDTH characters, unless a word is longer.

    A long row's last two cells come below.
    """
    left = left_beside([row[:-2] for row in rows])
    short = [row for row in rows if len(GAP.join(row[-2:])) <= left]
    found = max((len(row[-2]) for row in short), default=0)
    beside = [row in short and found + len(GAP) + len(row[-1]) <= left for row in rows]
    lines = aligned([row if fits else (*row[:-2], "", "") for row, fits in zip(rows, beside)])
    for line, row, fits in zip(lines, rows, beside):
        if line:
            yield line
        if not fits:
            yield from wrapped(": ".join(filter(None, row[-2:])))


def _counted(found: Sequence[str], what: str) -> list[str]:
    """Return [`2 without a claim`], or [] for none."""
    return [f"{len(found)} {what}"] if found else []


def _called(instances: Sequence[dict[str, Any]]) -> str:
    """Return what people call instances of these kinds."""
    kinds = {instance["kind"] for instance in instances}
    return " and ".join(OF_HOSTS[kind].several for kind in sorted(kinds, reverse=True))


def gpu_rows(results: Sequence[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each finding of gpu_reconcile."""
    for result in results:
        for one in result["findings"]:
            node = f"{result['item']} {one['address']}" if one["address"] else result["item"]
            done = one["error"] or one["done"] or "not touched"
            yield (node, "-", one["container"] or "-", "-", "-", f"{one['kind']}: {one['found']}", done)


def domain_rows(results: Sequence[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each device that host_reconcile found at a domain of no instance, or at no domain."""
    for result in results:
        for one in result["domains"]:
            done = one["done"] or "not touched"
            yield (f"{result['item']} {one['address']}", "-", one["domain"], "-", "-", one["found"], done)


def reconcile_table(results: Any, hosts: Any = (), gpus: Any = (), check: bool = False) -> list[str]:
    if isinstance(results, (str, dict)) or not all(
        isinstance(one, dict) and "others" in one for one in [*results, *hosts]
    ):
        raise AnsibleFilterError("hetero.compute.reconcile_table needs lists of results of board_ and host_reconcile")
    boards = [board for one in results for board in one["boards"]]
    instances = [instance for one in hosts for instance in one["instances"]]
    rows = [row for record in boards + instances for row in rows_of(record, check)]
    of_no_board = [f"{UNNAMED}, not touched: {text}" for one in results for text in one["others"]]
    of_nobody = [f"on {one['item']}, not touched: {text}" for one in hosts for text in one["others"]]
    return [
        *fitted([HEADING, *rows, *domain_rows(hosts), *gpu_rows(gpus)]),
        *(line for text in of_no_board + of_nobody for line in wrapped(text, first="")),
        *summed_up("boards", boards, check, _counted(of_no_board, UNNAMED)),
        *summed_up(_called(instances), instances, check, _counted(of_nobody, "without a claim")),
        *([f"{sum(len(one['findings']) for one in gpus)} findings about GPUs"] if gpus else []),
    ]
