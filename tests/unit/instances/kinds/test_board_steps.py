# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the steps of a verb are given, and who is told (instances/kinds/board.py). Whole verbs are in
verbs/test_instance_on_boards.py.

Tests instances/kinds/board.py.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.each_board import Instances, Tenant
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.instances.kinds import board as board_module
from ansible_collections.hetero.compute.tests.unit.boards.nodes import FLAVOR
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY
from ansible_collections.hetero.compute.tests.unit.instances.kinds.requests_of_boards import SPEC, request

# ---- steps


def test_what_each_step_is_given(node, proxy, monkeypatch):
    """Lost: whose boards a step is for, and for how long it may wait; or a dry run that is none."""
    given = {}

    def fake(owner, name):
        said = dict(boards=[], step="", ended=[])
        monkeypatch.setattr(owner, name, lambda *words, **more: given.__setitem__(name, (words, more)) or said)

    for owner, name in (
        (board_module.board_images, "present"),
        (board_module.board_images, "absent"),
        (board_module.lifecycle, "start"),
        (board_module.lifecycle, "stop"),
        (board_module.board_leases, "extend"),
        (board_module.release, "end"),
    ):
        fake(owner, name)
    asked = request(
        proxy, node, check=True, created=[5.0], ssh_public_key=KEY, owner="ann", lease_hours=3.0, numbers=[2],
        wipe_method="zero", wipe_verify="full",
    )  # fmt: skip
    assert asked.make_ready([0], boot_source="disk")
    words, tenant = given["present"][0], Tenant("lab", (5.0,))
    asked_for = board_module.board_images.ImageRequest(None, KEY, "disk", rebuilt=[])
    assert (words[0], words[1], words[2], words[3].check, words[4].seconds, words[5]) == (
        proxy, [0], asked_for, True, 1800.0, tenant,
    )  # fmt: skip
    asked.remove([0], never_ran=True)
    words = given["absent"][0]
    assert (words[:2], words[2].check, words[3].seconds, words[4:]) == (
        (proxy, [0]),
        True,
        1800.0,
        (tenant, True),
    )
    asked.boot([0], image="x")
    assert given["start"][0] == (proxy, [0], replace(asked.options, image="x"))
    asked.stop([0], keep=True)
    assert given["stop"][0] == (proxy, [0], replace(asked.options, keep=True))
    monkeypatch.setattr(board_module.board_releases, "absent", lambda *words, **more: dict(boards=[]))
    asked.end([0], never_ran=True)
    words = given["end"][0]
    assert (words[1], words[2].method, words[2].verify, words[3]) == (
        [0], "zero", "full", replace(asked.options, never_ran=True),
    )  # fmt: skip
    board_module.extended(asked)
    words = given["extend"][0]
    assert (words[1:3], words[3].check, words[4].seconds) == ((asked.asked, 3.0), True, 30.0)
    assert asked.asked == Instances("lab", "ann", [2], (5.0,))


@pytest.mark.parametrize("created", [(), (5.0,)])
@pytest.mark.parametrize("check", [True, False])
def test_a_claim_is_asked_for_with_all_that_was_said(node, proxy, monkeypatch, check, created):
    """Lost: a lease, a board or a number that somebody asked for; or each line twice in a dry run."""
    all_asked = []

    def present(proxy, asked_for, change):
        all_asked.append((asked_for, change.check))
        return dict(boards=[dict(board=0)], lines=["a"])

    monkeypatch.setattr(board_module.board_claims, "present", present)
    words = dict(
        owner="ann", flavor=FLAVOR, image="debian", ssh_public_key=KEY, count=3, numbers=[1, 2], lease_hours=2.0
    )
    asked = request(proxy, node, check=check, created=created, board=None, partial=True, **words)
    assert asked.claim(move=True) == [dict(board=0)]
    ((asked_for, dry),) = all_asked
    assert {name: getattr(asked_for, name) for name in words} == dict(words, numbers=(1, 2))
    assert (asked_for.request, asked_for.move, asked_for.partial, dry) == ("lab", True, True, check)
    assert asked.steps.result["lines"] == ([] if check and created else ["a"])
    assert list(asked.steps.result["seconds"]) == ["claim"]
    request(proxy, node, owner="ann", flavor=FLAVOR, image=None).claim()
    assert (all_asked[-1][0].image, all_asked[-1][0].move) == ("", False)


@pytest.mark.parametrize("check", [True, False])
def test_what_is_given_back_is_of_who_asked(node, proxy, monkeypatch, check):
    """Lost: the board of another owner, or one of a request that is to stay."""
    given = []

    def end(proxy, ids, asked_for, options, at_fault):
        return dict(boards=[dict(board=id) for id in ids], step="", ended=[])

    def absent(proxy, instances, change, deadline, left, on):
        given.append((instances, change, deadline, left))
        assert on, "what was never started ends with its board on"
        return dict(boards=[dict(board=1)], lines=[])

    monkeypatch.setattr(board_module.release, "end", end)
    monkeypatch.setattr(board_module.board_releases, "absent", absent)
    asked = request(proxy, node, check=check, owner="ann", numbers=[2], created=[5.0])
    asked.end([2], left=[0])
    instances, change, deadline, left = given[0]
    assert instances == Instances("lab", "ann", [2], (5.0,))
    assert (deadline.seconds, change.check, left) == (30.0, check, [0, 2])
    assert (asked.steps.boards, list(asked.steps.result["seconds"])) == ([dict(board=1), dict(board=2)], ["claim"])


def test_who_acts_is_in_what_is_written_down(node, monkeypatch):
    """Lost: who did it, in the events of a board; or what went wrong, to a traceback."""
    actors = []

    def stops(request):
        actors.append((request.proxy.actor.split(" pid ")[0], request.check))
        raise HeteroError("is away", "pdu-a")

    monkeypatch.setitem(board_module.VERBS, "stopped", stops)
    monkeypatch.setattr(board_module.Request, "say_what_stays", lambda self: actors.append("said"))
    params = {name: option.get("default") for name, option in SPEC.options.items()}
    params.update(node.params, kind="board", instance="lab", state="stopped", created=[], numbers=[])
    (node.folder / "proxy.json").write_text("{}")
    with node.proxy():
        pass
    result = board_module.work(params, False)
    assert (result["failed"], result["msg"]) == (True, "pdu-a: is away")
    board_module.work(dict(params, owner="ann", flavor=FLAVOR), True)
    assert actors == [("instance", False), ("ann", True)]
    actors.clear()
    monkeypatch.setitem(board_module.VERBS, "running", stops)
    for flavor, check in ((FLAVOR, False), (FLAVOR, True), (None, False)):
        board_module.work(dict(params, state="running", flavor=flavor), check)
    assert actors.count("said") == 1
