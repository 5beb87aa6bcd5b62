# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, somebody's instance ends before its time, or nobody's lease ever does.

Tests nodes/proxy/reap.py.
"""

from __future__ import annotations

import json
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import release
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.locks import lock
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import reap


def test_the_end_is_set_shown_and_taken_away(jackie):
    assert jackie.record(0).claim.expires is None
    dry = jackie.lease(3, check=True)
    assert dry["changed"]
    assert dry["boards"][0]["expires"] == pytest.approx(time.time() + 10800, abs=20), "what it would be"
    assert jackie.record(0).claim.expires is None
    first = jackie.lease(3)
    assert first["boards"][0]["expires"] == jackie.record(0).claim.expires == pytest.approx(time.time() + 10800, abs=20)
    assert first["boards"][0]["until"].endswith("3 h left")
    (shown,) = jackie.module("board_info", instance="jackie")["boards"]
    assert shown["lease_seconds"] == pytest.approx(10800, abs=20)
    assert not jackie.lease(3)["changed"], "the same play twice in a row"
    assert jackie.lease(1)["boards"][0]["until"].endswith("1 h left"), "a lease may end sooner, too"
    assert jackie.lease(0)["boards"][0]["until"] == "no end"
    assert not jackie.lease(0)["changed"]
    assert [event.text.split(" (was")[0] for event in jackie.events(0, "lease")][-1] == "no end"


def test_another_owners_lease_and_nonsense_are_refused(jackie):
    assert "belongs to jackie" in jackie.lease(3, owner="eve")["msg"]
    assert "give 0 for no end, or at most 87600" in jackie.lease(-1)["msg"]
    assert "no such instance" in jackie.module("board_lease", instance="bob", hours=1)["msg"]
    assert jackie.record(0).claim.expires is None


def test_a_lease_of_anothers_root_is_not_extended(jackie):
    """Lost: whose board it is: an owner hears of a lease of a board that has another's root by now."""
    made = jackie.state / "board-roots" / "fs_0" / "made.json"
    made.write_text(json.dumps(dict(json.loads(made.read_text()), claim="eve 1.5")))
    result = jackie.lease(3)
    assert "its root is that of eve, not of jackie" in result["msg"]
    assert not result["changed"]
    assert jackie.record(0).claim.expires is None
    assert not jackie.events(0, "lease")


def test_a_lease_is_told_once_it_is_written(jackie, monkeypatch):
    """Lost: the day after: its owner was told of a lease that no database has."""
    put = Store.put

    def lose(self, instance, **fields):
        put(self, instance, **dict(fields, expires=5e9))

    monkeypatch.setattr(Store, "put", lose)
    result = jackie.lease(3)
    assert "the lease of jackie does not read back as it was written" in result["msg"]
    assert not result["lines"]
    assert not jackie.events(0, "lease")


def test_only_what_is_over_is_ended(jackie):
    """Lost: a running instance."""
    assert jackie.turn()["said"] == []
    jackie.lease(1)
    assert jackie.turn()["said"] == []
    assert jackie.what_is_there() == jackie.running("jackie")
    jackie.expire()
    result = jackie.turn()
    assert result == dict(
        said=["board0: jackie of jackie: its lease is over since 2 min; off, cleaned, free"], failed=False
    )
    assert jackie.what_is_there() == jackie.clean()
    (event,) = jackie.events(0, "reap")
    assert (event.actor, event.instance) == ("reap", "jackie")
    (remembered,) = jackie.module("board_info", instance="jackie")["ended"]
    assert remembered == dict(instance="jackie", owner="jackie", time=event.time)
    assert jackie.module("board_info")["ended"] == []
    assert jackie.turn()["said"] == []


def test_a_board_that_a_play_works_on_waits_for_the_next_turn(jackie, monkeypatch):
    """Lost: a board switched off under a play that is starting it."""
    monkeypatch.setattr(reap, "PATIENCE", 0.1)
    jackie.expire()
    with lock(str(jackie.run_folder), "board0", "reboot", "jo", Deadline(1)):
        result = jackie.turn()
    assert result["failed"]
    assert "still held by reboot (jo" in result["said"][0]
    assert result["said"][0].count("board0: ") == 1
    assert jackie.what_is_there() == jackie.running("jackie")
    assert not jackie.turn()["failed"]
    assert jackie.what_is_there() == jackie.clean()


def test_a_lease_that_is_extended_at_the_last_moment_holds(jackie, monkeypatch):
    """The look at the claims was before the extension, the lock was had after it."""
    jackie.expire()
    real = reap.locked

    def late(works, *rest):
        jackie.lease(5)
        return real(works, *rest)

    monkeypatch.setattr(reap, "locked", late)
    assert jackie.turn() == dict(said=[], failed=False)
    assert jackie.what_is_there() == jackie.running("jackie")


def test_a_pdu_that_does_not_obey_leaves_the_claim_and_says_so_once(jackie, monkeypatch):
    from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import outlets

    monkeypatch.setattr(outlets, "WINDOW", 0.2)
    jackie.expire()
    jackie.pdu(faults={"stuck": ["1"]})
    for _turn in range(3):
        result = jackie.turn()
        assert result["failed"]
        assert "outlet 1 of pdu-a" in result["said"][0]
    assert jackie.record(0).claim.instance == "jackie"
    assert jackie.record(0).state == "error"
    (event,) = jackie.events(0, "reap")
    assert "could not be ended" in event.text
    jackie.pdu()
    assert not jackie.turn()["failed"]
    assert jackie.what_is_there() == jackie.clean()


def test_the_others_are_ended_although_one_cannot_be(jackie):
    assert not any(result.get("failed") for result in jackie.provision("bob"))
    for name in ("jackie", "bob"):
        jackie.expire(name)
    rows = (jackie.folder / "tilera_boards").read_text().splitlines(keepends=True)
    (jackie.folder / "tilera_boards").write_text(rows[0])  # board 1 is not known any more
    result = jackie.turn()
    assert result["failed"]
    assert [line.split(":")[0] for line in result["said"]] == ["board1", "board0"]
    assert "board1 is not in the boards file" in result["said"][0]
    (jackie.folder / "tilera_boards").write_text("".join(rows))
    assert not jackie.turn()["failed"]
    assert jackie.what_is_there() == jackie.clean()


@pytest.mark.parametrize("error", [RecursionError("deep"), OSError(40, "Too many links"), SystemExit(7)])
def test_the_others_are_ended_although_one_ends_the_process(jackie, monkeypatch, error):
    """Lost: all lease endings of a proxy, for ever, by what one tenant left where nobody foresaw it."""
    assert not any(result.get("failed") for result in jackie.provision("bob"))
    for name in ("jackie", "bob"):
        jackie.expire(name)
    real = release.clean

    def breaking(proxy, board, *rest):
        if board.id == 0:
            raise error
        return real(proxy, board, *rest)

    monkeypatch.setattr(release, "clean", breaking)
    assert not reap.turn(jackie.params)
    assert (jackie.record(0).claim.instance, jackie.record(1).claim) == ("jackie", None)
    assert "could not be ended" in jackie.events(0, "reap")[-1].text
    monkeypatch.setattr(release, "clean", real)
    assert reap.turn(jackie.params)
    assert jackie.what_is_there() == jackie.clean()
