# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPU hosts in the table and on the page. If these fail, operators see a GPU as free that somebody has, or is ill."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ansible_collections.hetero.compute.plugins.plugin_utils.filters.snapshots import snapshots
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.status_page import status_page
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.status_table import NOBODY, status_table
from ansible_collections.hetero.compute.tests.unit.plugin_utils.page.test_page import ELEMENTS, HOSTILE, Page, spoiled

#: Owner, address, image and age of each instance below.
OF_IT = ("jo", "10.0.81.10", "x", "3 d")
TYPES = Path(__file__).parents[3] / "playbooks" / "vars" / "instance_types.yml"


def gpu(address, holder=None, instance=None, **more):
    named = dict(uuid=f"GPU-{address}", model="Tesla M2090", driver="nvidia", numa_node=0, since=None)
    return dict(named, address=address, arch="fermi", healthy=True, why_unhealthy=None, unsupported=None, holder=holder,
                instance=instance) | more  # fmt: skip


def instance(name, state="running", gpus=(), **more):
    event = dict(id=1, time=1.8e9, instance=name, phase="gpus", text="2 of 4 free fermi GPUs", seconds=0.2)
    said = dict(request=name, name="gpu1", kind="lxc", ip="10.0.81.10", owner="jo", flavor="cg1.xlarge", image="x")
    said.update(note="", since_seconds=3 * 86400.0, lease_seconds=None, expires=None, events=[event])
    return dict(said, instance=name, state=state, gpus=list(gpus)) | more


def answer(item="gpu1"):
    """What a loop of host_info has got from a host with two instances, a broken GPU and one that is a stranger's."""
    capacity = {key: dict(total=65536, free=4) for key in ("memory_mb", "vcpus", "local_gb")}
    failed = dict(state="error", note="ssh did not answer", lease_seconds=7200.0, expires=1.8e9)
    return dict(
        item=item, hypervisor="LXC", cpu_arch="x86_64", unsupported=None, claims=[], devices=[], capacity=capacity,
        instances=[instance("ml-7", gpus=["0000:05:00.0"]), instance("ml-8", **failed)],
        gpus=[
            gpu("0000:05:00.0", "ml-7", "ml-7"),
            gpu("0000:06:00.0"),
            gpu("0000:09:00.0", "by-hand"),
            gpu("0000:0a:00.0", healthy=False, why_unhealthy="Xid 79: fallen off the bus"),
        ],
    )  # fmt: skip


def test_a_host_with_both_is_shown_as_both_and_fits_what_either_serves():
    """Its flavors for guests stood nowhere in the table, as if no host had them."""
    kg1 = dict(name="kg1", memory_mb=1024, extra_specs={"hypervisor": "s== KVM"})
    cg1 = dict(name="cg1", memory_mb=1024, extra_specs={"hypervisor": "s== LXC", "gpus": "= 1"})
    for hypervisors, kind, fit in (
        (["LXC", "KVM"], "gpu, kvm", "kg1, cg1"),
        (["KVM"], "kvm", "kg1"),
        ([], "gpu", "cg1"),
    ):
        result = dict(answer(), hypervisors=hypervisors, hypervisor=next(iter(hypervisors), "LXC"))
        lines = status_table([], fits=dict(kg1=kg1, cg1=cg1), hosts=snapshots([result], hosts=True))
        assert [cell.strip() for cell in lines[1].split("  ") if cell.strip()][1:4] == [kind, "fermi ×4", fit]


def test_the_table_says_who_has_what_and_what_nobody_gets():
    """A GPU that is a stranger's or ill counts as free, and requests are sent there in vain."""
    types = yaml.safe_load(TYPES.read_text())["hetero_instance_types"]
    seen = snapshots([answer(), dict(item="gpu2", msg="timed out")], hosts=True)
    assert (seen["gpu2"]["error"], seen["gpu2"]["gpus"]) == ("timed out", [])
    lines = [line.split("  ") for line in status_table([], fits=types, hosts=seen)]
    cells = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    assert cells[1:] == [
        ["gpu1", "gpu", "fermi ×4", "cg1.xlarge", "1 of 4 free", "ml-7", *OF_IT, "0000:05:00.0"],
        ["ml-8", *OF_IT, "lease 2 h left"],
        ["error: ssh did not answer"],
        [*NOBODY, "0000:09:00.0: by-hand has it"],
        [*NOBODY],
        ["0000:0a:00.0: Xid 79: fallen off the bus"],
        ["gpu2", "host", "-", "-", "not asked", *NOBODY],
        ["timed out (mend that, or leave it out: -e without=gpu2)"],
    ]


def test_the_page_shows_each_gpu_and_what_needs_a_look():
    page = Page(status_page({}, hosts=snapshots([answer(), dict(item="gpu2", msg="timed out")], hosts=True)))
    cells = [cell for cell in page.cells if str(cell[1]).startswith("0000:")]
    assert [(cell[0], cell[1], cell[2]) for cell in cells] == [
        ("running", "0000:05:00.0", "ml-7"),
        ("free", "0000:06:00.0", "-"),
        ("running", "0000:09:00.0", "by-hand"),
        ("error", "0000:0a:00.0", "Xid 79: fallen off the bus"),
    ]
    texts = [text for text in page.texts if text]
    after = texts[texts.index("Needs a look") :]
    assert all(text in after for text in ("timed out", "Xid 79: fallen off the bus", "ssh did not answer"))
    assert "Rack" not in texts
    assert all(text in texts for text in ("ml-7", "ml-8", "gpu1", "2 of 4 free fermi GPUs"))


@pytest.mark.parametrize("text", HOSTILE)
def test_texts_from_a_host_stay_texts(text):
    """A tenant's image, a stranger's container, an error: all of them are foreign."""
    found = snapshots([dict(spoiled(answer(), text), item=text), dict(item="gpu2", msg=text)], hosts=True)
    page = Page(status_page({}, title=text, hosts=found))
    assert not page.open
    assert all(ELEMENTS.fullmatch(element) for element in page.elements)
    assert not [name for name, value in page.attributes if name.startswith("on") or name in ("src", "href", "style")]
