# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host's table says of a GPU that was given, and who has it then. Choosing one is in test_allocation.py."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.allocation import (
    ATTACHED,
    ATTACHING,
    DETACHING,
    GpuRequest,
    allocate,
    write_again,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import attachment
from ansible_collections.hetero.compute.tests.unit.devices.gpus.boxes import gpu, standing_in

ONE, TWO, THREE = gpu(1), gpu(2, arch="kepler"), gpu(3)
KEY = "/lxc/ml#id"


@pytest.fixture
def host(monkeypatch):
    with standing_in(monkeypatch, [ONE, TWO, THREE]) as made:
        seen = dict(open=lambda address: [], doubt=lambda address, holder: None, is_there=lambda holder: True)
        made.site.look = lambda: SimpleNamespace(**seen)
        yield made


def test_what_is_written_again_is_shared_where_others_have_it(host):
    """Lost: a shared GPU under a program of one of those who share it, or the history of how the table came to be."""
    box, other, third = host.box("ml"), host.box("other"), host.box("third")
    row = host.has(box, ONE)
    host.has(host.box("else"), TWO)
    assert write_again(host.store, row) is False
    assert host.events() == []
    for one in (other, third):
        assert write_again(host.store, replace(row, holder=f"/lxc/{one.name}#id")) is True
    rows = host.store.allocations()
    assert sorted((row.holder.split("/")[2], row.share) for row in rows) == [
        *[("else#id", False), ("ml#id", True), ("other#id", True), ("third#id", True)]
    ]
    assert host.events()[0] == ("gpu", ONE.address, "/lxc/other#id has it: written down again")
    host.store.free(rows[-1])
    assert write_again(host.store, replace(rows[-1], share=True)) is True
    assert host.store.allocations(rows[-1].holder)[0].share is True


def asked(host, wanted, holder=KEY, **more):
    with host.store.transaction():
        return allocate(host.store, holder, wanted, host.found.gpus, host.site.look, **more)


def test_a_new_allocation_says_all_that_its_holder_needs_later(host):
    """Lost: a GPU after its restart, its nodes once it is gone, or who shared it, in its history."""
    (row,) = asked(host, GpuRequest(1))
    assert (row.persistent, row.method, row.nodes) == (True, "host", (("/dev/nvidia1", "c", 195, 1),))
    assert type(row)("a", "h", None, False, ATTACHED, 1.0, GpuRequest(1)).persistent is True
    assert type(row)("a", "h", None, False, ATTACHED, 1.0, GpuRequest(1)).method == "host"
    assert (ATTACHED, DETACHING) == ("attached", "detaching")
    (row,) = asked(host, GpuRequest(1, share=True), "/lxc/b#id", persistent=False, method="lxc-attach")
    assert (row.persistent, row.method, row.share) == (False, "lxc-attach", True)
    texts = [text for _phase, _address, text in host.events()]
    assert texts == [f"allocated to {KEY}", "allocated to /lxc/b#id, shared"]


def test_of_those_that_fit_ones_own_come_first_and_what_is_taken_back_does_not(host):
    """Lost: a program's GPU for another one, each time that somebody asks again for what he has."""
    host.has(host.box("ml"), THREE)
    assert [row.address for row in asked(host, GpuRequest(1))] == [THREE.address]
    host.store.free(host.store.allocations()[0])
    host.has(host.box("other"), ONE)
    host.has(host.boxes["ml"], THREE, state=DETACHING)
    host.store.free(host.store.allocations()[0])
    assert [row.address for row in asked(host, GpuRequest(1))] == [ONE.address]


def test_what_moved_is_followed_before_anybody_gets_it(host):
    """Lost: a card that was put into another slot, to the next who asks for one."""
    host.has(host.box("ml"), gpu(9), uuid="GPU-1")
    assert [row.address for row in asked(host, GpuRequest(1, "fermi"), "/lxc/b#id")] == [THREE.address]
    assert host.rows() == [("ml", 1, ATTACHED), ("b", 3, "attaching")]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (dict(unsupported="has no driver: load nvidia (modprobe nvidia)"), "has no driver: load nvidia"),
        (dict(arch=None), "is of unknown architecture, not fermi"),
    ],
)
def test_who_is_to_mend_his_own_gpu_is_not_told_to_end_another(host, fault, said):
    """Lost: somebody's container, which is ended because a GPU is not given whose driver is not loaded."""
    asked(host, GpuRequest(1, "fermi"))
    host.found.gpus = [gpu(1, **fault), TWO, THREE]
    with pytest.raises(Refused, match=f"has GPU {ONE.address}: {re.escape(said)}") as refused:
        asked(host, GpuRequest(1, "fermi"))
    assert refused.value.remedy == "mend that, then run this again"


def test_what_was_asked_for_is_said_back(host):
    """Lost: which of several requests found nothing, to who reads that there is none."""
    for wanted, text in (
        (GpuRequest(gpus=(1, "GPU-3")), "GPU 1, GPU-3"),
        (GpuRequest(1), "1 GPU"),
        (GpuRequest(2, "fermi"), "2 fermi GPUs"),
    ):
        assert str(wanted) == text
    for one in (gpu(8), gpu(9)):
        host.has(host.box("ml"), one)
    with pytest.raises(Refused, match=r"has GPU 0000:08:00\.0 \(GPU-8\), 0000:09:00\.0 \(GPU-9\), which is no more"):
        asked(host, GpuRequest(1))


def test_only_what_is_not_yet_is_written_down_as_given(host):
    """Lost: what the history says of when a GPU was given, each time that somebody asks again."""
    box = host.box("ml")
    rows = [host.has(box, ONE), host.has(box, TWO, state=ATTACHING)]
    attachment.finish(host.site, box, rows, Change(check=True), 7)
    assert host.rows()[1][2] == ATTACHING
    attachment.finish(host.site, box, rows, Change(), 7)
    assert host.rows() == [("ml", 1, ATTACHED), ("ml", 2, ATTACHED)]
    assert host.events() == [("gpu", TWO.address, "attached to ml")]
