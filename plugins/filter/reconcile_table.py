# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.reconcile_table`: what was found of boards, containers and GPUs, as one table."""

from __future__ import annotations

from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.filter.status_table import aligned

DOCUMENTATION = r"""
name: reconcile_table
short_description: Show what was found of boards, containers and GPUs as a table
version_added: 0.1.0
author:
  - hetero.compute contributors (@hetero-compute)
description:
  - Turns results of M(hetero.compute.board_reconcile), M(hetero.compute.host_reconcile) and
    M(hetero.compute.gpu_reconcile) into lines with aligned columns, a heading first, and sums last.
positional: _input, hosts, gpus
options:
  _input:
    description: Results of M(hetero.compute.board_reconcile), one for each proxy node.
    type: list
    elements: dict
    required: true
  hosts:
    description: Results of M(hetero.compute.host_reconcile), one for each GPU host.
    type: list
    elements: dict
    default: []
  gpus:
    description: Results of M(hetero.compute.gpu_reconcile), one for each GPU host.
    type: list
    elements: dict
    default: []
seealso:
  - module: hetero.compute.board_reconcile
"""

EXAMPLES = r"""
- name: Show what was found
  hetero.compute.show:
    lines: "{{ found.results | hetero.compute.reconcile_table }}"
# NODE    RECORD     INSTANCE  OUTLET  SSH      FOUND                             DONE
# board0  running    jackie    on      own key  missing: export                   put back
# board1  power off  -         on      -        its outlet is on, and nobody has  off, cleaned, free
# board2  power off  -         off     -        as recorded
# 3 boards: 1 as recorded, 2 mended, 0 to look at
"""

RETURN = r"""
_value:
  description: The lines of the table.
  type: list
  elements: str
"""

HEADING = ("NODE", "RECORD", "INSTANCE", "OUTLET", "SSH", "FOUND", "DONE")
KINDS = {"lxc": "containers", "kvm": "guests"}
AS_RECORDED = [{"found": "as recorded", "done": ""}]


def rows_of(board):
    """A row for each thing found of a board; the board itself stands in the first."""
    first = [board[key] or "-" for key in ("name", "recorded", "instance", "power", "ssh")]
    for number, found in enumerate(board["found"] or AS_RECORDED):
        own = first if number == 0 else [""] * len(first)
        yield (*own, found["found"], "not touched" if found["done"] is None else found["done"])


def summed_up(kind, records):
    """`10 boards: 8 as recorded, 2 mended, 0 to look at`; nothing where there is none."""
    fine = sum(not record["found"] for record in records)
    to_see = sum(any(found["done"] is None for found in record["found"]) for record in records)
    said = f"{len(records)} {kind}: {fine} as recorded, {len(records) - fine - to_see} mended, {to_see} to look at"
    return [said] if records else []


def _called(instances):
    """What people call them."""
    kinds = {instance["kind"] for instance in instances}
    return " and ".join(KINDS[kind] for kind in sorted(kinds, reverse=True))


def gpu_rows(results):
    """A row for each thing that gpu_reconcile found."""
    for result in results:
        for one in result["findings"]:
            node = f"{result['item']} {one['address']}" if one["address"] else result["item"]
            done = one["error"] or one["done"] or "not touched"
            yield (node, "-", one["container"] or "-", "-", "-", f"{one['kind']}: {one['found']}", done)


def domain_rows(results):
    """A row for each device that host_reconcile found at a domain of no instance, or at none."""
    for result in results:
        for one in result["domains"]:
            done = one["done"] or "not touched"
            yield (f"{result['item']} {one['address']}", "-", one["domain"], "-", "-", one["found"], done)


def reconcile_table(results, hosts=(), gpus=()):
    if isinstance(results, (str, dict)) or not all(
        isinstance(one, dict) and "others" in one for one in [*results, *hosts]
    ):
        raise AnsibleFilterError("hetero.compute.reconcile_table needs lists of results of board_ and host_reconcile")
    boards = [board for one in results for board in one["boards"]]
    instances = [instance for one in hosts for instance in one["instances"]]
    rows = [row for record in boards + instances for row in rows_of(record)]
    others = [f"of no board in the boards file, not touched: {text}" for one in results for text in one["others"]]
    others += [f"on {one['item']}, not touched: {text}" for one in hosts for text in one["others"]]
    return [
        *aligned([HEADING, *rows, *domain_rows(hosts), *gpu_rows(gpus)]),
        *others,
        *summed_up("boards", boards),
        *summed_up(_called(instances), instances),
        *([f"{sum(len(one['findings']) for one in gpus)} findings about GPUs"] if gpus else []),
    ]


class FilterModule:
    def filters(self):
        return {"reconcile_table": reconcile_table}
