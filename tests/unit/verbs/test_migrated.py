# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jackie's instance moves to another board of its proxy, with its root. If these fail, what she has in it is lost, or
is open to two boards at once, or she finds another machine under her name.

Tests boards/verbs/migration.py, boards/work/move_targets.py, instances/kinds/board_moves.py, roots/moved_root.py.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import pdu_loop, pdu_sessions
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import migration
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.tickets import Ticket
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import wait_notes
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.drawn import Drawn
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.fake import Fake
from ansible_collections.hetero.compute.plugins.module_utils._hetero.instances.kinds import board_moves
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY
from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import FLAVOR

#: When a reservation begins and ends (seconds from now).
SOON = (3600, 7200)


def migrate(site, **given):
    return site.module("instance", kind="board", **dict(dict(instance="jackie", state="migrated", timeout=10), **given))


def root(site, board=0):
    return site.state / "board-roots" / f"fs_{board}" / "root"


def write(site):
    (root(site) / "root" / "data").write_text("the tenant's own")


def wrote(site, board):
    return (root(site, board) / "root" / "data").read_text() == "the tenant's own"


def runs_on(site, board):
    """Whether jackie runs there, with her data, and nobody has anything else."""
    assert site.what_is_there() == site.running(*[None] * board, "jackie")
    return wrote(site, board)


def identity(site, board=0):
    """What makes the instance the same machine, and hers: keys, claim, image, lease."""
    with site.proxy() as proxy:
        claim = dict(vars(proxy.store.claim_of("jackie")), board=None)
    files = ("etc/ssh/ssh_host_ed25519_key", "etc/ssh/ssh_host_ed25519_key.pub", "etc/machine-id", "etc/hostname")
    return claim, {name: (root(site, board) / name).read_bytes() for name in files}


def wait(site):
    """Bob waits for board 1."""
    wish = dict(flavor=FLAVOR, image="debian", board=1, count=1, partial=False, lease_hours=None, boot_source="nfs")
    with site.proxy() as proxy:
        proxy.store.tickets.keep(Ticket("bob", "bob", time.time(), dict(wish, numbers=[])))


@pytest.fixture
def hers(jackie):
    """Jackie runs on board 0 of two, and has written something."""
    write(jackie)
    return jackie


def test_it_runs_on_another_board_as_the_same_machine(hers):
    """Lost: her data, or that ssh still knows her machine; or the board that she left, for everybody."""
    assert not hers.lease(5).get("failed")
    before = identity(hers)
    with hers.proxy() as proxy:
        for kwh in (7.0, 7.4):
            proxy.store.drew(proxy.store.claim_of("jackie"), "pdu-a outlet 1", Drawn(40.0, kwh))
    result = migrate(hers)
    assert not result.get("failed"), result
    assert runs_on(hers, 1)
    assert identity(hers, 1) == before
    (one,) = result["instances"]
    assert (one["name"], one["state"], one["ip"]) == ("board1", "running", "10.0.2.2")
    assert one["known_hosts"] == f"10.0.2.2 {before[0]['host_key']}"
    with hers.proxy() as proxy:
        assert proxy.store.has_run(proxy.store.claim_of("jackie"))
        assert proxy.store.kept(1).ran
        assert proxy.store.energy_of(proxy.store.claim_of("jackie")).kwh == 0.4
    again = migrate(hers, board=1)
    assert (again.get("failed"), again["changed"]) == (None, False), again
    assert runs_on(hers, 1)
    assert not migrate(hers).get("failed")
    assert runs_on(hers, 0), "without a board it moves once more"


def test_a_stopped_one_moves_as_well(hers):
    """Lost: her instance, whose board is to be taken out while she is away."""
    assert not hers.module("instance", kind="board", instance="jackie", state="stopped").get("failed")
    assert not migrate(hers).get("failed")
    assert runs_on(hers, 1)


def test_check_mode_says_where_and_does_nothing(hers):
    """Lost: what a dry run is for."""
    before = hers.what_is_there()
    result = migrate(hers, check=True)
    assert not result.get("failed"), result
    assert result["changed"]
    assert [one["name"] for one in result["instances"]] == ["board1"]
    texts = [line["text"] for line in result["lines"]]
    assert any(
        "board0" in line["node"] and "its root exported to board1, which would boot it" in line["text"]
        for line in result["lines"]
    ), texts
    assert hers.what_is_there() == before


@pytest.mark.parametrize(("stall", "left"), [("tftp", "error"), ("running", "power off")])
def test_where_the_new_board_does_not_come_up_it_goes_back(hers, stall, left):
    """Lost: a running instance, for a board that does not boot; or board after board, for a root that hangs on each."""
    before = identity(hers)
    hers.wire(1, fake=dict(tftp=0.0, nfs=0.0, running=0.0, stall=stall))
    result = migrate(hers, timeout=1)
    assert result["failed"]
    assert "jackie is back on board0, and runs" in result["msg"], result["msg"]
    assert (hers.board_of("jackie"), wrote(hers, 0), identity(hers)) == (0, True, before)
    assert hers.outlets() == {"1": "on", "2": "off"}
    assert list(hers.exports()) == ["1"]
    assert hers.record(0).state == "running"
    assert (hers.record(1).state, hers.record(1).claim) == (left, None)
    if left == "error":
        assert "(it was switched off since, and jackie has left it)" in hers.record(1).note


def test_where_neither_comes_up_it_says_where_all_is(hers):
    """Lost: where her root is, for whoever mends it."""
    for board in range(2):
        hers.wire(board, fake=dict(tftp=0.0, nfs=0.0, running=0.0, stall="tftp"))
    result = migrate(hers, timeout=1)
    assert result["failed"]
    assert f"jackie has board0 now, with its root in {root(hers).parent}, which is whole" in result["msg"], result
    hers.wire(0, fake=dict(tftp=0.0, nfs=0.0, running=0.0))
    assert not hers.module("instance", kind="board", instance="jackie", state="stopped").get("failed")
    assert not hers.module("instance", kind="board", instance="jackie", state="running", timeout=10).get("failed")
    assert wrote(hers, 0)


def test_from_a_board_out_of_use_it_moves_and_that_one_stays_so(hers):
    """Lost: that the board is broken, for whoever gets it next."""
    with hers.proxy() as proxy:
        proxy.store.move(0, "error", "its fan rattles")
    assert not migrate(hers).get("failed")
    assert (hers.board_of("jackie"), wrote(hers, 1)) == (1, True)
    assert (hers.record(0).state, hers.record(0).note, hers.record(0).claim) == (
        "error",
        "its fan rattles (it was switched off since, and jackie has left it)",
        None,
    )
    assert hers.outlets() == {"1": "off", "2": "on"}


def hung(site):
    """Jackie's own root does not come up on board 0 any more."""
    site.wire(0, fake=dict(tftp=0.0, nfs=0.0, running=0.0, stall="running"))
    again = dict(instance="jackie", state="rebooted", how="hard", timeout=1)
    assert site.module("instance", kind="board", **again)["failed"]
    assert site.record(0).state == "error"


def test_a_board_on_which_its_own_root_hung_is_free_when_it_has_left(hers):
    """Lost: board after board, to a tenant whose root hangs on purpose until it has moved on."""
    hung(hers)
    assert not migrate(hers).get("failed")
    assert (hers.board_of("jackie"), wrote(hers, 1)) == (1, True)
    assert (hers.record(0).state, hers.record(0).claim) == ("power off", None)


def test_who_waits_goes_before_an_instance_whose_own_root_hung(hers):
    """Lost: the turn of who waits, to a tenant whose root hangs on purpose."""
    hung(hers)
    wait(hers)
    assert "held for bob of bob, which waits and goes first" in migrate(hers)["msg"]


def test_what_another_has_come_to_wait_for_meanwhile_is_not_taken(hers, monkeypatch):
    """Lost: the same, to an instance that has chosen the board a moment before."""
    real = migration.Migration._must_be_off

    def meanwhile(self, new):
        wait(hers)
        real(self, new)

    monkeypatch.setattr(migration.Migration, "_must_be_off", meanwhile)
    result = migrate(hers)
    assert "board1: was taken meanwhile: held for bob of bob" in result["msg"], result["msg"]
    assert runs_on(hers, 0)


def test_where_the_old_board_is_not_proven_off_nothing_moves(hers):
    """Lost: her file system, which two boards would write to."""
    hers.pdu(faults={"stuck": ["1"]})
    result = migrate(hers)
    assert result["failed"], result
    hers.pdu()
    assert (hers.board_of("jackie"), wrote(hers, 0), list(hers.exports())) == (0, True, ["1"])
    assert hers.outlets() == {"1": "on", "2": "off"}
    assert (hers.record(1).state, hers.record(1).claim) == ("power off", None)


def test_it_takes_no_board_that_is_on(hers):
    """Lost: the work of whoever is on a board that the records call free."""
    hers.pdu(board1="on")
    result = migrate(hers)
    assert "board1: is not off: its outlet is on" in result["msg"], result["msg"]
    assert hers.outlets() == {"1": "on", "2": "on"}
    assert (hers.board_of("jackie"), hers.record(0).state, wrote(hers, 0)) == (0, "running", True)


def test_it_takes_no_board_whose_address_is_taken(hers):
    """Lost: a running instance, which would be off on both boards: the new one could not be started, nor proven off."""
    before = hers.what_is_there()
    hers.wire(1, fake=dict(tftp=0.0, nfs=0.0, running=0.0, taken=True))
    result = migrate(hers)
    assert "board1: is off by its outlet, and something answers at 10.0.2.2" in result["msg"], result["msg"]
    assert hers.what_is_there() == before
    assert "adopted" not in str(hers.events(1, "claim"))


def test_refused_before_anything_is_switched(hers):
    """Lost: an instance that is off, for a move that could not be."""
    before = hers.what_is_there()
    assert not hers.provision("bob")[-1].get("failed")
    taken = migrate(hers)
    assert "jackie is to move to another board that fits tp64.8x8" in taken["msg"], taken["msg"]
    assert "none is free. It stays where it is." in taken["msg"]
    assert "board1: running bob since" in taken["msg"], taken["msg"]
    assert "jackie is to move to board1 that fits" in migrate(hers, board=1)["msg"]
    assert "board 7: no such board" in migrate(hers, board=7)["msg"]
    assert "belongs to jackie" in migrate(hers, owner="eve")["msg"]
    assert not any(result.get("failed") for result in hers.terminate("bob"))
    with hers.proxy() as proxy:
        proxy.store.put("jackie", boot_source="disk")
    assert "jackie has its root on board0's own disk, which stays with the board" in migrate(hers)["msg"]
    with hers.proxy() as proxy:
        proxy.store.put("jackie", boot_source="nfs")
    hers.wire(0, disk="/dev/sda")
    assert "jackie may have written to board0's own disk /dev/sda" in migrate(hers)["msg"]
    hers.wire(0, disk=[])
    assert hers.what_is_there() == before


def test_one_without_a_root_is_refused(site):
    """Lost: what to do instead."""
    request = dict(flavor=FLAVOR, image="debian", owner="jackie", ssh_public_key=KEY)
    site.module("instance", kind="board", instance="jackie", state="present", **request)
    assert "jackie has no root yet" in migrate(site)["msg"]


def test_what_is_held_for_who_waits_is_not_taken(ten):
    """Lost: the place of who waits for just that board."""
    assert not any(result.get("failed") for result in ten.provision())
    wait(ten)
    assert not migrate(ten).get("failed")
    assert ten.board_of("jackie") == 2


def test_what_is_reserved_for_another_is_not_taken(hers):
    """Lost: the board of a course, for an instance without an end that has moved there the day before."""
    path = hers.folder / "proxy.json"
    day = dict(zip(("from", "until"), (time.strftime("%Y-%m-%d %H:%MZ", time.gmtime(time.time() + at)) for at in SOON)))
    table = [dict(day, owner="ann", which=["1"])]
    config = dict(json.loads(path.read_text()), reservations=dict(table=table, flavors={}))
    path.write_text(json.dumps(config))
    result = migrate(hers)
    assert "none is free. It stays where it is.\n  board1: " in result["msg"], result["msg"]
    assert "ann" in result["msg"]
    assert hers.record(0).state == "running"


def waits(site):
    """The PDUs that were waited for, once for each question."""
    return (site.folder / "waits").read_text().split()


def hangs(site, monkeypatch):
    """From now on the PDU hangs."""
    real = Fake._hang

    def hang(self, data):
        if data["faults"].get("hang"):
            with (site.folder / "waits").open("a") as file:
                file.write(f"{self.name}\n")
        real(self, data)

    monkeypatch.setattr(Fake, "_hang", hang)
    for module in (pdu_loop, pdu_sessions):
        monkeypatch.setattr(module, "PDU", 0.5)
    monkeypatch.setattr(pdu_sessions, "LEAST", 0.1)
    site.pdu(faults={"hang": True})


def test_a_pdu_that_hangs_is_waited_for_once(hers, monkeypatch):
    """Lost: minutes, in each of which nothing is done and nothing is said; the instance runs as before."""
    monkeypatch.setattr(wait_notes, "QUIET", 0.05)
    hangs(hers, monkeypatch)
    result = migrate(hers, timeout=300)
    assert "board1: is not off: its outlet is pdu-a: no answer" in result["msg"], result["msg"]
    assert waits(hers) == ["pdu-a"]
    told = [event.text for event in hers.events(1, "wait")]
    assert told[0] == "pdu-a: the login takes longer; it is waited for until 0.5 s are over", told
    assert (hers.board_of("jackie"), hers.record(0).state, hers.record(1).state) == (0, "running", "power off")


def test_a_pdu_that_hangs_in_the_middle_is_not_waited_for_by_each_further_step(hers, monkeypatch):
    """Lost: the same, three times; nothing of the way back is begun before both boards can be proven off."""
    real = migration.Migration._bring

    def then_hangs(self, *given):
        real(self, *given)
        hangs(hers, monkeypatch)

    monkeypatch.setattr(migration.Migration, "_bring", then_hangs)
    result = migrate(hers)
    assert result["failed"]
    assert waits(hers) == ["pdu-a"]
    assert f"jackie has board1 now, with its root in {root(hers, 1).parent}, which is whole" in result["msg"]
    monkeypatch.setattr(migration.Migration, "_bring", real)
    hers.pdu()
    assert not migrate(hers).get("failed")
    assert runs_on(hers, 1)


def killed_in(site, monkeypatch, name):
    """A migration that is killed as it is about to call a function of migration.py."""
    with monkeypatch.context() as patch:
        patch.setattr(migration.Migration, name, lambda *_given: os.kill(os.getpid(), signal.SIGKILL))
        assert site.migrate() == [None]


def test_between_the_claim_and_the_root_nothing_is_lost(hers, monkeypatch):
    """Lost: the root, by whoever gets the board in whose place it lies, or by an operator who cleans up."""
    killed_in(hers, monkeypatch, "_bring")
    assert (hers.board_of("jackie"), hers.record(0).claim) == (1, None)
    start = hers.module("instance", kind="board", instance="jackie", state="running", timeout=10)
    way = "ansible-playbook hetero.compute.migrate_instance -e instance=jackie brings it after"
    assert f"its root lies in {hers.state}/board-roots/fs_0" in start["msg"], start
    assert way in start["msg"], start
    assert not hers.module("board_reconcile", timeout=10).get("failed")
    assert hers.provision("bob")[0]["failed"]
    (_made,) = [json.loads(path.read_text()) for path in (hers.state / "board-roots").glob("fs_*/made.json")]
    assert not migrate(hers).get("failed")
    assert runs_on(hers, 1)


def test_boards_that_are_kept_are_told_and_reconcile_frees_those_of_a_killed_move(hers, monkeypatch):
    """Lost: a board, for everybody, for a move that nobody takes up."""
    killed_in(hers, monkeypatch, "_give")
    told = hers.provision("bob")[0]["msg"]
    assert "it is kept for jackie, which moves there, since" in told, told
    assert not hers.module("board_reconcile", timeout=10).get("failed")
    assert not hers.module("instance", kind="board", instance="jackie", state="running", timeout=10).get("failed")
    assert runs_on(hers, 0)


def test_where_the_claim_cannot_move_it_runs_where_it_was(hers, monkeypatch):
    """Lost: an instance that is off, for a move that came to nothing."""

    def taken(*_given):
        raise Refused("was taken meanwhile", "board1", "run this again")

    monkeypatch.setattr(migration.Migration, "_give", taken)
    result = migrate(hers)
    assert board_moves.STAYS.format(name="jackie", board="board0") in result["msg"], result["msg"]
    assert runs_on(hers, 0)


def test_the_board_that_it_left_is_the_way_back_of_a_killed_move(hers, monkeypatch):
    """Lost: the board that worked: the next run tries the new one, and goes back."""
    killed_in(hers, monkeypatch, "let_go")
    assert hers.board_of("jackie") == 1
    hers.module("instance", kind="board", instance="jackie", state="stopped")
    hers.wire(1, fake=dict(tftp=0.0, nfs=0.0, running=0.0, stall="tftp"))
    result = migrate(hers, timeout=1)
    assert "jackie is back on board0, and runs" in result["msg"], result["msg"]
    assert (hers.board_of("jackie"), wrote(hers, 0)) == (0, True)


def test_by_an_older_database_nothing_moves_back(hers):
    """Lost: the root, under a running board, for a database that was put back from before the move."""
    copy = backups.make(hers.params["state_db"])
    assert not migrate(hers).get("failed")
    shutil.copy(copy, hers.params["state_db"])
    assert hers.board_of("jackie") == 0
    result = migrate(hers)
    assert "jackie cannot move: its root is not there" in result["msg"], result["msg"]
    assert (hers.outlets(), list(hers.exports())) == ({"1": "off", "2": "on"}, ["2"])
    assert wrote(hers, 1)
