# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a reconcile finds, says and mends, and what it leaves. Real containers: test_attachment.py."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.allocation import (
    ATTACHED,
    ATTACHING,
    DETACHING,
    GpuRequest,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.gpus.processes import Process
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc.persistence import Persisted
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import (
    gpu_reconciliation,
    open_rights,
)
from ansible_collections.hetero.compute.tests.unit.devices.gpus.boxes import LXCPATH, SHARED, gpu, standing_in

ONE, TWO, THREE = gpu(1), gpu(2), gpu(3)
NODE = ONE.nodes[0]


@pytest.fixture
def host(monkeypatch):
    with standing_in(monkeypatch, [ONE, TWO, THREE]) as made:
        monkeypatch.setattr(gpu_reconciliation.processes, "holders", lambda numbers, paths: {})
        yield made


def kinds(look):
    return [(one.kind, one.container, one.address) for one in look.findings]


@pytest.mark.parametrize(
    ("repair", "check", "done", "mended", "noted"),
    [
        (True, False, "closed", 1, True),
        (True, True, "closed", 0, True),
        (False, True, "closed", 0, False),
        (False, False, "closed", 0, False),
        (True, False, None, 0, False),
    ],
)
def test_what_is_found_is_mended_where_that_is_asked_for(host, repair, check, done, mended, noted):
    """Lost: what an audit must not touch; or a repair that says that it closed what it left open."""
    look, calls, box = host.look(repair, check), [], host.box("ml")
    look.note("wildcard", "all", box, ONE.address, done, lambda: calls.append(1))
    (finding,) = look.findings
    assert (finding.container, finding.address, finding.error) == ("ml", ONE.address, None)
    assert (len(calls), finding.done) == (mended, "closed" if noted else None)
    diff = [(one["before_header"], one["before"], one["after"]) for one in look.change.diff]
    assert diff == [(f"ml {ONE.address}", {"wildcard": "all"}, {"wildcard": None})] * noted
    look.note("moved", "it", done="written down")
    assert look.findings[1].container is None
    assert [one["before_header"] for one in look.change.diff][noted:] == ["table"] * repair


def test_what_could_not_be_mended_says_why(host):
    """Lost: a GPU that stays open, in a list of what was closed."""
    look = host.look(repair=True)

    def mend():
        raise HeteroError("is used", "container ml")

    look.note("wildcard", "all", None, ONE.address, "closed", mend)
    assert (look.findings[0].done, look.findings[0].error) == (None, "container ml: is used")


def test_one_pass_over_a_host_says_what_took_how_long(host, monkeypatch):
    """Lost: findings of one part of a host; which part a slow look spends its time on; the result's keys."""
    monkeypatch.setattr(gpu_reconciliation, "_containers", lambda site: ["c1", "c2"])
    monkeypatch.setattr(gpu_reconciliation, "_table", lambda look: look.note("a", "1"))
    monkeypatch.setattr(gpu_reconciliation, "_container", lambda look, box: look.note("b", box))
    monkeypatch.setattr(gpu_reconciliation, "_processes", lambda look: look.note("c", "2"))
    done = gpu_reconciliation.reconcile(host.site, False, Change(), Deadline(60))
    assert [(one["kind"], one["found"]) for one in done["findings"]] == [
        ("a", "1"),
        ("b", "c1"),
        ("b", "c2"),
        ("c", "2"),
    ]
    assert set(done["findings"][0]) == {"kind", "found", "container", "address", "done", "error"}
    assert set(done["seconds"]) == {"table", "containers", "processes"}
    assert done["changed"] is False


# ---- the table


@pytest.mark.parametrize(("repair", "check"), [(True, False), (True, True), (False, True), (False, False)])
def test_rows_of_the_gone_and_of_the_moved(host, monkeypatch, repair, check):
    """Lost: a GPU to a container that is no more; or a look that changes the table."""
    monkeypatch.setattr(open_rights.Live, "is_there", lambda live, holder: "ml2" in holder)
    host.has(host.box("ml"), ONE)
    host.has(host.box("ml2"), gpu(9), uuid="GPU-2")
    before = host.rows()
    look = host.look(repair, check)
    gpu_reconciliation._table(look)
    assert [one for one in kinds(look) if one[0] != "lost GPU"] == [
        ("no holder", None, ONE.address),
        ("moved", None, TWO.address),
    ]
    assert look.findings[0].found == "allocated to /lxc/ml#id, which is no more"
    assert look.findings[1].found == "ml2 has the GPU that was at 0000:09:00.0 (GPU-2)"
    assert [one.done for one in look.findings[:2]] == (["freed", "written down"] if repair else [None, None])
    assert host.rows() == ([("ml2", 2, ATTACHED)] if repair and not check else before)


@pytest.mark.parametrize(
    ("fields", "gone", "why"),
    [
        ({}, False, None),
        ({}, True, "is no more on this host"),
        ({"unsupported": "is bound to vfio-pci"}, False, "is bound to vfio-pci"),
        ({"why_unhealthy": "fell off the bus"}, False, "fell off the bus"),
    ],
)
def test_gpus_that_are_no_good_to_who_has_them_are_reported(host, monkeypatch, fields, gone, why):
    """Lost: why a tenant's programs fail; it is only said, as nobody but he knows what he is in the middle of."""
    monkeypatch.setattr(open_rights.Live, "is_there", lambda live, holder: True)
    host.has(host.box("ml"), ONE)
    host.found.gpus = [] if gone else [gpu(1, **fields)]
    look = host.look(repair=True)
    gpu_reconciliation._table(look)
    found = [(one.kind, one.found, one.address, one.done) for one in look.findings]
    assert found == ([("lost GPU", f"ml has it, and it {why}", ONE.address, None)] if why else [])


def test_who_has_something_by_its_own_file_is_looked_at(monkeypatch, tmp_path):
    """Lost: a container that is off, and that a table which was lost does not know: its GPU goes to another."""
    monkeypatch.setattr(gpu_reconciliation.liblxc, "running", lambda lxcpath: ["c1"])
    monkeypatch.setattr(gpu_reconciliation.liblxc, "containers", lambda lxcpath: ["c1", "c2", "c3", "c3 old"])
    monkeypatch.setattr(gpu_reconciliation.liblxc, "Container", lambda name, lxcpath: (lxcpath, name))
    monkeypatch.setattr(gpu_reconciliation.identity, "file_of", lambda box: str(tmp_path / box[1]))
    # one that was moved aside is no container that may be called so
    (tmp_path / "c3 old").touch()
    # even one that leads nowhere
    (tmp_path / "c3").symlink_to("/nowhere/at/all")
    site = SimpleNamespace(lxcpaths=[LXCPATH], store=SimpleNamespace(allocations=list))
    assert gpu_reconciliation._containers(site) == [(LXCPATH, "c1"), (LXCPATH, "c3")]


# ---- one container


def container(host, monkeypatch, box, look):
    """The parts of a look at one container that it comes to."""
    came = []
    for name in ("_cut_short", "_unwritten", "_stale", "_not_granted", "_granted"):
        monkeypatch.setattr(gpu_reconciliation, name, lambda *given, name=name: came.append(name) or [])
    gpu_reconciliation._container(look, box)
    return came


def test_all_parts_of_a_container_are_looked_at(host, monkeypatch):
    """Lost: what is wrong in one that runs; of one that is off there is nothing to be closed."""
    parts = ["_cut_short", "_unwritten", "_stale", "_not_granted", "_granted"]
    assert container(host, monkeypatch, host.box("ml", 7), host.look()) == parts
    assert container(host, monkeypatch, host.box("off"), host.look()) == [*parts[:2], parts[4]]
    gone = host.box("gone")
    gone.defined = False
    assert container(host, monkeypatch, gone, host.look()) == []


@pytest.mark.parametrize(
    ("rows", "given"),
    [([], True), ([(ONE, ATTACHED)], True), ([(ONE, DETACHING)], False), ([(gpu(9), ATTACHED)], False)],
)
def test_what_is_lost_or_taken_back_is_not_given_again(host, monkeypatch, rows, given):
    """Lost: a container's file, without the GPU that is out of the machine for a day; or a GPU that is taken back."""
    box = host.box("ml", 7)
    for one, state in rows:
        host.has(box, one, state=state)
    assert ("_granted" in container(host, monkeypatch, box, host.look())) is given


def test_where_something_is_not_written_down_nothing_is_given(host, monkeypatch):
    """Lost: a container's file, which would be written without what the table does not know."""
    box, came = host.box("ml", 7), []
    for name in ("_cut_short", "_stale", "_not_granted"):
        monkeypatch.setattr(gpu_reconciliation, name, lambda *given: None)
    monkeypatch.setattr(gpu_reconciliation, "_unwritten", lambda *given: [ONE])
    monkeypatch.setattr(gpu_reconciliation, "_granted", lambda *given: came.append(given))
    gpu_reconciliation._container(host.look(), box)
    assert came == []


def test_what_is_given_for_one_run_is_not_made_to_last(host, monkeypatch):
    """Lost: a GPU that was given for one run, written into the container's file by a repair."""
    box, came = host.box("ml", 7), []
    host.has(box, ONE, persistent=False)
    host.has(box, TWO)
    for name in ("_cut_short", "_unwritten", "_stale", "_not_granted"):
        monkeypatch.setattr(gpu_reconciliation, name, lambda *given: [])
    monkeypatch.setattr(gpu_reconciliation, "_granted", lambda look, box, rows, lasting: came.append((rows, lasting)))
    gpu_reconciliation._container(host.look(), box)
    ((rows, lasting),) = came
    assert [[row.address for row in some] for some in (rows, lasting)] == [[ONE.address, TWO.address], [TWO.address]]


def test_one_that_cannot_be_looked_at_stops_no_other(host, monkeypatch):
    """Lost: all other findings, for one odd container; or the turn of who works on one."""
    asked = []
    monkeypatch.setattr(gpu_reconciliation, "held_by", lambda folder, name: asked.append(name) or "attach (jo)")
    box = host.box("ml", 7)
    look = host.look(check=True)
    assert container(host, monkeypatch, box, look) == []
    assert kinds(look) == [("not looked at", "ml", None)]
    assert look.findings[0].found.startswith("busy with attach (jo)")
    look, locked, real = host.look(repair=True), [], host.site.locked

    def odd(box, verb, *more):
        locked.append(verb)
        raise HeteroError("is odd", box.thing)

    host.site.locked = odd
    assert container(host, monkeypatch, box, look) == []
    host.site.locked = real
    assert (kinds(look), look.findings[0].found) == ([("not looked at", "ml", None)], "container ml: is odd")
    assert (locked, asked) == (["reconcile"], [box.lock_name])


@pytest.mark.parametrize(
    ("why", "repair", "check", "done", "left", "written"),
    [
        (None, True, False, "written down", [], [True, False]),
        (None, True, True, "written down", [ONE], [True]),
        (None, False, False, None, [ONE], [True]),
        ("allocated to jo", True, False, None, [ONE], [True]),
    ],
)
def test_what_only_its_own_file_names(host, monkeypatch, why, repair, check, done, left, written):
    """Lost: a running container's GPU, closed by a repair; or a dry run that writes the table."""
    dry = []

    def write_down(site, box, one, wanted, dry=False, asked=dry):  # pylint: disable=dangerous-default-value
        asked.append(dry)
        return why

    monkeypatch.setattr(gpu_reconciliation.own_files, "unwritten", lambda site, box: [(ONE, GpuRequest(1))])
    monkeypatch.setattr(gpu_reconciliation.restoration, "write_down", write_down)
    look = host.look(repair, check)
    assert gpu_reconciliation._unwritten(look, host.box("ml", 7)) == left
    assert kinds(look) == [("not written down", "ml", ONE.address)]
    assert (look.findings[0].done, dry) == (done, written)
    assert (why or "lost, or is older") in look.findings[0].found


def test_what_was_being_taken_back_is_taken_back_and_no_more(host):
    """Lost: the GPU that a container has, with the one that it gives back."""
    box = host.box("ml", 7)
    host.has(box, ONE)
    host.has(box, TWO, state=DETACHING)
    look = host.look()
    gpu_reconciliation._cut_short(look, box, "/lxc/ml#id")
    assert host.done == []
    look = host.look(repair=True)
    gpu_reconciliation._cut_short(look, box, "/lxc/ml#id")
    assert kinds(look) == [("being taken back", "ml", TWO.address)]
    assert look.findings[0].done == "taken back"
    assert host.rows() == [("ml", 1, ATTACHED)]
    assert ("let go", "ml", "fail") in host.done


@pytest.mark.parametrize(
    ("state", "opened", "file", "words"),
    [
        (ATTACHED, True, True, None),
        (ATTACHING, True, True, ["its attaching was cut short"]),
        (ATTACHED, False, True, ["/dev/nvidia1 is denied and not there", "/dev/nvidiactl is denied and not there"]),
        (ATTACHED, True, False, ["container ml, after a restart: []"]),
        (ATTACHING, True, False, ["its attaching was cut short", "container ml, after a restart: []"]),
    ],
)
def test_what_a_container_lacks_is_given(host, state, opened, file, words):
    """Lost: what a container lacks of its GPU, or the word of what it was; where all is well nothing is said."""
    box = host.box("ml", 7)
    row = host.has(box, ONE, state=state)
    if opened:
        host.open["ml"].update([NODE.path, SHARED.path])
    if file:
        rules = ["c 195:1 rw", "c 195:255 rw"]
        host.files["ml"] = Persisted([], [dict(address=ONE.address, uuid=ONE.uuid)], [], rules)
    for repair in (False, True):
        look = host.look(repair)
        gpu_reconciliation._granted(look, box, [row], [row])
        assert kinds(look) == ([("incomplete", "ml", ONE.address)] if words else [])
        assert words is None or look.findings[0].found == "; ".join(words)
        given = [one[-1] for one in host.done if one[0] == "give"]
        assert given == ([True, False] if repair and words else [True]), "a dry run first"
        if not repair:
            host.done.clear()
    two = host.has(box, TWO, state=ATTACHING)
    look = host.look()
    gpu_reconciliation._granted(look, box, [row, two], [row, two])
    assert look.findings[0].address == f"{ONE.address}, {TWO.address}"
    host.store.free(two)
    if words:
        assert host.rows() == [("ml", 1, ATTACHED)]
        assert {NODE.path, SHARED.path} <= host.open["ml"]
        assert host.files["ml"].rules == ["c 195:1 rw", "c 195:255 rw"]


# ---- processes of the host


def test_who_of_the_host_uses_what_was_given(host, monkeypatch):
    """Lost: why a tenant's GPU is slow: a program of the host's has it open; his own programs are no finding."""
    host.has(host.box("ml"), ONE)
    mine, theirs = Process(5, "python3", "ml"), Process(6, "dcgm")
    held = {NODE.number: [mine, theirs], TWO.nodes[0].number: [theirs], THREE.nodes[0].number: []}
    asked = []
    monkeypatch.setattr(
        gpu_reconciliation.processes, "holders", lambda numbers, paths: asked.append(sorted(numbers)) or held
    )
    look = host.look(repair=True)
    gpu_reconciliation._processes(look)
    assert asked == [[("c", 195, number) for number in (1, 2, 3)]]
    assert kinds(look) == [("used by the host", None, ONE.address)]
    assert look.findings[0].found == "ml has it, and the host's pid 6 dcgm has it open"
    held[NODE.number] = [mine]
    look = host.look()
    gpu_reconciliation._processes(look)
    assert look.findings == []


def test_a_process_that_lets_nobody_look_is_told(host, monkeypatch):
    """Lost: all that a reconcile found and mended, to one tenant's process."""

    def late(numbers, paths):
        raise TimedOut("its open files are too many", "process 5 (x)")

    monkeypatch.setattr(gpu_reconciliation.processes, "holders", late)
    look = host.look(repair=True)
    gpu_reconciliation._processes(look)
    assert kinds(look) == [("not looked at", None, None)]
    assert look.findings[0].found == "process 5 (x): its open files are too many"
