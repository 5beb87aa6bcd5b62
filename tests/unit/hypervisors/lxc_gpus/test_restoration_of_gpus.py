# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which GPUs a container has after a restart of its host, or of its table. Real ones: test_restoration.py.

Tests hypervisors/lxc_gpus/own_files.py.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.allocation import ATTACHED, GpuRequest
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, NoneFree, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import identity
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc.persistence import Persisted
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import own_files, restoration
from ansible_collections.hetero.compute.tests.unit.devices.gpus.boxes import LXCPATH, SHARED, gpu, standing_in

#: The real one, which the stand-ins replace.
CONTAINER = restoration.liblxc.Container
ONE, TWO, THREE = gpu(1), gpu(2, arch="kepler"), gpu(3)


@pytest.fixture
def host(monkeypatch):
    with standing_in(monkeypatch, [ONE, TWO, THREE]) as made:
        # all of them are, as far as anybody knows
        monkeypatch.setattr(restoration.folders, "in_use", list)
        monkeypatch.setattr(
            restoration.liblxc, "containers", lambda lxcpath: list(made.boxes) if lxcpath == LXCPATH else []
        )
        monkeypatch.setattr(restoration.liblxc, "Container", lambda name, lxcpath: made.boxes[name])
        monkeypatch.setattr(
            restoration, "has", lambda box, pid, gpus: [one for one in gpus if one.nodes[0].path in made.open[box.name]]
        )
        seen = dict(open=lambda address: [], doubt=lambda address, holder: None, is_there=lambda holder: True)
        made.site.look = lambda: SimpleNamespace(**seen)
        yield made


def file(*gpus, **wanted):
    """What a container's own file says that it has."""
    request = dict(vars(GpuRequest(**{"count": 1, **wanted})), gpus=[])
    return Persisted([request] * len(gpus), [dict(address=one.address, uuid=one.uuid) for one in gpus], [], [])


def test_each_folder_is_restored_with_turns_and_what_moved_is_followed(host, monkeypatch):
    """Lost: the GPUs of containers in all folders but the last; or two work on one container at a host's start."""
    seen, locked = [], []

    def one(lxcpath, resolve, here, turn):
        turn(SimpleNamespace(lock_name="lxc-ml"))
        seen.append((lxcpath, resolve("box", "persisted", True), here))
        return {f"in {lxcpath}": None}

    monkeypatch.setattr(restoration.persistence, "restore", one)
    monkeypatch.setattr(restoration, "resolve", lambda site, *asked: asked)
    monkeypatch.setattr(restoration, "lock", lambda *words: locked.append(words))
    host.site.lxcpaths = ("/lxc", "/srv/lxc")
    host.has(host.box("ml"), gpu(9), uuid="GPU-1")
    assert restoration.restore(host.site) == {"in /lxc": None, "in /srv/lxc": None}
    asked = ("box", "persisted", True)
    assert seen == [("/lxc", asked, host.site.host), ("/srv/lxc", asked, host.site.host)]
    assert [words[1:4] for words in locked] == [("lxc-ml", "restore", "test")] * 2
    # somebody's work on a container takes seconds, and a host's start must not wait for ever
    assert all(10 <= words[4].seconds <= 120 for words in locked)
    assert host.rows() == [("ml", 1, ATTACHED)]


def test_its_own_are_its_own_with_todays_numbers(host):
    """Lost: a container's GPU by a table that is older than it; or the one that was given for one run lasts."""
    box = host.box("ml")
    host.has(box, ONE)
    host.has(box, TWO, persistent=False)
    given = host.resolve(box, file(ONE, THREE, count=2), True)
    assert [one["uuid"] for one in given.gpus] == ["GPU-1", "GPU-3"]
    assert [node.path for node in given.nodes] == ["/dev/nvidia1", "/dev/nvidia3", SHARED.path]
    assert given.rules == ["c 195:1 rw", "c 195:3 rw", "c 195:255 rw"]
    assert [(one["count"], tuple(one["gpus"])) for one in given.request] == [(1, ()), (2, ())]
    assert host.rows() == [("ml", number, ATTACHED) for number in (1, 2, 3)]
    # what is there is not given once more
    assert host.resolve(box, file(ONE, THREE), True).request == given.request


def test_what_cannot_be_had_is_said(host):
    """Lost: why a container does not start, to who starts it."""
    box = host.box("ml")
    with pytest.raises(Refused, match=r"GPU 0000:09:00\.0: is no more on this host \(UUID GPU-9\): put it back"):
        host.resolve(box, file(ONE, gpu(9)), True)
    assert host.rows() == []
    host.found.unsupported = "NVSwitch"
    with pytest.raises(Refused, match="this host: NVSwitch"):
        host.resolve(box, file(ONE), True)


def test_on_another_host_it_gets_as_many_of_each_kind(host):
    """Lost: the GPUs of a container that was carried to another host, or their kind; those that are there stay free."""
    box = host.box("ml")
    asked = [vars(GpuRequest(2)), vars(GpuRequest(1, "kepler")), vars(GpuRequest(2))]
    given = host.resolve(box, Persisted([dict(one, gpus=[]) for one in asked], [], [], []), False)
    assert [one["uuid"] for one in given.gpus] == ["GPU-1", "GPU-2", "GPU-3"]
    assert {row.state for row in host.store.allocations()} == {ATTACHED}
    other = host.box("other")
    with pytest.raises(NoneFree):
        host.resolve(other, file(gpu(9)), False)


def test_on_another_host_it_gets_no_more_than_it_had(host):
    """Lost: a GPU of others: those of any kind are counted with those of a kind; what is for one run stays so."""
    host.found.gpus = [ONE, gpu(2), gpu(3, arch="kepler")]
    asked = [dict(vars(GpuRequest(1, arch)), gpus=[]) for arch in (None, "kepler")]
    given = host.resolve(host.box("ml"), Persisted(asked, [], [], []), False)
    assert [one["uuid"] for one in given.gpus] == ["GPU-1", "GPU-3"]
    assert len(host.rows()) == 2
    host.has(host.boxes["ml"], gpu(2), persistent=False)
    assert [one["uuid"] for one in host.resolve(host.boxes["ml"], file(gpu(9)), False).gpus] == ["GPU-1", "GPU-3"]
    # here, too: the table is newer than the file
    assert [one["uuid"] for one in host.resolve(host.boxes["ml"], file(ONE, gpu(2)), True).gpus] == ["GPU-1"]


@pytest.mark.parametrize(("shares", "shared"), [((True, True), True), ((True, False), False)])
def test_on_another_host_it_shares_what_it_shared(host, shares, shared):
    """Lost: a GPU of one's own, shared with others on the next host."""
    asked = [dict(vars(GpuRequest(1, share=share)), gpus=[]) for share in shares]
    host.resolve(host.box("ml"), Persisted(asked, [], [], []), False)
    assert [row.share for row in host.store.allocations()] == [shared] * 2


def test_what_a_file_has_and_the_table_has_not(host):
    """Lost: a container's GPU, by the next write of its file; that is refused, and says how to go on."""
    box = host.box("ml")
    assert own_files.unwritten(host.site, box) == []
    host.files["ml"] = file(ONE, TWO, gpu(9), count=3)
    host.has(box, ONE)
    assert [(one.address, wanted) for one, wanted in own_files.unwritten(host.site, box)] == [
        (TWO.address, GpuRequest(3)),
    ]
    with pytest.raises(Refused, match=f"container ml: has {TWO.address} by its own file, and not by the table"):
        own_files.must_be_written_down(host.site, box)
    own_files.must_be_written_down(host.site, box, {TWO.address})
    # one that moved is in the table by its old address
    host.store.free(host.store.allocations()[0])
    host.has(box, gpu(8), uuid="GPU-1")
    assert [one.address for one, _wanted in own_files.unwritten(host.site, box)] == [TWO.address]


def test_it_is_written_down_or_it_is_said_why_not(host):
    """Lost: a GPU from its holder, or the reason why it is not; a dry run writes nothing."""
    box, other = host.box("ml"), host.box("other")
    assert restoration.write_down(host.site, box, ONE, GpuRequest(2), dry=True) is None
    assert host.rows() == []
    assert restoration.write_down(host.site, box, ONE, GpuRequest(2, share=False)) is None
    (row,) = host.store.allocations()
    assert (row.persistent, row.state, row.wanted) == (True, ATTACHED, GpuRequest(2))
    assert restoration.write_down(host.site, other, ONE, GpuRequest(1)).startswith("allocated to ml since ")


def test_a_table_begins_anew_with_what_files_and_the_kernel_say(host):
    """Lost: a GPU under somebody's running program, by a table that knows it as free."""
    box, other, off = host.box("ml", 7), host.box("other", 8), host.box("off")
    nobody = host.box("by hand", 9, key=False)
    host.files.update(ml=file(ONE, gpu(9)), off=file(TWO, share=True))
    host.open.update({"ml": {"/dev/nvidia1"}, "other": {"/dev/nvidia3"}, nobody.name: {"/dev/nvidia2"}})
    host.open["off"] = {"/dev/nvidia1"}
    begun = restoration.begin_anew(host.site, dry=True)
    assert (host.rows(), len(begun.written)) == ([], 4)
    begun = restoration.begin_anew(host.site)
    assert begun.left == []
    assert begun.written == {
        ONE.address: ["ml"],
        "0000:09:00.0": ["ml"],
        THREE.address: ["other"],
        TWO.address: ["off"],
    }
    rows = {row.address: row for row in host.store.allocations()}
    assert [(rows[address].persistent, rows[address].share) for address in sorted(rows)] == [
        *[(True, False), (True, True), (False, False), (True, False)]
    ]
    assert {row.state for row in rows.values()} == {ATTACHED}
    assert rows[THREE.address].wanted == GpuRequest(gpus=(THREE.address,))
    assert (rows[ONE.address].wanted, rows[ONE.address].uuid) == (GpuRequest(1), "GPU-1")
    assert (rows["0000:09:00.0"].uuid, rows["0000:09:00.0"].nodes) == ("GPU-9", ())
    assert rows[ONE.address].nodes == (("/dev/nvidia1", "c", 195, 1),)
    assert restoration.begin_anew(host.site) == ({}, [])
    assert (box.name, other.name, off.name) == ("ml", "other", "off")


def test_folders_that_are_asked_for_and_those_in_use_are_looked_at(host, monkeypatch):
    """Lost: GPUs of containers in a folder that the host's settings do not name."""
    seen = []
    monkeypatch.setattr(restoration.folders, "in_use", lambda: ["/in/use", "/lxc"])
    monkeypatch.setattr(restoration.liblxc, "containers", lambda lxcpath: seen.append(lxcpath) or [])
    assert restoration.begin_anew(host.site, ["/also"]) == ({}, [])
    assert seen == ["/also", "/in/use", "/lxc"]


def test_one_odd_container_keeps_no_other_from_what_it_has(host, monkeypatch):
    """Lost: all GPUs of a host, for one container whose file nobody can read; and the word of which it is."""
    host.box("ml")
    host.box("odd")
    host.files["ml"] = file(ONE)
    read = restoration.persistence.read

    def odd(box, here=None):
        if box.name == "odd":
            raise HeteroError("is odd", box.thing)
        return read(box, here)

    monkeypatch.setattr(restoration.persistence, "read", odd)
    begun = restoration.begin_anew(host.site)
    assert begun.written == {ONE.address: ["ml"]}
    assert len(begun.left) == 1
    assert "container odd: is odd" in begun.left[0]


@pytest.mark.parametrize("ours", [True, False])
def test_a_folder_of_any_name_keeps_no_container_from_what_it_has(host, monkeypatch, tmp_path, ours):
    """Lost: a new table for one that was lost, to a folder `ml old` beside those of containers; or the word that one
    which was moved there may have GPUs.
    """
    host.box("ml")
    host.files["ml"] = file(ONE)
    (tmp_path / "ml old" / (identity.FOLDER if ours else "x")).mkdir(parents=True)
    names = {str(tmp_path): ["ml old"], LXCPATH: ["ml"]}
    monkeypatch.setattr(restoration.liblxc, "containers", names.get)
    box = host.boxes["ml"]
    monkeypatch.setattr(restoration.liblxc, "Container", lambda name, at: box if at == LXCPATH else CONTAINER(name))
    begun = restoration.begin_anew(host.site, [str(tmp_path)])
    assert begun.written == {ONE.address: ["ml"]}
    assert ["'ml old': is no name for a container" in text for text in begun.left] == [True] * ours


@pytest.mark.parametrize(("gpus", "has", "said"), [([], True, True), ([], False, False), ([ONE], True, False)])
def test_a_host_that_shows_no_gpu_does_not_begin_its_table_in_silence(host, gpus, has, said):
    """Lost: all GPUs of a host whose driver is not loaded yet; a host without any is no reason for a word."""
    host.box("ml")
    host.files["ml"] = file(ONE) if has else None
    host.found.gpus = gpus
    left = restoration.begin_anew(host.site).left
    assert ["this host shows no GPU, and ml had some: load the driver" in text for text in left] == [True] * said


def test_what_the_table_gives_to_somebody_is_not_given_to_two(host, monkeypatch):
    """Lost: a GPU of one's own, shared by a table that was put together again; what could not be written is said."""
    box, other = host.box("ml", 7), host.box("other", 8)
    host.has(other, ONE)
    host.files["ml"] = file(ONE)
    begun = restoration.begin_anew(host.site)
    assert (begun.written, begun.left) == ({}, [])
    assert host.rows() == [("other", 1, ATTACHED)]
    assert host.store.allocations()[0].share is False
    # it is open to it, whoever else the table names
    del host.files["ml"]
    host.open["ml"] = {"/dev/nvidia1"}
    assert restoration.begin_anew(host.site).written == {ONE.address: ["ml"]}
    assert [row.share for row in host.store.allocations()] == [True, True]
    monkeypatch.setattr(restoration, "write_again", lambda store, row: False)
    host.files["ml"] = file(THREE)
    assert restoration.begin_anew(host.site).left == [
        f"not in the table although it was written: {THREE.address} of container {box.name}"
    ]
