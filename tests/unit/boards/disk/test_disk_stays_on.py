# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board that runs from its own disk keeps its power, whatever is known of its root. If these fail, a tenant's board
is power-cycled under him for a look at its disk, by whoever only asks for it again.
"""

from __future__ import annotations

import json
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.disk import disk_boot
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import presence
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs.reconciliation import reconcile
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change


@pytest.fixture
def running(disks):
    """vm0 runs from its disk on board 0, and wrote something there; its events so far are not counted."""
    disks.ask(0)
    assert not disks.run("start", 0)["failed"]
    (disks.root() / "data").write_text("kept")
    disks.before = len(switched(disks))
    return disks


def switched(disks):
    return [event.text for event in disks.events(0, ["switch"]) if "is to be switched" in event.text]


def made_of(disks):
    return disks.folder / "state" / "disks" / "fs_0" / "made.json"


def is_sure(disks):
    return json.loads(made_of(disks).read_text())["sure"]


def mend(disks, **words):
    with disks.proxy() as proxy:
        return reconcile(proxy, [0], Change(), 20, **words)


def lose(disks, what):
    """Something of what the proxy knows of vm0 is lost, and reconcile brings it back."""
    if what in ("made.json", "both"):
        made_of(disks).unlink()
        mend(disks)
    if what in ("claim", "both"):
        with disks.proxy() as proxy:
            proxy.store._db.write("DELETE FROM claims WHERE board = ?", (0,))
            proxy.store._db.write("DELETE FROM boards WHERE board = ?", (0,))
        mend(disks)
    assert disks.record(0).claim.instance == "vm0"


def untouched(disks):
    return (switched(disks)[disks.before :], disks.power(0), (disks.root() / "data").read_text()) == ([], "on", "kept")


@pytest.mark.parametrize("what", ["made.json", "claim", "both"])
@pytest.mark.parametrize(("verb", "options"), [("start", {}), ("reboot", {"how": "soft"})], ids=["start", "soft"])
def test_one_that_runs_is_not_cycled_for_what_was_lost_here(running, what, verb, options):
    """Lost: a running instance's power and memory, to whoever provisions it again after reconcile."""
    lose(running, what)
    assert running.record(0).state == "running"
    assert not running.ready(0).get("failed")
    assert not running.run(verb, 0, check=True, **options)["failed"]
    result = running.run(verb, 0, **options)
    assert untouched(running), switched(running)
    if verb == "start":
        assert (result.get("msg"), running.record(0).state, is_sure(running)) == (None, "running", True)
        assert not any("RAM" in line["text"] for line in result["lines"])
        assert not running.run("start", 0)["changed"]


def test_one_that_does_not_answer_is_left_on(running):
    """Lost: what a disk has not written yet, to a start while its board checks it, or has no network."""
    lose(running, "made.json")
    running.play(0, stall="running")
    result = running.run("start", 0)
    assert untouched(running), switched(running)
    assert (result["failed"], result["blame"], running.record(0).state) == (True, "instance", "error")
    assert "its outlet is on, and it does not answer ssh; its root is on its own disk and it may be" in result["msg"]
    assert "hetero.compute.stop_instance -e instance=vm0" in result["msg"]
    running.play(0)
    mend(running)
    assert running.record(0).state == "running"
    assert not running.run("start", 0)["failed"]
    assert untouched(running)
    assert is_sure(running)


def test_one_that_does_not_answer_is_left_on_in_a_dry_run(running):
    """Lost: what the real run would do, for who asks before."""
    running.play(0, stall="running")
    result = running.run("start", 0, check=True)
    assert (result["failed"], running.record(0).state) == (True, "running")
    assert "its outlet stays on" in result["msg"]


@pytest.mark.parametrize("stall", ["tftp", "kernel", "running"])
def test_one_that_does_not_come_up_again_is_left_on(running, stall):
    """Lost: a disk, to a second power cut in the middle of a long fsck; or of a boot without a network."""
    assert not running.run("stop", 0, keep=True)["failed"]
    running.before = len(switched(running))
    running.play(0, stall=stall)
    result = running.run("start", 0, timeout=1)
    assert switched(running)[running.before :] == ["pdu-a outlet 5 is to be switched on"]
    assert (result["blame"], running.record(0).state, running.power(0)) == ("instance", "error", "on")
    running.play(0)
    # the way out that is said: off by a word, then its disk is looked at
    assert not running.run("stop", 0, keep=True)["failed"]
    result = running.run("start", 0)
    assert (result.get("msg"), running.record(0).state) == (None, "running")
    assert running.shells[0].puts.count("root.tar.gz") == 1
    assert (running.root() / "data").read_text() == "kept"


def test_the_look_in_ram_begins_from_power_off_only(running, monkeypatch):
    """Lost: a board that somebody switched on in the moment between two looks at its outlet."""
    lose(running, "made.json")
    assert not running.run("stop", 0, keep=True)["failed"]
    running.before = len(switched(running))
    asked = disk_boot.outlet_power

    def then_on(proxy, boards, deadline):
        errors = asked(proxy, boards, deadline)
        running.cut(0, "on")
        return errors

    monkeypatch.setattr(disk_boot, "outlet_power", then_on)
    result = running.run("start", 0)
    assert (
        "its outlet was off and is on by now: not switched, vm0 may be at work there: run this again" in result["msg"]
    )
    assert untouched(running)


def test_an_outlet_that_cannot_be_asked_lets_nobody_look(running):
    """Lost: a running board, cut for a look at its disk where its PDU was silent for a moment."""
    lose(running, "made.json")
    pdu = running.folder / "pdu-a.json"
    outlets = pdu.read_text()
    pdu.write_text("{")
    result = running.run("start", 0)
    pdu.write_text(outlets)
    assert (result["failed"], result["blame"]) == (True, "proxy")
    assert untouched(running)


def test_what_is_kept_here_may_be_older_than_what_runs(running):
    """Lost: a running board, where made.json and the database are of the minute before its root was unpacked."""
    made = dict(json.loads(made_of(running).read_text()), unpacked=None, sure=False)
    made_of(running).write_text(json.dumps(made))
    with running.proxy() as proxy:
        proxy.store._db.write("UPDATE boards SET state = 'booting' WHERE board = ?", (0,))
    assert not running.run("start", 0)["failed"]
    assert untouched(running)


def test_repair_and_rebuild_leave_it_alone(running):
    """Lost: the same board, to another verb."""
    lose(running, "both")
    assert running.wipe(0)["failed"]
    assert untouched(running)


@pytest.mark.parametrize("timeout", [1, 3], ids=["long after", "in its time"])
def test_a_first_boot_from_it_under_a_killed_play_is_its_tenants(disks, monkeypatch, timeout):
    """Lost: what a tenant wrote on a board whose play was killed, by asking again while its link is down."""
    monkeypatch.setattr(presence, "PROOF", 0.3)
    disks.ask(0)
    monkeypatch.setattr(disk_boot, "in_ram", then(disk_boot.in_ram, lambda: disks.play(0, stall="running")))
    assert not disks.run("start", 0, wait=False)["failed"]
    disks.later(0, 5)
    disks.before = len(switched(disks))
    (disks.root() / "data").write_text("kept")
    time.sleep(1.1)
    result = disks.run("start", 0, timeout=timeout)
    assert (result["failed"], untouched(disks)) == (True, True), switched(disks)
    with disks.proxy() as proxy:
        assert proxy.store.has_run(proxy.store.record(0).claim), "its root would be taken back"


def test_one_whose_play_was_killed_before_it_left_ram_begins_anew(disks, monkeypatch):
    """Lost: a board that stays on in RAM until somebody comes, where its root lies on the disk and nobody had it."""
    disks.ask(0)

    def killed():
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(disk_boot, "in_ram", then(disk_boot.in_ram, killed))
        with pytest.raises(KeyboardInterrupt):
            disks.run("start", 0)
    disks.cut(0, "on")
    result = disks.run("start", 0)
    assert (result["failed"], disks.record(0).state, disks.shells[0].puts.count("root.tar.gz")) == (False, "running", 1)


def then(act, after):
    """`act`, and `after` once it is done."""

    def both(*words):
        act(*words)
        after()

    return both
