# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes are opened and closed with a GPU, and which GPU is meant and given: by rules alone, without a host.

Tests devices/gpus/container_gpus.py.
"""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host import allocation
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.allocation import (
    ATTACHING,
    DETACHING,
    GpuRequest,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.gpus import container_gpus
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.gpus.nodes import DeviceNode


def node(name, minor, present=True, major=195):
    return DeviceNode(
        f"/dev/{name}", "c", major, minor, present=present, why_absent=None if present else "is gone: run"
    )


def gpu(number, numa=0, uuid="own", **more):
    known = dict(address=f"0000:0{number}:00.0", uuid=f"GPU-{number}" if uuid == "own" else uuid, index=number)
    known.update(numa_node=numa, nodes=[node(f"nvidia{number}", number)], healthy=True, why_unhealthy=None)
    return SimpleNamespace(**{**known, "unsupported": None, "arch": "fermi", **more})


CTL, MODESET, UVM = node("nvidiactl", 255), node("nvidia-modeset", 254, False), node("nvidia-uvm", 0, True, None)
FOUND = SimpleNamespace(shared=[CTL, MODESET, UVM])
DAY = 86400.0  # seconds; cases are made long before the last of them is run


def test_the_nodes_of_a_gpu_are_its_own_and_those_that_all_share():
    """Lost: a program in the container that finds its GPU, and not the driver beside it."""
    one, two = gpu(1), gpu(2)
    assert container_gpus.nodes_for(FOUND, []) == []
    # modeset is not needed, and uvm has no number while its driver is not loaded
    assert container_gpus.nodes_for(FOUND, [one, two]) == [*one.nodes, *two.nodes, CTL]
    away = gpu(3, nodes=[node("nvidia3", 3, False)])
    with pytest.raises(Refused, match=r"^/dev/nvidia3: is gone: run: or run .*gpu_host"):
        container_gpus.nodes_for(FOUND, [one, away])
    with pytest.raises(Refused, match=r"^/dev/nvidiactl: "):
        container_gpus.nodes_for(SimpleNamespace(shared=[node("nvidiactl", 255, False)]), [one])


def test_what_is_closed_is_not_what_the_container_keeps():
    """Lost: the GPU that a container keeps; or the one that it gave back, by a node that the table alone remembers."""
    one, two, shared = gpu(1), gpu(2), [CTL.number, MODESET.number]
    rows = [SimpleNamespace(nodes=[("/dev/nvidia9", "c", 195, 9), ("/dev/other", "c", 195, 1)])]

    def closed(gpus, rows, kept):
        return [one.number for one in container_gpus.closing_nodes(FOUND, gpus, rows, kept)]

    assert closed([one], [], [two]) == [("c", 195, 1)]
    assert closed([one], [], []) == [("c", 195, 1), *shared]
    assert closed([], rows, [two]) == [("c", 195, 9), ("c", 195, 1)]
    assert closed([], rows, [one]) == [("c", 195, 9)]
    assert [one.path for one in container_gpus.closing_nodes(FOUND, [one], rows, [two])] == [
        "/dev/nvidia1",
        "/dev/nvidia9",
    ]


@pytest.mark.parametrize(
    ("address", "uuid", "meant"),
    [
        (1, "GPU-1", 1),
        (2, "GPU-1", 1),
        (3, "GPU-9", None),
        (1, None, 1),
        (9, None, None),
        # not used yet, so its driver does not know its UUID
        (4, "GPU-4", 4),
        (4, None, 4),
    ],
)
def test_a_gpu_is_known_by_its_uuid_wherever_it_is(address, uuid, meant):
    """Lost: a tenant's GPU, which is another's after a card was moved to another slot."""
    gpus = [gpu(1), gpu(2), gpu(3), gpu(4, uuid=None)]
    found = allocation.gpu_of(f"0000:0{address}:00.0", uuid, gpus)
    assert (found and found.index) == meant


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("0000:0A:00.0", 1),
        ("0000:0a:00.0", 1),
        (" gpu-2 ", 2),
        ("GPU-2", 2),
        (3, 3),
        ("3", 3),
        ("03", None),
        ("None", None),
    ],
)
def test_a_gpu_is_named_in_any_way(name, index):
    gpus = [gpu(1, address="0000:0A:00.0"), gpu(2), gpu(3, uuid=None)]
    if index is None:
        with pytest.raises(
            BadInput, match=r"is no GPU of this host: name one by index, address or UUID: 1: 0000:0A:00.0, 2"
        ):
            allocation.find(name, gpus)
    else:
        assert allocation.find(name, gpus).index == index
    with pytest.raises(BadInput, match=r"index, address or UUID: none$"):
        allocation.find(name, [])


@pytest.mark.parametrize(
    ("nodes", "own", "count", "chosen"),
    [
        # what one has stays, in the order that the caller says
        ([0, 0, 1], [1, 3], 2, [1, 3]),
        ([0, 0, 1], [3, 1], 1, [3]),
        # then those beside it
        ([0, 1, 1], [3], 2, [3, 2]),
        ([0, 1, 1], [1], 2, [1, 2]),
        # the smallest node that has enough
        ([0, 0, 0, 1, 1], [], 2, [4, 5]),
        ([0, 0, 1, 1, 1], [], 2, [1, 2]),
        ([0, 1, 1], [], 1, [1]),
        # no node has enough: the largest first, then beside it as few as are missing
        ([0, 1, 1], [], 3, [2, 3, 1]),
        ([0, 0, 1, 1, 1, 2], [], 4, [3, 4, 5, 6]),
        # alike: the first
        ([1, 0], [], 1, [2]),
        ([None, None], [], 2, [1, 2]),
        ([0], [], 2, [1]),
        ([], [], 1, []),
    ],
)
def test_gpus_that_are_near_each_other_go_together(nodes, own, count, chosen):
    """Lost: the speed between an instance's GPUs, or whole nodes that the next one would have had."""
    fit = [gpu(number, numa) for number, numa in enumerate(nodes, 1)]
    found = allocation.choose(list(reversed(fit)), [f"0000:0{number}:00.0" for number in own], count)
    assert [one.index for one in found] == chosen


def row(holder="/lxc/ml#a", share=False, state="attached"):
    return SimpleNamespace(
        address="0000:01:00.0", holder=holder, share=share, state=state, since=time.time() - 2.5 * DAY
    )


ME = "/lxc/me#a"
WILD = [SimpleNamespace(holder="/lxc/odd#a", container="odd", why="its list has all", alone=False)]


@pytest.mark.parametrize(
    ("fields", "wanted", "table", "opened", "why"),
    [
        ({}, {}, [], [], None),
        ({"unsupported": "no driver"}, {}, [row(ME)], [], "no driver"),
        ({"healthy": False, "why_unhealthy": "fell off"}, {}, [], [], "is not healthy: fell off"),
        ({"healthy": False, "why_unhealthy": "fell off"}, {}, [row(ME)], [], None),
        ({"healthy": False, "why_unhealthy": "x"}, {}, [row(ME, state=DETACHING)], [], "is not healthy: x"),
        ({}, {"arch": "fermi"}, [], [], None),
        ({}, {"arch": "kepler"}, [], [], "is fermi, not kepler"),
        ({"arch": None}, {"arch": "kepler"}, [], [], "is of unknown architecture, not kepler"),
        ({}, {}, [row()], [], "allocated to ml since 2 d"),
        ({}, {"share": True}, [row()], [], "allocated to ml since 2 d"),
        ({}, {"share": True}, [row(share=True)], [], None),
        (
            {},
            {},
            [row(share=True), row("instance:eve", True)],
            [],
            "shared by ml, eve: share it too (share: true), or wait",
        ),
        ({}, {}, [row(ME)], [], None),
        ({}, {}, [], WILD, "container odd can open it, nobody allocated it (its list has all): "),
        ({}, {"share": True}, [], WILD, None),
        ({}, {}, [], [SimpleNamespace(holder=ME, container="me", why="x", alone=False)], None),
    ],
)
def test_why_a_gpu_is_not_given(fields, wanted, table, opened, why):
    """Lost: a GPU that another has, or the reason why there is none; who has one keeps it though it fell ill."""
    one, seen = gpu(1, **fields), SimpleNamespace(open=lambda address: opened, doubt=lambda *of: None)
    found = allocation.why_not(one, ME, GpuRequest(**{"count": 1, **wanted}), table, seen)
    assert found == why or found.startswith(why)


@pytest.mark.parametrize(
    ("holder", "name"),
    [
        ("/var/lib/lxc/ml#1700", "ml"),
        ("/var/lib/lxc/ml", "ml"),
        ("/x/a#b#7", "a#b"),
        ("instance:eve", "eve"),
        ("eve", "eve"),
    ],
)
def test_a_holder_is_named_as_people_name_it(holder, name):
    assert allocation.short(holder) == name


def test_states_are_those_that_a_table_of_another_release_has():
    assert (ATTACHING, DETACHING) == ("attaching", "detaching")
