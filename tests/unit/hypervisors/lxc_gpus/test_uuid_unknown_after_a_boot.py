# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is known of a container's GPU outlives a boot after which the driver shows no UUID. Lost: its GPU, to another,
once cards have changed their slots.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.allocation import GpuRequest
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import gpu_reconciliation
from ansible_collections.hetero.compute.tests.unit.devices.gpus.boxes import gpu, standing_in

FIRST = GpuRequest(gpus=("0000:01:00.0",))


@pytest.fixture
def host(monkeypatch):
    with standing_in(monkeypatch, [gpu(number) for number in range(1, 5)]) as found:
        yield found


def shown(host):
    return [(row.holder.split("/")[-1], row.address, row.uuid, row.state) for row in host.store.allocations()]


def unknown(host):
    for one in host.found.gpus:
        one.uuid = None


def test_a_known_uuid_is_not_forgotten(host):
    """Lost: by what a's card is known again."""
    box = host.box("a", 10)
    host.attach(box, wanted=FIRST)
    before = shown(host)
    unknown(host)
    host.attach(box, wanted=FIRST)
    assert shown(host) == before


def test_its_card_is_not_given_to_another_since_its_uuid_was_forgotten(host):
    """Lost: a's card, which came back in another slot."""
    a, d = host.box("a", 10), host.box("d", 11)
    host.attach(a, wanted=FIRST)
    unknown(host)
    host.attach(a, wanted=FIRST)
    for one, uuid in zip(host.found.gpus, ("GPU-3", "GPU-2", "GPU-1", "GPU-4")):
        one.uuid = uuid  # the two cards changed places
    host.open["a"].clear()
    a.pids = [None]
    with pytest.raises(NoneFree, match=r"0000:03:00\.0 allocated to a"):
        host.attach(d, wanted=GpuRequest(gpus=("GPU-1",)))


def test_a_card_that_another_has_open_is_not_opened_to_its_owner_as_well(host, monkeypatch):
    """a's card and the free one of slot 3 changed places while the host was off, and d was given what is in slot 3
    before any UUID was known. Lost: that a card is open to one of them.
    """
    a, d = host.box("a", 10), host.box("d", 11)
    host.attach(a, wanted=FIRST)
    unknown(host)
    host.attach(d, wanted=GpuRequest(gpus=("0000:03:00.0",)))
    for one, uuid in zip(host.found.gpus, ("GPU-3", "GPU-2", "GPU-1", "GPU-4")):
        one.uuid = uuid
    for name in ("_stale", "_not_granted"):  # they close, and need a real cgroup
        monkeypatch.setattr(gpu_reconciliation, name, lambda *_given: None)
    look = host.look(repair=True)
    gpu_reconciliation._table(look)
    gpu_reconciliation._container(look, a)
    assert not [path for path in host.open["a"] & host.open["d"] if path != "/dev/nvidiactl"]
    (finding,) = [finding for finding in look.findings if finding.kind == "incomplete"]
    assert "not given: container d can open 0000:03:00.0" in finding.found
    assert finding.done is None
