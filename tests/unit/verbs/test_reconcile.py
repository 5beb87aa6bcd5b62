# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, records stay wrong, or what sets them right touches what a tenant uses."""

from __future__ import annotations

import json
import os
import re
import time
from contextlib import ExitStack

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import reconciliation
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.locks import lock
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.fake import Fake
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import unmount
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.reconcile_table import reconcile_table


def reconcile(site, **given):
    result = site.module("board_reconcile", **dict(dict(timeout=5), **given))
    assert not result.get("failed"), result
    return result


def found(result, board=0):
    """[(found, done)] of a board."""
    return [(entry["found"], entry["done"]) for entry in result["boards"][board]["found"]]


def mended(site, board, said, done):
    """A dry run says it and changes nothing; a run mends it, with an event; the next run finds nothing."""
    before = site.what_is_there()
    dry = reconcile(site, check=True)
    assert dry["changed"]
    assert any(said in text for text, done_ in found(dry, board)), found(dry, board)
    assert site.what_is_there() == before
    result = reconcile(site)
    assert result["changed"]
    ((text, did),) = found(result, board)
    assert said in text
    assert done in did
    assert any(said in event.text for event in site.events(board, "reconcile"))
    again = reconcile(site)
    assert not again["changed"]
    assert found(again, board) == []
    return result


def states(result, board=0):
    """What the diff says of a board's state: (before, after)."""
    (entry,) = [entry for entry in result["diff"] if entry["before_header"] == f"board{board}"]
    return entry["before"], entry["after"]


def test_nothing_to_mend(jackie):
    there = jackie.what_is_there()
    result = reconcile(jackie)
    assert not result["changed"]
    assert [found(result, board) for board in (0, 1)] == [[], []]
    assert [(board["power"], board["ssh"]) for board in result["boards"]] == [("on", "own key"), ("off", None)]
    assert [board["state"] for board in result["boards"]] == ["running", "power off"]
    assert jackie.what_is_there() == there


def test_a_board_that_is_on_for_nobody_is_switched_off(site):
    site.pdu(board1="on")
    mended(site, 1, "its outlet is on, and nobody has it", "off, cleaned, free")
    assert site.what_is_there() == site.clean()


def forget(site):
    """Neither the database nor the record beside it knows of a claim any more."""
    with site.proxy() as proxy:
        proxy.store._db.write("DELETE FROM claims")
    (site.state / "claims" / "board0.json").unlink()


def test_the_root_of_an_instance_without_a_claim_is_kept(jackie):
    """A database that was put back from a backup knows nothing of jackie: her board is on and stays hers."""
    forget(jackie)
    there = jackie.what_is_there()
    result = reconcile(jackie)
    ((text, done),) = found(result)
    assert text.startswith("has the root of jackie, of which no claim is known: nothing of it is touched")
    assert (done, result["changed"]) == (None, False)
    assert jackie.what_is_there() == there
    assert not any(result.get("failed") for result in jackie.provision("bob"))
    assert jackie.what_is_there()["claims"] == {"bob": 1}


def test_what_nobody_has_left_is_removed(jackie):
    """What is not whole any more is what a terminate that was cut off has left: her outlet is on, her export open."""
    made = jackie.state / "board-roots" / "fs_0" / "made.json"
    made.write_text(made.read_text().replace('"whole": true', '"whole": false'))
    forget(jackie)
    before = jackie.what_is_there()
    ((text, done),) = found(reconcile(jackie))
    assert "its outlet is on, nobody has it, and something answers at 10.0.2.1: nothing of it is touched" in text
    assert (done, jackie.what_is_there()) == (None, before)
    jackie.cut(0)
    jackie.pdu(board0="on")
    result = reconcile(jackie)
    texts = [text for text, done in found(result)]
    assert texts[0] == "its outlet is on, and nobody has it"
    assert "export 1 /tftpboot/fs_0 to 10.0.2.1" in texts[1]
    assert texts[2] == "recorded as running, and nobody has it"
    assert {done for text, done in found(result)} == {"off, cleaned, free"}
    assert jackie.what_is_there() == jackie.clean()
    assert not reconcile(jackie)["changed"]


def test_recorded_as_running_but_off(jackie):
    """The claim, the root and what is in it stay; the outlet stays as somebody has put it."""
    jackie.cut(0)
    result = reconcile(jackie)
    assert found(result) == [
        (
            "recorded as running, its outlet is off",
            "recorded as power off (ansible-playbook hetero.compute.start_instance -e instance=jackie brings it up)",
        ),
        ("a boot entry although it is off", "removed"),
    ]
    assert states(result) == ({"state": "running"}, {"state": "power off"})
    record = jackie.record(0)
    assert (record.state, record.note, record.claim.instance) == ("power off", "found off", "jackie")
    assert jackie.outlets()["1"] == "off"
    assert not reconcile(jackie)["changed"]
    assert jackie.module("tilera_boot", boards=[0], timeout=10)["changed"]
    assert jackie.what_is_there() == jackie.running("jackie")


def test_recorded_as_off_but_running(jackie):
    """Its own key is shown, so it is what its claim says, whoever has switched it on."""
    with jackie.proxy() as proxy:
        for state in ("shutting down", "power off"):
            proxy.store.move(0, state)
    result = mended(jackie, 0, "recorded as power off, it runs and shows its own key", "recorded as running")
    assert states(result) == ({"state": "power off"}, {"state": "running"})
    assert jackie.what_is_there() == jackie.running("jackie")


@pytest.mark.parametrize("verb", ["reconcile", "start"])
def test_outlets_that_were_swapped_are_not_switched(jackie, verb):
    """Lost: a tenant's machine, switched off by whoever tidies up or starts it again after two plugs were swapped."""
    jackie.pdu(board0="off", board1="on")
    before = jackie.what_is_there()
    if verb == "reconcile":
        result = reconcile(jackie)
        (own, done), (other, other_done) = found(result, 0)[0], found(result, 1)[0]
        assert "its outlet is off, and it runs jackie and shows its own key: nothing is switched" in own
        assert "it may feed board0: not switched: look at its plug" in other
        # no cabling test switches the outlet of a board in use
        assert "(ansible-playbook hetero.compute.cabling says what the outlets of free boards feed)" in own
        assert (done, other_done) == (None, None)
    else:
        result = jackie.module("tilera_boot", boards=[0], timeout=10)
        assert result["failed"]
        assert "something answers at 10.0.2.1" in result["msg"]
    assert not result["changed"]
    assert jackie.what_is_there() == before
    assert jackie.record(0).state == "running"


@pytest.mark.parametrize("answer", ["unproven", "wrong_key"])
def test_outlets_that_were_swapped_are_not_switched_where_the_board_is_busy(jackie, answer):
    """Lost: the same machine, when it is too busy to prove its key, or its tenant gave it another."""
    wired = json.loads((jackie.folder / "proxy.json").read_text())["boards"]["0"]["fake"]
    jackie.wire(0, fake=dict(wired, **{answer: True}))
    jackie.pdu(board0="off", board1="on")
    before = jackie.what_is_there()
    result = reconcile(jackie)
    assert "its outlet is off, and a machine answers at 10.0.2.1: nothing is switched" in found(result, 0)[0][0]
    assert "it may feed board0: not switched" in found(result, 1)[0][0]
    assert not result["changed"]
    assert jackie.what_is_there() == before


@pytest.mark.parametrize("lost", ["export", "mount", "entry", "kernel"])
def test_what_a_running_board_boots_from_is_put_back(jackie, lost):
    root = jackie.state / "board-roots" / "fs_0" / "root"
    keys = root / "root" / ".ssh" / "authorized_keys"
    keys.write_text("the tenant's own business\n")
    said, done = f"missing: {lost}", "put back"
    if lost == "export":
        (jackie.folder / "ganesha.json").write_text("{}")
    elif lost == "mount":
        assert unmount(str(root)) == 0
    elif lost == "entry":
        (jackie.tftp / "10.0.2.1" / "01-00-1a-ca-00-57-00.ipxe").write_text("#!ipxe\nexit\n")
        said, done = "its boot entry is missing, or another", "written"
    else:
        (jackie.tftp / "10.0.2.1" / "vmlinux_0").unlink()
        said = "missing: vmlinux_0"
    boots = json.loads((jackie.run_folder / "fake-boots" / "board0").read_text())
    mended(jackie, 0, said, done)
    assert jackie.what_is_there() == jackie.running("jackie")
    assert keys.read_text() == "the tenant's own business\n"
    assert json.loads((jackie.run_folder / "fake-boots" / "board0").read_text()) == boots, "its power was touched"


def test_a_board_that_waits_for_its_root_answers_once_it_is_back(jackie, monkeypatch):
    """Lost: a board reported as dead although all it lacked was its export, put back a moment before."""
    export = jackie.folder / "ganesha.json"
    monkeypatch.setattr(Fake, "answers", lambda *_asked: json.loads(export.read_text()) != {})
    export.write_text("{}")
    mended(jackie, 0, "missing: export", "put back")


@pytest.mark.parametrize("played", [{"wrong_key": True}, {"running": 1000.0}])
def test_a_running_board_that_answers_wrongly_is_only_reported(jackie, played):
    """Lost: a tenant's busy machine, cut off by somebody who tidies up."""
    jackie.wire(0, fake=dict({"tftp": 0.0, "nfs": 0.0, "running": 0.0}, **played))
    before = jackie.what_is_there()
    result = reconcile(jackie)
    assert not result["changed"]
    ((text, done),) = found(result)
    assert "not touched" in text
    assert done is None
    assert jackie.what_is_there() == before


def test_a_pdu_that_does_not_answer_leaves_its_boards_as_they_are(jackie):
    jackie.pdu(faults={"hang": True})
    before = jackie.what_is_there()
    result = reconcile(jackie, timeout=0.5)
    assert not result["changed"]
    assert result["unseen"] == ["board0", "board1"]
    for board in (0, 1):
        ((text, done),) = found(result, board)
        assert text.startswith("its outlet is not known, so it is left as it is: pdu-a")
        assert done is None
    assert jackie.what_is_there() == before


def test_boards_out_of_use_and_boards_at_work_are_only_reported(site):
    with site.proxy() as proxy:
        proxy.store.move(0, "maintenance", "new fan")
    site.pdu(board0="on", board1="on")
    with lock(str(site.run_folder), "board1", "start", "jo", Deadline(1)):
        result = reconcile(site, timeout=0.3)
    assert not result["changed"]
    said = (
        "kept out of use (maintenance: new fan), its outlet is on: once it is known that nobody is at work there, "
        "ansible-playbook hetero.compute.maintenance -e node=board0 -e state=off makes it free again"
    )
    assert found(result, 0) == [(said, None)]
    assert "not looked at: board1: still held by start (jo" in found(result, 1)[0][0]
    assert result["unseen"] == ["board1"]
    assert site.outlets() == {"1": "on", "2": "on"}


def test_how_a_board_in_error_comes_back_is_said(site):
    """Lost: the way. The reason that was noted may be over, and then says nothing of what to do."""
    with site.proxy() as proxy:
        proxy.store.move(0, "error", "its outlet is on")
    way = "ansible-playbook hetero.compute.repair -e node=board0 makes it free again"
    assert found(reconcile(site), 0) == [(f"kept out of use (error: its outlet is on): {way}", None)]


BUSY = rf"busy with start of jackie \(jo, pid {os.getpid()}, since [0-9:]+\): not looked at"


def test_a_dry_run_does_not_judge_a_board_at_work(jackie):
    """Lost: another user's provision: it was shown as a contradiction while its board booted, with a repair for it."""
    jackie.cut(0)
    with lock(str(jackie.run_folder), "board0", "start", "jo", Deadline(1)):
        result = reconcile(jackie, check=True)
    ((text, done),) = found(result)
    assert re.fullmatch(BUSY, text)
    assert (done, result["changed"], result["boards"][0]["power"]) == (None, False, None)
    assert "its outlet is off" in found(reconcile(jackie, check=True))[0][0]


def test_nor_one_that_was_taken_up_meanwhile(jackie, monkeypatch):
    """Lost: the same, where the work began after the first look."""
    jackie.cut(0)
    ask, taken = reconciliation._ask_boards, ExitStack()

    def asked(*given):
        taken.enter_context(lock(str(jackie.run_folder), "board0", "start", "jo", Deadline(1)))
        monkeypatch.setattr(reconciliation, "_ask_boards", ask)
        return ask(*given)

    monkeypatch.setattr(reconciliation, "_ask_boards", asked)
    with jackie.proxy() as proxy, taken:  # pylint: disable=confusing-with-statement
        result = reconciliation.reconcile(proxy, None, Change(check=True), 5)
    ((text, done),) = found(result)
    assert re.fullmatch(BUSY, text)
    assert (done, result["changed"]) == (None, False)


def test_what_is_of_no_board_is_named_and_left(jackie):
    """The boards file lost a board; its tenant's things are for a person to judge."""
    rows = (jackie.folder / "tilera_boards").read_text().splitlines(keepends=True)
    (jackie.folder / "tilera_boards").write_text(rows[1])
    there = (jackie.exports(), jackie.mounts(), jackie.outlets())
    result = reconcile(jackie)
    assert not result["changed"]
    for part in ("claim of jackie (jackie) on board0", "board-roots/fs_0", "/10.0.2.1", "export 1 /tftpboot/fs_0"):
        assert any(part in text for text in result["others"]), (part, result["others"])
    assert (jackie.exports(), jackie.mounts(), jackie.outlets()) == there


def test_an_nfs_server_that_does_not_answer_is_said(site):
    """Lost: the rest of what was found, or the one reason why nothing is known of exports."""
    (site.folder / "bin" / "busctl").write_text("#!/bin/sh\necho no such service >&2\nexit 1\n")
    others = reconcile(site)["others"]
    assert any("no such service" in text for text in others), others


def test_one_session_a_pdu(jackie):
    """Its one place is everybody's: a look at all boards must not take it once a board."""
    jackie.pdu(faults={"busy": 1})
    start = time.monotonic()
    assert not reconcile(jackie)["changed"]
    assert time.monotonic() - start < 60
    assert json.loads((jackie.folder / "pdu-a.json").read_text())["faults"]["busy"] == 0


def test_the_table_says_each_finding_beside_its_board_or_below(jackie):
    jackie.pdu(board1="on")
    (jackie.folder / "ganesha.json").write_text("{}")
    lines = reconcile_table([reconcile(jackie)])
    assert lines[0].split() == ["NODE", "RECORD", "INSTANCE", "OUTLET", "SSH", "FOUND", "DONE"]
    assert lines[1].split("  ")[0] == "board0"
    assert "missing: export" in lines[1]
    assert "put back" in lines[1]
    assert lines[2] == "board1  power off  -         on      -"
    assert lines[3] == "    its outlet is on, and nobody has it: off, cleaned, free"
    assert lines[-1] == "2 boards: 0 as recorded, 2 mended, 0 to look at"


def out_of_use(site, note="outlet 1 does not feed this board"):
    with site.proxy() as proxy:
        proxy.store.move(0, "error", note)


def test_a_board_in_error_that_proves_its_key_is_in_use_again(jackie):
    """Lost: an instance's uptime. Once the wiring was corrected, only a stop and a start took it out of error."""
    out_of_use(jackie)
    said = "kept out of use (error: outlet 1 does not feed this board), and it runs by its outlet and shows its own key"
    mended(jackie, 0, said, "recorded as running")
    assert jackie.what_is_there() == jackie.running("jackie")
    assert (jackie.record(0).state, jackie.record(0).note) == ("running", "")


@pytest.mark.parametrize("why", ["wiring", "outlet", "key", "root"])
def test_a_board_in_error_that_does_not_prove_it_stays_there(jackie, why):
    """Lost: a board that nobody looks after any more, or that the next verb switches by a wrong outlet."""
    if why == "wiring":
        jackie.wire(0, outlet="7")
    elif why == "outlet":
        jackie.pdu(board0="off")
    elif why == "key":
        jackie.wire(0, fake=dict(tftp=0.0, nfs=0.0, running=0.0, wrong_key=True))
    else:
        made = jackie.state / "board-roots" / "fs_0" / "made.json"
        made.write_text(made.read_text().replace('"whole": true', '"whole": false'))
    out_of_use(jackie)
    reconcile(jackie)
    assert jackie.record(0).state == "error"
