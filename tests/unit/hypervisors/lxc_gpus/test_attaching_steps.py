# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What giving and taking back GPUs does in which order, and what it says. test_attachment.py has real containers.

Tests hypervisors/lxc_gpus/site.py.
"""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.allocation import (
    ATTACHED,
    DETACHING,
    GpuRequest,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import attachment, site
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus.site import Site
from ansible_collections.hetero.compute.tests.unit.devices.gpus.boxes import SHARED, Box, gpu, standing_in

ONE, TWO, THREE = gpu(1), gpu(2, model="Tesla C2050"), gpu(3)
NODE = ONE.nodes[0].path
NOTE = "stop and start it once"


@pytest.fixture
def host(monkeypatch):
    with standing_in(monkeypatch, [ONE, TWO, THREE]) as made:
        yield made


def test_where_a_site_is_by_itself():
    """Lost: locks and containers where the host's other commands and its owner look for them."""
    site = Site(None, None)
    assert (site.lxcpaths, site.run_folder) == (("/var/lib/lxc",), "/run/hetero")


def test_what_is_returned_of_a_gpu_that_was_given(host):
    """Lost: the keys of which playbooks make what a tenant reads; which part of a slow call took its time."""
    box = host.box("ml", 7)
    done = host.attach(box, 1, method="lxc-attach")
    shown = dict(index=1, minor=1, model="Tesla M2090", arch="fermi", numa_node=0, address=ONE.address, uuid="GPU-1")
    assert done["gpus"] == [dict(shown, share=False, persistent=True)]
    assert (done["container"], done["holder"], done["running"]) == ("ml", "/lxc/ml#id", True)
    assert [(node["path"], node["before"]["node"]) for node in done["nodes"]] == [(NODE, False), (SHARED.path, False)]
    assert (done["isolation"], done["holders"], done["libraries"]) == ("cgroup", [], [])
    assert done["others"] == [
        dict(address=one.address, state="closed", why="it is closed") for one in host.found.gpus[1:]
    ]
    assert set(done["seconds"]) == {"driver", "allocate", "open", "persist", "prove"}
    assert host.done == [("libraries", "/proc/7/root"), ("give", "ml", [NODE, SHARED.path], False), ("write", "ml")]
    assert host.methods == ["lxc-attach"]
    headers = {one["before_header"]: (one["before"], one["after"]) for one in done["diff"]}
    assert headers[box.thing] == (dict(gpus=[]), dict(gpus=[ONE.address]))
    assert headers[f"{box.thing} {NODE}"][1] == dict(allowed=True, node=True)
    assert headers[f"{box.thing}, after a restart"][1] == dict(gpus=[ONE.address], rules=["c 195:1 rw", "c 195:255 rw"])
    assert host.rows() == [("ml", 1, ATTACHED)]
    assert host.events()[-1] == ("gpu", ONE.address, "attached to ml")
    assert host.files["ml"].request[0]["count"] == 1
    assert host.files["ml"].gpus == [dict(address=ONE.address, uuid="GPU-1")]
    before = host.events()
    assert host.attach(box, 1)["changed"] is False
    assert host.events() == before


def test_one_that_is_off_has_it_at_its_next_start(host):
    """Lost: who reads the history looks for a node in a container that was off; nothing of one that is off is open."""
    box = host.box("ml")
    done = host.attach(box, 1)
    assert (done["running"], done["nodes"], done["isolation"], done["others"]) == (False, [], None, [])
    assert done["notes"] == []
    assert host.done == [("libraries", "/roots/ml"), ("write", "ml")]
    assert host.events()[-1][2] == "attached to ml for its next start"


def test_a_dry_run_of_its_start_finds_what_it_had_for_one_run(host):
    """Lost: check mode of an instance's start, which is given again what it had, once it runs."""
    box = host.box("ml")
    host.has(box, ONE, persistent=False)
    assert [gpu["address"] for gpu in host.attach(box, 1, persistent=False, check=True)["gpus"]] == [ONE.address]
    with pytest.raises(Refused, match="does not run, and would have them for this run alone"):
        host.attach(box, 1, persistent=False)


def test_for_one_run_no_file_is_written(host):
    """Lost: a GPU that was given for one run is there again after a restart, when another has it."""
    done = host.attach(host.box("ml", 7), 1, persistent=False)
    assert done["gpus"][0]["persistent"] is False
    assert host.done[-1] == ("remove", "ml")
    host.attach(host.boxes["ml"], 1)
    assert host.done[-1] == ("write", "ml")


def test_a_dry_run_writes_nothing_and_names_who_would_have_it(host):
    """Lost: a dry run's promise; a container that has no id yet is known by its folder."""
    box = host.box("ml", 7, key=False)
    done = host.attach(box, 1, check=True)
    assert (done["changed"], done["holder"]) == (True, "/lxc/ml")
    assert (host.rows(), host.events(), host.files, host.keys, host.open["ml"]) == ([], [], {}, {}, set())
    headers = {one["before_header"]: (one["before"], one["after"]) for one in done["diff"]}
    assert headers[box.thing][0] == dict(id=None, gpus=[])
    assert host.attach(box, 1)["holder"] == "/lxc/ml#new"
    done = host.detach(box, check=True)
    assert (done["changed"], done["holders"], host.rows()) == (True, [], [("ml", 1, ATTACHED)])
    assert host.files["ml"]
    assert NODE in host.open["ml"]


def test_who_may_do_nothing_waits_for_no_turn(host):
    """Lost: a dry run waits for whoever works on the container; or two work on one at once."""
    box = host.box("ml")
    assert isinstance(host.site.locked(box, "attach", Change(check=True), None), ExitStack)
    assert not isinstance(host.site.locked(box, "attach", Change(), None), ExitStack)


def test_what_is_no_container_and_what_is_no_host_for_gpus(host):
    """Lost: a container that does not start, for a command that its host has not; or a wrong reason why."""
    box = host.box("ml", 7)
    host.found.unsupported = "NVSwitch"
    with pytest.raises(Refused, match=r"^this host: NVSwitch$"):
        host.attach(box, 1)
    host.found.unsupported, box.defined = None, False
    with pytest.raises(BadInput, match="container ml: there is no such container"):
        host.attach(box, 1)
    box.defined, host.site.host.command = True, "/nowhere/hetero"
    with pytest.raises(Refused, match="/nowhere/hetero: is not there"):
        host.attach(box, 1)
    assert (host.rows(), host.done) == ([], [])
    assert host.attach(box, 1, persistent=False)["changed"]


def test_folders_that_the_table_knows_are_looked_at_too(host, monkeypatch):
    """Lost: a GPU that is open to a container in a folder that a request does not name, to the next who asks."""
    asked = []

    def look(folders, gpus, known):
        asked.append((folders, gpus))
        return attachment.open_rights.Live(())

    monkeypatch.setattr(attachment.open_rights, "look", look)
    box = host.box("ml")
    host.has(box, ONE)
    for holder, one in (("/srv/with#sign/c2#id2", TWO), ("instance:ml-8", THREE)):
        row = host.has(box, one)
        host.store.free(row)
        host.store.grant(attachment.replace(row, holder=holder))
    host.site.look()
    assert asked == [(["/lxc", "/srv/with#sign"], host.found.gpus)]


def test_what_it_keeps_stays_its_own_though_its_file_is_written_anew(host):
    """Lost: a GPU that nobody took back, after the next restart: its container's file lost the id in the meantime."""
    box = host.box("ml", 7)
    host.attach(box, 2)
    first, second = host.store.allocations()
    host.keys.pop("ml")
    meant = attachment.Meant([first], host.site.gpus_of([first]))
    attachment.take_back(host.site, box, "/lxc/ml#id", meant, "fail", Change(), None)
    assert [gpu["address"] for gpu in host.files["ml"].gpus] == [second.address]
    assert host.store.allocations() == [second]
    assert SHARED.path in host.open["ml"]


# ---- restarted, or failed, on the way


@pytest.mark.parametrize("verb", ["attach", "detach"])
@pytest.mark.parametrize(
    ("pids", "times"), [([1, 1], 1), ([1, 2, 2, 2], 2), ([1, 2, 3, 4, 5, 5], 3), ([*range(1, 90)], 0)]
)
def test_a_container_that_is_restarted_is_served_three_times(host, verb, pids, times):
    """Lost: a GPU after one restart too many, with the word that all is well; or a call that never ends."""
    box = host.box("ml", 7)
    host.attach(box, 1)
    host.done.clear()
    box.pids, last = list(pids), pids[-1]
    rows, change = host.store.allocations(), Change()

    def ask():
        if verb == "attach":
            return attachment.bring_up(host.site, box, rows, rows, change)
        return attachment.take_back(host.site, box, "/lxc/ml#id", attachment.Meant(rows, [ONE]), "fail", change, None)

    if times:
        assert ask()["pid"] == last
    else:
        with pytest.raises(HeteroError, match="container ml: was restarted 3 times meanwhile: run this again"):
            ask()
    word = "give" if verb == "attach" else "take"
    assert len([one for one in host.done if one[0] == word]) == (times or 3)


def test_what_could_not_be_handed_over_goes_back_and_what_it_had_stays(host):
    """Lost: a GPU to a container that cannot use it; or the one that it had, for a second one that failed."""
    box = host.box("ml", 7)
    host.attach(box, 1)
    host.done.clear()
    host.fails.add("give")
    with pytest.raises(HeteroError, match=r"^container ml: give does not work$"):
        host.attach(box, 2)
    assert host.rows() == [("ml", 1, ATTACHED)]
    taken = [one for one in host.done if one[0] == "take"]
    assert [one[2] for one in taken] == [[TWO.nodes[0].path]]
    with pytest.raises(HeteroError, match="give does not work"):
        host.attach(box, 1)
    assert len([one for one in host.done if one[0] == "take"]) == len(taken)
    with pytest.raises(HeteroError, match="give does not work"):
        host.attach(box, 3, check=True)
    assert len([one for one in host.done if one[0] == "take"]) == len(taken)
    host.fails.add("take")
    with pytest.raises(HeteroError, match=r"give does not work; taking that back: .*take does not work") as failed:
        host.attach(box, 2)
    assert "gpu_reconcile" in str(failed.value)
    assert host.rows() == [("ml", 1, ATTACHED), ("ml", 2, DETACHING)]


def test_who_can_open_another_gpu_is_given_none(host):
    """Lost: one tenant's GPU to another's program, which could open it before, or since anything was given."""
    box = host.box("ml", 7)
    host.states["ml", TWO.address] = attachment.open_rights.OPEN
    with pytest.raises(Refused, match="can open GPUs that it was not given"):
        host.attach(box, wanted=GpuRequest(gpus=(ONE.address,)))
    assert (host.rows(), host.methods) == ([], []), "nothing was given before"
    host.states.clear()
    give = host.site.running

    def opened(container, pid):
        host.states["ml", TWO.address] = attachment.open_rights.OPEN
        return give(container, pid)

    host.site.running = opened
    with pytest.raises(Refused, match="can open GPUs that it was not given"):
        host.attach(box, wanted=GpuRequest(gpus=(ONE.address,)))
    assert host.rows() == []
    assert NODE not in host.open["ml"]


def test_isolation_without_rules_is_called_what_it_is(host):
    """Lost: the word that only a missing node keeps a container from other tenants' GPUs."""
    box = host.box("ml", 7)
    host.states["ml", TWO.address] = attachment.open_rights.NODE_ONLY
    done = host.attach(box, 1)
    assert done["isolation"] == "node-only"
    assert [one["state"] for one in done["others"]] == ["node-only", "closed"]


def test_verbs_take_turns_by_their_names(host, monkeypatch):
    """Lost: for what one waits, in the words of those who wait; and a site's own folders."""
    held, taken = [], site.lock
    monkeypatch.setattr(site, "lock", lambda *words: held.append(words[:4]) or taken(*words))
    box = host.box("ml")
    host.attach(box, 1)
    host.detach(box)
    folder = host.site.run_folder
    assert held == [(folder, "lxc-ml", "attach", "test"), (folder, "lxc-ml", "detach", "test")]
    monkeypatch.setattr(site, "Running", lambda *given: given)
    del host.site.running
    assert host.site.running(box, 7) == (box, 7, "/private")


def test_what_the_table_does_not_know_is_written_down_first(host):
    """Lost: GPUs after the next restart: its file would be written with what the table knows alone."""
    box = host.box("ml", 7)
    host.attach(box, 2)
    for row in host.store.allocations():
        host.store.free(row)
    before = dict(host.files)
    host.open["ml"].clear()
    with pytest.raises(Refused, match="by its own file, and not by the table"):
        host.attach(box, wanted=GpuRequest(gpus=(THREE.address,)))
    with pytest.raises(Refused, match=f"has {TWO.address} by its own file, and not by the table"):
        host.detach(box, ONE.address)
    assert host.files == before
    host.detach(box)
    assert host.files == {}


# ---- taking back


def test_what_is_returned_of_gpus_that_were_taken_back(host):
    """Lost: whose processes had them, what the container has left, and what was closed in it."""
    box = host.box("ml", 7)
    host.attach(box, 2)
    host.done.clear()
    done = host.detach(box, "GPU-1")
    assert [one["address"] for one in done["gpus"]] == [TWO.address]
    assert (done["running"], done["holder"], done["isolation"], done["others"]) == (True, "/lxc/ml#id", None, [])
    assert done["holders"] == [dict(pid=7, command="python3")]
    assert [node["path"] for node in done["nodes"]] == [NODE]
    assert set(done["seconds"]) == {"persist", "close", "holders"}
    assert host.done == [
        ("users", "ml", [NODE], "cgroup of ml"),
        ("write", "ml"),
        ("take", "ml", [NODE], False),
        ("let go", "ml", "fail"),
    ]
    headers = {one["before_header"]: (one["before"], one["after"]) for one in done["diff"]}
    assert headers[box.thing] == (dict(gpus=[ONE.address, TWO.address]), dict(gpus=[TWO.address]))
    assert host.events()[-1] == ("gpu", ONE.address, "taken back from ml")
    host.done.clear()
    host.detach(box, on_holders="wait")
    assert host.done[0] == ("remove", "ml"), "nobody is asked before, whose GPU is waited for"
    assert ("let go", "ml", "wait") in host.done
    assert host.rows() == []
    assert host.detach(box)["changed"] is False


def test_what_could_not_be_closed_is_not_being_taken_back(host):
    """Lost: gpu_reconcile, which would find it the container's, and leave open what nobody gave."""
    box = host.box("ml", 7)
    host.open["ml"].add(NODE)
    host.fails.add("take")
    with pytest.raises(HeteroError, match="take does not work"):
        host.detach(box)
    assert host.rows() == []
    host.fails.clear()
    host.detach(box)
    assert (host.open["ml"], host.rows()) == (set(), [])


def test_one_that_is_off_is_asked_for_no_process(host):
    """Lost: the GPU of a container that is off, for its processes that cannot be looked for."""
    box = host.box("ml")
    host.attach(box, 1)
    host.done.clear()
    done = host.detach(box)
    assert host.done == [("remove", "ml")]
    assert (done["nodes"], done["holders"], done["running"]) == ([], [], False)


def test_what_is_for_one_run_is_not_written_for_the_next(host):
    """Lost: a GPU after a restart that was given for one run, when another one is taken back; and one that waits for
    its processes is not given again."""
    box = host.box("ml", 7)
    host.has(box, ONE, persistent=False)
    host.has(box, TWO)
    row = host.has(box, THREE, state=DETACHING)
    host.open["ml"].update([NODE, TWO.nodes[0].path, THREE.nodes[0].path])
    host.detach(box, TWO.address)
    assert "ml" not in host.files
    assert NODE in host.open["ml"]
    assert host.rows() == [("ml", 1, ATTACHED), ("ml", 3, DETACHING)]
    kept = [one.address for one in host.site.kept("/lxc/ml#id")]
    assert (kept, host.site.kept("/lxc/ml#id", persistent=True)) == ([ONE.address], [])
    assert row.address not in kept


def test_a_container_that_is_gone_loses_its_own_and_no_others(host, monkeypatch):
    """Lost: a GPU that a running container has, from the table, as another one was destroyed."""
    box, other = host.box("ml"), host.box("ml2", 8)
    host.has(box, ONE)
    host.has(other, TWO)
    host.open["ml2"].add(TWO.nodes[0].path)
    gone = Box("ml")
    gone.defined = False
    del host.boxes["ml"]
    monkeypatch.setattr(attachment.open_rights.Live, "is_there", lambda live, holder: "ml2" in holder)
    done = host.detach(gone)
    assert host.rows() == [("ml2", 2, ATTACHED)]
    (change,) = done["diff"]
    assert (change["before"], change["after"]) == (dict(gpus=[ONE.address]), dict(gpus=[]))
    assert (done["changed"], done["running"], done["holder"], done["nodes"]) == (True, False, None, [])
    assert (done["isolation"], done["others"], done["holders"], done["gpus"]) == (None, [], [], [])


@pytest.mark.parametrize(
    ("names", "rows", "gpus"),
    [
        (["GPU-1"], [1], [1]),
        (["gpu-1", "0000:01:00.0"], [1], [1, 1]),
        ([1], [1], [1]),
        (["0000:03:00.0"], [], [3]),
        # gone: by what the table has of it
        (["GPU-9"], [9], []),
        (["0000:09:00.0"], [9], []),
        (["0000:08:00.0"], [8], []),
        (["GPU-9", 1], [9, 1], [1]),
    ],
)
def test_what_is_taken_back_is_named_as_the_table_or_the_host_has_it(host, names, rows, gpus):
    """Lost: the GPU that somebody did not name; or one that is gone stays its holder's for good."""
    box = host.box("ml")
    known = [host.has(box, one) for one in (ONE, TWO, gpu(9))]
    known.append(host.has(box, gpu(8), uuid=None))
    found, named = attachment._named(host.site, names, known)
    assert [int(row.address[6]) for row in found] == rows
    assert [one.index for one in named] == gpus


def test_what_nobody_has_cannot_be_named(host):
    """Lost: the word that a name is wrong, with which all that it has would be taken back, or nothing."""
    with pytest.raises(BadInput, match="GPU GPU-7: is no GPU of this host"):
        host.detach(host.box("ml", 7), "GPU-7")


# ---- both


@pytest.mark.parametrize(
    ("rows", "pid", "settled", "said"),
    [(1, 7, False, True), (0, 7, False, False), (1, None, False, False), (1, 7, True, False)],
)
def test_who_must_start_anew_is_told(host, rows, pid, settled, said):
    """Lost: a tenant's GPUs by a reboot typed inside; or who needs not restart his work does so."""
    box = host.box("ml", pid)
    host.settled.update(["ml"] if settled else [])
    notes = attachment._notes(box, [None] * rows, pid)
    assert [NOTE in note for note in notes] == [True] * said


def test_what_is_gone_stays_in_its_holders_file(host):
    """Lost: a GPU after its card was out of the machine for a day: the container's file forgot what it had. Or
    another's GPU to this container, at its next start: with a card out, the driver gives its number to another.
    """
    box = host.box("ml")
    rows = [host.has(box, ONE), host.has(box, gpu(9))]
    attachment.persist(host.site, box, rows, Change())
    written = host.files["ml"]
    assert [node.path for node in written.nodes] == [NODE, SHARED.path]
    assert written.rules == ["c 195:1 rw", "c 195:255 rw"]
    assert [one["uuid"] for one in written.gpus] == ["GPU-1", "GPU-9"]
    before = list(host.done)
    attachment.persist(host.site, box, rows, Change())
    assert host.done == [*before, ("write", "ml")], "of an earlier boot the same must be written anew"


def test_what_is_proven_of_a_gpu_that_the_host_has_no_more_is_shown_without_facts(host):
    """Lost: the result of a call, for a GPU that is gone: what is left of it is its address."""
    box = host.box("ml")
    row = host.has(box, gpu(9), share=True)
    done = dict(proofs=[], pid=None, isolation=None, others=[])
    (shown,) = attachment._result(host.site, box, None, [row], done, Change(), more=5)["gpus"]
    assert (shown["address"], shown["model"], shown["index"], shown["share"]) == (row.address, None, None, True)
