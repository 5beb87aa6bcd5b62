# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPU hosts on the page. If these fail, a broken GPU is shown as free, or a host that gave no answer not at all."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.page import hosts
from ansible_collections.hetero.compute.plugins.plugin_utils.snapshots import devices

FREE = dict(address="0000:01:00.0", arch="fermi", healthy=True)
TAKEN = dict(FREE, address="0000:02:00.0", holder="c1", model="M2090")
BROKEN = dict(FREE, address="0000:03:00.0", healthy=False, why_unhealthy="Xid 79")
SEEN = dict(gpus=[FREE, TAKEN, BROKEN], instances=[], capacity=dict(memory_mb=dict(free=1, total=2)))


def test_each_gpu_as_it_is():
    """Lost: which GPU can be asked for."""
    [card] = hosts.cards({"gpu1": SEEN, "gpu2": dict(SEEN, error="no answer")})
    assert card.said == "3 GPUs, 1 free; free: 1 of 2 memory_mb"
    assert [(cell.look, cell.who) for cell in card.cells] == [("free", "-"), ("running", "c1"), ("error", "Xid 79")]
    assert card.cells[1].more == "0000:02:00.0\nmodel: M2090\nholder: c1"
    assert card.cells[2].state == "fermi · not to be given"


def test_a_host_with_cards_for_guests_is_called_so():
    """Lost: what the strip shows."""
    kvm = dict(SEEN, devices=[dict(FREE, unsupported=None)])
    assert hosts.title({"gpu1": SEEN}) == "GPU hosts"
    assert hosts.title({"gpu1": SEEN, "kvm1": kvm}) == "KVM and GPU hosts"
    assert hosts.cards({"kvm1": kvm})[0].said.startswith(f"{len(devices(kvm))} devices, ")
    assert hosts.cards({"g": dict(gpus=[FREE], instances=[])})[0].said == "1 GPU, 1 free"


def test_instances_by_their_states():
    """Lost: an instance in a state that this release does not know, shown as if all were well."""
    seen = dict(instances=[dict(state="running"), dict(state="stopped"), dict(state="odd")])
    assert [node.look for node in hosts.nodes({"gpu1": seen})] == ["running", "free", "error"]


def test_what_needs_a_person():
    """Lost: the list that an operator reads in the morning."""
    odd = dict(instance="ml-8", state="error", since_seconds=7200, note="no root")
    found = list(
        hosts.to_look_at(
            {
                "gpu1": dict(SEEN, instances=[odd, dict(state="running")]),
                "gpu2": dict(gpus=[], instances=[], error="down"),
            }
        )
    )
    assert found == [
        ("gpu1", "error", "0000:03:00.0", "Xid 79"),
        ("gpu1", "error 2 h", "ml-8", "no root"),
        ("gpu2", "no answer", "", "down"),
    ]
