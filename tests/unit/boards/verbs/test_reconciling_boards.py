# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What reconcile says of a board and does, by what was seen of it. Whole nodes are in verbs/test_reconcile.py.

Tests boards/verbs/tenants_boards.py.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import power_proof
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power.presence import (
    ALIVE,
    OTHER_KEY,
    OWN_KEY,
    SILENT,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import reconciliation, tenants_boards
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs.lifecycle import OUT_OF_USE
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.looks import Look, Seen
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.plays import play
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import board_states
from ansible_collections.hetero.compute.tests.unit.boards.nodes import claimed


@pytest.fixture
def proxy(node):
    with node.proxy() as opened:
        yield opened


@pytest.fixture(autouse=True)
def parts(monkeypatch):
    """What is put back of boards, and whether their entries change; nothing of either by default."""
    found = SimpleNamespace(missing=[], entry=False, put=[], entries=[])

    def put_back(proxy, board, claim, change):
        found.put.append(board.id)
        return list(found.missing)

    def entry(name):
        def do(work):
            found.entries.append(name)
            work.changed = work.changed or found.entry

        return do

    monkeypatch.setattr(tenants_boards, "put_back", put_back)
    monkeypatch.setattr(tenants_boards, "ensure_entry", entry("written"))
    monkeypatch.setattr(tenants_boards, "remove_entry", entry("removed"))
    return found


def look_at(proxy, board=0, power="on", ssh=None, check=False, alive=()):
    """A look at a board that answers at the looks in `alive`."""
    looks = []
    look = Look(Seen(proxy, proxy.boards[board], Change(check)))
    look.work.read()
    look.begin()
    look.power, look.ssh = power, ssh
    look.work.driver = SimpleNamespace(alive=lambda board, limit: looks.append(limit) or len(looks) in alive)
    return look


def move(proxy, *ways, board=0, note=""):
    for way in ways:
        proxy.store.move(board, way, note)


def judge(proxy, look, crossed=()):
    reconciliation._judge(proxy, look, list(crossed))
    return [(entry["found"], entry["done"]) for entry in look.found]


def running(node, proxy, *ways, **claim):
    (mine,) = claimed(proxy, **claim)
    node.root(0, mine)
    move(proxy, *ways)
    return mine


# ---- boards out of use


@pytest.mark.parametrize("state", ["error", "maintenance"])
@pytest.mark.parametrize("power", ["on", "off"])
@pytest.mark.parametrize(("owned", "note"), [(False, "its fan"), (False, ""), (True, "its fan")])
def test_how_a_board_comes_back_is_said(node, proxy, state, power, owned, note):
    """Lost: the way back into use; or the word that somebody may be at work there."""
    if owned:
        running(node, proxy, "booting")
        proxy.store.move(0, "error", note)
        if state == "maintenance":
            proxy.store.move(0, state, note)
    else:
        proxy.store.move(0, state, note)
    way = OUT_OF_USE.format(name="jackie")
    if not owned:
        words = dict(node="board0") if state == "error" else dict(node="board0", state="off")
        way = f"{play('repair' if state == 'error' else 'maintenance', **words)} makes it free again"
    on = ", its outlet is on: once it is known that nobody is at work there, " if power == "on" else ": "
    why = f"kept out of use ({state}: {note or 'without a note'})"
    assert judge(proxy, look_at(proxy, power=power)) == [(f"{why}{on}{way}", None)]
    assert proxy.store.record(0).state == state


@pytest.mark.parametrize("harm", [None, "off", "silent", "doubt", "root", "maintenance", "check"])
def test_a_board_in_error_that_runs_is_in_use_again(node, proxy, harm):
    """Lost: an instance's uptime; or a board that the next verb switches by a wrong outlet."""
    mine = running(node, proxy, "booting")
    proxy.store.move(0, "error", "outlet 1 does not feed it")
    if harm == "maintenance":
        proxy.store.move(0, "maintenance", "its fan")
    if harm == "root":
        node.root(0, mine, of="eve 1.0")
    look = Look(Seen(proxy, proxy.boards[0], Change(harm == "check")))
    look.work.read()
    look.power, look.ssh = ("off" if harm == "off" else "on"), (SILENT if harm == "silent" else OWN_KEY)
    if harm == "doubt":
        look.note("another outlet may feed it")
    else:
        look.note("its outlet is another now", "noted")
    found = judge(proxy, look)[1:]
    if harm in (None, "check"):
        why = "kept out of use (error: outlet 1 does not feed it), and it runs by its outlet and shows its own key"
        assert found == [(why, "recorded as running")]
        (diff,) = look.work.change.diff
        assert (diff["before_header"], diff["before"], diff["after"]) == (
            "board0", {"state": "error"}, {"state": "running"},
        )  # fmt: skip
        assert look.work.changed
    else:
        assert found[0][1] is None
    expected = "running" if harm is None else "maintenance" if harm == "maintenance" else "error"
    assert proxy.store.record(0).state == expected


# ---- nobody's


@pytest.mark.parametrize("check", [True, False])
def test_what_nobody_has_and_is_on_or_left_is_freed(node, proxy, check):
    """Lost: a board that is given to nobody, for what a verb that was cut off has left."""
    done = "would be freed" if check else "off, cleaned, free"
    move(proxy, "booting")
    node.root(0, SimpleNamespace(instance="x", created=1.0, image_hash="x"), whole=False)
    look = look_at(proxy, check=check)
    found = judge(proxy, look)
    assert found[0] == ("its outlet is on, and nobody has it", done)
    assert found[1][0].startswith("left by nobody: ")
    assert "; " not in found[1][0].replace("left by nobody: folder", "")
    assert (found[1][1], found[2:]) == (done, [("recorded as booting, and nobody has it", done)])
    assert look.nobodys


def test_a_free_board_is_as_it_should_be(proxy):
    """Lost: each free board, switched and cleaned by every reconcile."""
    look = look_at(proxy, power="off", alive=(1, 2))
    assert (judge(proxy, look), look.nobodys) == ([], False)


def test_what_may_be_somebodys_is_not_freed(node, proxy):
    """Lost: a tenant's machine or root, of which an older database knows nothing."""
    crossed = ["board1", "board2"]
    look = look_at(proxy)
    ((text, done),) = judge(proxy, look, crossed)
    said = f"its outlet is on, and nobody has it; it may feed board1, board2: not switched: {power_proof.PLUGS}"
    assert (text, done, look.nobodys) == (said, None, False)
    assert judge(proxy, look_at(proxy, power="off"), crossed) == []
    for alive in ((1,), (2,)):
        look = look_at(proxy, alive=alive)
        ((text, done),) = judge(proxy, look)
        assert text.startswith("its outlet is on, nobody has it, and something answers at 10.0.2.1: nothing of it is")
        assert (done, look.nobodys) == (None, False)
    assert look_at(proxy, alive=(3,)).nobodys is False
    assert judge(proxy, look_at(proxy, alive=(3,)))[0][1] == "off, cleaned, free"
    node.root(0, SimpleNamespace(instance="eve", created=1.0, image_hash="x"))
    look = look_at(proxy, power="off")
    text = f"has the root of eve, of which no claim is known: nothing of it is touched: {reconciliation.PUT_BACK}"
    assert (judge(proxy, look), look.nobodys) == ([(text, None)], False)


def test_a_disk_that_somebody_used_is_not_freed(proxy, monkeypatch):
    """Lost: what a tenant wrote to it, or the way to have it wiped."""
    monkeypatch.setattr(
        reconciliation.disk_records, "used", lambda proxy, board: ["disk /dev/sda was used by eve", "more"]
    )
    look = look_at(proxy)
    ((text, done),) = judge(proxy, look)
    wiped = reconciliation.WIPED_BY.format(board="board0")
    assert (text, done) == (
        f"disk /dev/sda was used by eve, and no claim is known: nothing of it is touched: {wiped}", None,
    )  # fmt: skip
    assert not look.nobodys
    assert "hetero.compute.repair -e node=board0" in wiped


def test_what_could_not_be_freed_is_said(proxy, monkeypatch):
    """Lost: that a board is not free after all, told as freed."""

    def release(proxy, works, options, once_off, free):
        assert options.check is False
        works[0].fail(None, HeteroError("is stuck", "outlet 1"))
        free(works[1])

    monkeypatch.setattr(reconciliation, "release", release)
    monkeypatch.setattr(reconciliation, "free_board", lambda proxy, work: None)
    looks = [look_at(proxy), look_at(proxy, 1)]
    for look in looks:
        judge(proxy, look)
    looks[1].note("left by nobody: x", "off, cleaned, free")
    reconciliation._free(proxy, looks, Change())
    assert looks[0].found == [
        dict(found="its outlet is on, and nobody has it", done=None),
        dict(found="could not be freed: outlet 1: is stuck", done=None),
    ]
    assert [look.work.changed for look in looks] == [False, True]
    (line,) = looks[1].work.lines
    both = "its outlet is on, and nobody has it: off, cleaned, free; left by nobody: x: off, cleaned, free"
    assert (line["phase"], line["text"]) == ("reconcile", both)
    assert looks[0].work.lines == []


# ---- somebody's


@pytest.mark.parametrize("ssh", [OWN_KEY, OTHER_KEY, ALIVE])
def test_what_lives_without_its_outlet_is_not_switched(node, proxy, parts, ssh):
    """Lost: whose machine an outlet feeds, before somebody switches it."""
    running(node, proxy, "booting", "running")
    runs = "it runs jackie and shows its own key" if ssh == OWN_KEY else "a machine answers at 10.0.2.1"
    said = f"its outlet is off, and {runs}: nothing is switched: {power_proof.PLUGS}"
    assert judge(proxy, look_at(proxy, power="off", ssh=ssh)) == [(said, None)]
    assert (parts.put, proxy.store.record(0).state) == ([], "running")


@pytest.mark.parametrize("state", ["running", "booting"])
@pytest.mark.parametrize("check", [True, False])
def test_what_is_off_is_recorded_as_off(node, proxy, state, check):
    """Lost: the way to start it; or that it may have run, so that its root goes as one that was never used."""
    running(node, proxy, *(["booting", "running"] if state == "running" else ["booting"]))
    look = look_at(proxy, power="off", check=check)
    way = f"recorded as power off ({play('start_instance', instance='jackie')} brings it up)"
    assert judge(proxy, look) == [(f"recorded as {state}, its outlet is off", way)]
    (diff,) = look.work.change.diff
    assert (diff["before_header"], diff["before"], diff["after"]) == (
        "board0", {"state": state}, {"state": "power off"},
    )  # fmt: skip
    record = proxy.store.record(0)
    assert (record.state, record.note) == ((state, "") if check else ("power off", board_states.FOUND_OFF))
    unwatched = [event.text for event in proxy.store.events() if event.phase == "unwatched"]
    told = ["its board had power while no play watched it, so jackie may have run"]
    assert unwatched == (told if state == "booting" and not check else [])


@pytest.mark.parametrize("state", ["power off", "booting", "shutting down"])
@pytest.mark.parametrize("check", [True, False])
def test_what_runs_is_recorded_as_running(node, proxy, state, check):
    """Lost: the truth of a tenant's machine, in all that shows it."""
    running(node, proxy, *{"power off": [], "booting": ["booting"]}.get(state, ["booting", "shutting down"]))
    look = look_at(proxy, ssh=OWN_KEY, check=check)
    assert judge(proxy, look) == [(f"recorded as {state}, it runs and shows its own key", "recorded as running")]
    assert look.work.change.diff[0]["after"] == {"state": "running"}
    assert proxy.store.record(0).state == (state if check else "running")


#: Of a board that has power and is silent; and, where it ran or boots, who may have its power cut.
MUTE = (
    "it is on and does not answer ssh: not touched: its network may be cut, or its sshd: see its cable and its console "
    "(ansible-playbook hetero.compute.console -e instance=jackie)"
)
CUT = (
    "once its tenant agrees, ansible-playbook hetero.compute.reboot_instance -e instance=jackie -e how=hard cuts its "
    "power and boots it"
)


@pytest.mark.parametrize(
    ("ways", "power", "ssh", "said"),
    [
        (["booting", "running"], "on", OWN_KEY, None),
        ([], "off", None, None),
        (["booting", "shutting down"], "off", None, "a stop or terminate was cut off: run it again"),
        (
            ["booting", "running"],
            "on",
            OTHER_KEY,
            "another host key than that of jackie answers at 10.0.2.1: not touched",
        ),
        (
            ["booting", "running"],
            "on",
            ALIVE,
            f"recorded as running, {MUTE.replace('does not answer ssh', 'answers without a key')}; {CUT}",
        ),
        (["booting"], "on", SILENT, f"recorded as booting, {MUTE}; {CUT}"),
        ([], "on", SILENT, f"recorded as power off, {MUTE}"),
        ([], "on", None, "it is on, and jackie has no root on it yet: provision it again, or terminate it"),
    ],
)
def test_what_is_only_said(node, proxy, ways, power, ssh, said):
    """Lost: a tenant's machine, to who tidies up; or what its owner is to look at."""
    running(node, proxy, *ways)
    before = proxy.store.record(0)
    look = look_at(proxy, power=power, ssh=ssh)
    assert judge(proxy, look) == ([(said, None)] if said else [])
    assert (proxy.store.record(0), look.work.changed) == (before, False)


@pytest.mark.parametrize("state", ["running", "power off"])
@pytest.mark.parametrize("check", [True, False])
def test_one_of_which_nothing_is_left_is_said(proxy, parts, state, check):
    """Lost: the way out of a claim that a database brought back; or its record, which names a start as the way."""
    claimed(proxy)
    move(proxy, *(["booting", "running"] if state == "running" else []))
    left = (tenants_boards.LEFT_OVER.format(name="jackie"), None)
    mended = [("recorded as running, its outlet is off", "recorded as power off")] if state == "running" else []
    look = look_at(proxy, power="off", check=check)
    assert judge(proxy, look) == [*mended, left]
    record = proxy.store.record(0)
    if state == "running":
        assert look.work.change.diff[0]["before"] == {"state": "running"}
        assert look.work.change.diff[0]["after"] == {"state": "power off"}
        assert (record.state, record.note) == (("running", "") if check else ("power off", tenants_boards.ROOT_GONE))
    assert parts.put == []


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("ssh", [ALIVE, SILENT, OTHER_KEY])
def test_who_waits_for_what_is_put_back_is_asked_again(node, proxy, parts, monkeypatch, check, ssh):
    """Lost: a board told as dead although all it lacked was its export, put back a moment before."""
    running(node, proxy, "booting", "running")
    asked = []
    monkeypatch.setattr(reconciliation, "_answer", lambda look: asked.append(look) or OWN_KEY)
    parts.missing = ["export", "mount"]
    look = look_at(proxy, ssh=ssh, check=check)
    found = judge(proxy, look)
    assert found[0] == ("missing: export, mount", "would be put back" if check else "put back")
    again = ssh != OTHER_KEY and not check
    assert ((len(asked), len(found)) == (1, 1)) if again else (not asked and len(found) == 2)
    parts.missing = []
    judge(proxy, look_at(proxy, ssh=ALIVE))
    assert len(asked) == again, "nothing was put back"


def test_what_is_yet_to_be_made_or_is_being_ended_is_not_put_back(node, proxy, parts):
    """Lost: the files of a board whose end was begun, which come back; or that a root is yet to be made."""
    claimed(proxy, made=False)
    assert judge(proxy, look_at(proxy, power="off")) == [("claimed for jackie, not made ready yet", None)]
    assert (parts.put, parts.entries) == ([], [])
    proxy.store.put("jackie", image_hash="ab" * 32)
    node.root(0, proxy.store.claim_of("jackie"))
    move(proxy, "booting", "shutting down")
    judge(proxy, look_at(proxy, power="off"))
    assert (parts.put, parts.entries) == ([], [])


def test_what_is_about_to_go_is_said(node, proxy, monkeypatch):
    """Lost: a root whose file is gone, with the next restart."""
    running(node, proxy, "booting", "running")
    monkeypatch.setattr(tenants_boards, "about_to_go", lambda proxy, board, claim: "its file is gone")
    assert judge(proxy, look_at(proxy, ssh=OWN_KEY)) == [("its file is gone", None)]


@pytest.mark.parametrize(
    ("ways", "power", "entry"),
    [
        (["booting", "running"], "on", "written"),
        (["booting"], "on", "written"),
        ([], "on", "removed"),
        ([], "off", "removed"),
    ],
)
@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("changed", [True, False])
def test_a_boot_entry_is_there_where_a_board_is_on(node, proxy, parts, ways, power, entry, check, changed):
    """Lost: the next boot of a running board; or a board that somebody switches on by hand, booted from an old root."""
    running(node, proxy, *ways)
    parts.entry = changed
    look = look_at(proxy, power=power, ssh=OTHER_KEY if power == "on" else None, check=check)
    found = [one for one in judge(proxy, look) if "entry" in one[0]]
    assert parts.entries == [entry]
    text = "its boot entry is missing, or another" if entry == "written" else "a boot entry although it is off"
    assert found == ([(text, f"would be {entry}" if check else entry)] if changed else [])
    assert look.work.changed == changed


def test_what_was_settled_or_not_seen_is_not_judged(node, proxy, parts):
    """Lost: a board, by what nobody knows of it."""
    running(node, proxy, "booting", "running")
    assert judge(proxy, look_at(proxy, power=None)) == []
    look = look_at(proxy, power="off")
    look.settled = True
    assert judge(proxy, look) == []
    assert (parts.put, proxy.store.record(0).state) == ([], "running")
