# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What status says of reservations. If this fails, nobody sees that boards will be another's tomorrow, or that a course
will lack some.
"""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.filter.status_table import FilterModule
from ansible_collections.hetero.compute.plugins.plugin_utils import answers
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.snapshots import snapshots
from ansible_collections.hetero.compute.plugins.plugin_utils.reserved_lines import TOLD, reserved

status_table = FilterModule().filters()["status_table"]
BOARD = dict(name="board1", arch="TILEPro64", state="power off", vcpus=1, memory_mb=1, local_gb=1)


def one(start=100.0, **more):
    fixed = dict(owner="ann", text="2 tp64.8x8 for ann from A to B (course)", end=900.0, lacks=None)
    return {**fixed, "start": start, **more}


def test_they_are_below_the_table_and_the_next_is_first():
    """Lost: the reservation that begins first, among others; or which node it is of."""
    assert status_table({"p1": dict(boards=[BOARD], reservations=[one()])})[2:] == [
        "reserved: 2 tp64.8x8 for ann from A to B (course)"
    ]
    soon = one(text="soon", lacks="1 of it")
    both = {"p1": dict(reservations=[one(200.0, text="late")]), "gpu1": dict(reservations=[soon])}
    assert reserved(both) == ["reserved on gpu1: soon; but 1 of it", "reserved on p1: late"]


def test_lines_are_few_and_nothing_in_them_ends_one():
    """Lost: the table, above hundreds of lines, or a line that is another's words."""
    every = [one(float(number)) for number in range(TOLD + 2)]
    many = {"p1": dict(reservations=every), "p2": None, "p3": dict(error="x")}
    assert reserved(many)[TOLD:] == ["and 2 more reservations"]
    assert "\n" not in reserved({"p1": dict(reservations=[one(text="a\nb" + "c" * 999)])})[0]
    assert len(reserved({"p1": dict(reservations=[one(text="c" * 999)])})[0]) < 500


def test_what_a_node_says_of_them_is_looked_at_and_kept():
    """Lost: the page and the table, to a node that says something else."""
    kept = snapshots([dict(item="p1", claims=[], boards=[], reservations=[one()])])
    assert kept["p1"]["reservations"] == [one()]
    assert snapshots([dict(item="p1", msg="down")])["p1"]["reservations"] == []
    shape = dict(boards=[], claims=[], roots={})
    assert answers.checked(dict(shape, reservations=[one()]), "board_info").get("msg") == answers.checked(
        shape, "board_info"
    ).get("msg")
    assert answers.checked(dict(shape, reservations=[one(text=1)]), "board_info").get("msg")
