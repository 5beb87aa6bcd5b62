# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carol's board goes off by itself in the seconds in which jackie's, which hangs, is ended. If this fails, the command
that the error names for just that does not help: jackie's outlet counts as carol's all the same, and no end is let in.
"""

from __future__ import annotations

import json

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power.bystanders import Bystanders
from ansible_collections.hetero.compute.tests.unit.verbs.test_killed_before_undone import END, told
from ansible_collections.hetero.compute.tests.unit.verbs.test_recabling import reconcile
from ansible_collections.hetero.compute.tests.unit.verbs.test_silenced_neighbours import hangs
from ansible_collections.hetero.compute.tests.unit.verbs.test_swapped_plugs import hasty

__all__ = ["hasty"]


def test_the_printed_way_has_jackie_ended(jackie, monkeypatch):
    """Lost: the end of jackie's instance, and a board."""
    assert not any(result.get("failed") for result in jackie.provision("carol"))
    hangs(jackie, 0)
    path = jackie.run_folder / "fake-boots" / "board1"
    was, before = json.loads(path.read_text()), Bystanders.before

    def went_off(self, work):
        before(self, work)
        path.write_text(json.dumps(dict(was, on=None)))

    with monkeypatch.context() as patch:
        patch.setattr(Bystanders, "before", went_off)
        first = jackie.module("instance", timeout=10, **END)
    way = "where carol went off by itself just then, ansible-playbook hetero.compute.reconcile -e adopt=carol takes"
    assert way in first["msg"], first
    path.write_text(json.dumps(dict(was, on=was["on"], boots=was["boots"] + 1)))  # carol is up again
    words = told(reconcile(jackie, adopt=["carol"]))
    again = jackie.module("instance", timeout=10, **END)
    assert not again.get("failed"), (told(again), words)
