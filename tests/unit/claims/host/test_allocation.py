# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, a GPU or a host's memory is promised twice, somebody's instance is taken by another, or a user is not
told why there is no GPU for them.

Tests claims/host/store.py.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import unicodedata
from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.allocation import (
    ATTACHED,
    ATTACHING,
    DETACHING,
    GpuRequest,
    allocate,
    short,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.claim_records import holder_of
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Asked, Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import (
    BadInput,
    HeteroError,
    NoneFree,
    Refused,
)
from ansible_collections.hetero.compute.tests.unit.devices.gpus.four import (
    C1,
    C2,
    C3,
    FOUR,
    HOST,
    KEY,
    Gpu,
    Reach,
    Seen,
)

CG1 = {"name": "cg1.xlarge", "memory_mb": 16384, "vcpus": 8, "local_gb": 160}


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "hetero" / "host.db")


@pytest.fixture
def store(path):
    with Store(path, "root pid 1") as opened:
        yield opened


def ask(store, holder, count=None, gpus=None, seen=None, **wanted):
    with store.transaction():
        given = allocate(store, holder, GpuRequest(count, **wanted), gpus or FOUR, lambda: seen or Seen())
    return [row.address for row in given]


def claim(store, instance="ml-8", owner="alice", flavor=None, image="debian", key=KEY, **more):
    return store.claim(Asked(instance, owner, flavor or CG1, image, key, "lxc", **more), HOST, Seen, FOUR)


# ---- which GPU


def test_gpus_of_one_numa_node_go_together(store):
    """Two GPUs of different sockets are slower for the program that has both."""
    assert ask(store, C1, 1, gpus=[Gpu(0), Gpu(2, numa_node=1), Gpu(3, numa_node=1)]) == ["0000:05:00.0"]
    assert ask(store, C2, 2) == ["0000:07:00.0", "0000:08:00.0"]
    assert ask(store, C1, 2) == ["0000:05:00.0", "0000:06:00.0"]
    with pytest.raises(NoneFree):
        ask(store, C3, 1)


def test_asked_again_nothing_changes(store):
    first = ask(store, C1, 2)
    rows, events = store.allocations(), store.events()
    assert ask(store, C1, 2) == first
    assert ask(store, C1, 1) == first[:1]
    assert ask(store, C1, gpus=FOUR[:2], count=2) == first
    assert [replace(row, wanted=None) for row in store.allocations()] == [replace(row, wanted=None) for row in rows]
    assert store.events() == events


@pytest.mark.parametrize("name", ["0000:06:00.0", "GPU-1", "gpu-1", 1, "1"])
def test_a_gpu_is_named_by_address_uuid_or_index(store, name):
    with store.transaction():
        [row] = allocate(store, C1, GpuRequest(gpus=(name, name)), FOUR, Seen)
    assert (row.address, row.uuid, row.state) == ("0000:06:00.0", "GPU-1", ATTACHING)


def test_each_gpu_that_is_passed_over_has_its_reason(store):
    ask(store, C1, 1)
    gpus = [
        Gpu(0),
        Gpu(1, healthy=False, why_unhealthy="Xid 79: fallen off the bus"),
        Gpu(2, arch="kepler"),
        Gpu(3, unsupported="is bound to vfio-pci, for virtual machines: bind it to nvidia"),
        Gpu(4, unsupported="is cut into 2 MIG instances"),
        Gpu(5),
    ]
    seen = Seen((Reach("/var/lib/lxc/wild", "0000:0a:00.0", "wild", "its device cgroup allows c 195:5"),))
    with pytest.raises(NoneFree) as none:
        ask(store, C2, 1, gpus, seen, arch="fermi")
    rejected = none.value.facts["rejected"]
    assert rejected["0000:05:00.0"].startswith("allocated to c1 since ")
    assert rejected["0000:06:00.0"] == "is not healthy: Xid 79: fallen off the bus"
    assert rejected["0000:07:00.0"] == "is kepler, not fermi"
    assert rejected["0000:08:00.0"].startswith("is bound to vfio-pci")
    assert rejected["0000:09:00.0"] == "is cut into 2 MIG instances"
    assert "container wild can open it, nobody allocated it" in rejected["0000:0a:00.0"]
    assert "gpu_reconcile" in rejected["0000:0a:00.0"]
    assert "wants 1 fermi GPU, none free" in str(none.value)
    assert "Xid 79: fallen off the bus; 0000:07:00.0 is kepler, not fermi; 0000:08:00.0 is bound" in str(none.value)
    assert store.allocations(C2) == []


def test_a_container_that_can_open_everything_keeps_exclusive_gpus_from_others_only(store):
    seen = Seen(tuple(Reach(C1, gpu.address, "c1") for gpu in FOUR))
    assert ask(store, C1, 1, seen=seen) == ["0000:05:00.0"]
    with pytest.raises(NoneFree, match="container c1 can open it"):
        ask(store, C2, 1, seen=seen)
    assert ask(store, C2, 1, seen=seen, share=True) == ["0000:06:00.0"]


def test_shared_gpus_are_shared_with_those_that_share(store):
    one = FOUR[:1]
    assert ask(store, C1, 1, one, share=True) == ask(store, C2, 1, one, share=True) == ["0000:05:00.0"]
    with pytest.raises(NoneFree, match=r"shared by c1, c2: share it too \(share: true\)"):
        ask(store, C3, 1, one)
    with pytest.raises(NoneFree, match="shared by c2"):
        ask(store, C1, 1, one)
    [row] = store.allocations(C2)
    store.free(row)
    assert ask(store, C1, 1, one) == ["0000:05:00.0"]
    with pytest.raises(NoneFree, match="allocated to c1"):
        ask(store, C2, 1, one, share=True)


def test_a_container_that_is_no_more_holds_nothing(store):
    """A re-created container has another id: the GPUs of the one that was are free, and not its own."""
    ask(store, C1, 4)
    assert ask(store, C2, 4, seen=Seen(there=(C2,))) == [gpu.address for gpu in FOUR]
    assert store.allocations(C1) == []
    assert "free again: /var/lib/lxc/c1#id1 is no more" in [event.text for event in store.events()]


def test_what_is_being_taken_back_from_what_runs_by_another_id_is_not_free(store):
    """Lost: a GPU of the next one who asks, to processes that have it open, as their container got another id."""
    ask(store, C1, 2)
    first, _second = store.allocations(C1)
    store.grant(replace(first, state=DETACHING))
    with pytest.raises(NoneFree, match="allocated to c1"):
        ask(store, C2, 4, seen=Seen(there=(C2,), running=(C1,)))
    assert ask(store, C2, 3, seen=Seen(there=(C2,), running=(C1,))) == [gpu.address for gpu in FOUR[1:]]
    assert ask(store, C2, 4, seen=Seen(there=(C2,))) == [gpu.address for gpu in FOUR]


def test_a_gpu_that_vanished_is_told_not_replaced(store):
    ask(store, C1, 2)
    with pytest.raises(Refused, match=r"has GPU 0000:06:00.0 \(GPU-1\), which is no more on this host") as refused:
        ask(store, C1, 2, [FOUR[0], *FOUR[2:]])
    assert "detach it" in str(refused.value)


def test_an_own_gpu_that_fell_ill_is_kept_and_not_given_to_others(store):
    ill = [replace(FOUR[0], healthy=False, why_unhealthy="Xid 48")]
    ask(store, C1, 1, FOUR[:1])
    assert ask(store, C1, 1, ill) == ["0000:05:00.0"]


def test_what_is_being_taken_back_may_be_given_again(store):
    ask(store, C1, 1)
    [row] = store.allocations()
    store.grant(replace(row, state=DETACHING))
    ask(store, C1, 1)
    assert store.allocations()[0].state == ATTACHING
    store.grant(replace(row, state=ATTACHED))
    ask(store, C1, 1)
    assert store.allocations()[0].state == ATTACHED


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (GpuRequest(), "give one of count and gpus"),
        (GpuRequest(1, gpus=(0,)), "give one of count and gpus"),
        (GpuRequest(0), "ask for 1 or more"),
        (GpuRequest(gpus=("0000:99:00.0",)), "name one by index, address or UUID: 0: 0000:05:00.0"),
    ],
)
def test_what_cannot_be_meant_is_said(store, wanted, said):
    with pytest.raises(BadInput, match=said), store.transaction():
        allocate(store, C1, wanted, FOUR, Seen)


def test_the_table_itself_refuses_two_exclusive_holders(store):
    ask(store, C1, 1)
    [row] = store.allocations()
    with pytest.raises(HeteroError, match="UNIQUE"):
        store.grant(replace(row, holder=C2))
    assert store.allocations() == [row]


def test_holders_are_named_as_people_name_them():
    names = [short(holder) for holder in (C1, "/srv/with#sign/c2#id", "instance:ml-8", "kvm:vm1")]
    assert names == ["c1", "c2", "ml-8", "vm1"]


# ---- instances


def test_an_instance_takes_memory_processors_disk_and_gpus_at_once(store):
    mine, created = claim(store, wanted=GpuRequest(2, "fermi"), lease_hours=2)
    assert created
    assert (mine.memory_mb, mine.vcpus, mine.local_gb, mine.state) == (16384, 8, 160, "claimed")
    assert mine.expires == pytest.approx(time.time() + 7200, abs=60)
    assert [row.holder for row in store.allocations()] == [holder_of("ml-8")] * 2
    again, created = claim(store, wanted=GpuRequest(2, "fermi"), key=KEY.replace("alice@", "other@"))
    assert (again, created) == (mine, False)
    assert claim(store, "ml-9", wanted=GpuRequest(2, "fermi"))[1]
    with pytest.raises(NoneFree, match="16384 MB of memory wanted, 7232 of 40000 left") as none:
        claim(store, "ml-10", wanted=GpuRequest(1, "fermi"))
    assert list(none.value.facts["rejected"]) == ["memory_mb"]
    small = dict(CG1, memory_mb=1024)
    with pytest.raises(NoneFree, match="allocated to ml-8 since"):
        claim(store, "ml-10", flavor=small, wanted=GpuRequest(1, "fermi"))
    assert [found.instance for found in store.claims()] == ["ml-8", "ml-9"]
    assert store.events(instance="ml-10") == []


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (dict(owner="bob"), "ml-8: belongs to alice: choose another name"),
        (dict(flavor=dict(CG1, vcpus=9)), "with another flavor: terminate it first"),
        (dict(image="fedora"), "with another image: rebuild it"),
        (dict(key=KEY.replace("First", "Other")), r"ssh key \(it has SHA256:[\w+/]{43}.*\): log in by .*; or rebuild"),
    ],
)
def test_a_name_is_its_owners_and_stays_what_it_is(store, other, said):
    claim(store)
    with pytest.raises(Refused, match=said) as refused:
        claim(store, **other)
    assert "AAAA" not in str(refused.value)


def test_a_name_with_an_accent_is_one_owner_however_it_is_typed(store):
    """Lost: an instance, to its owner, whose keyboard makes é of two characters."""
    one, two = (unicodedata.normalize(form, "José") for form in ("NFC", "NFD"))
    assert (claim(store, owner=one)[1], claim(store, owner=two)[1]) == (True, False)
    with pytest.raises(Refused, match="belongs to"):
        store.release("ml-8", "Jose")
    assert store.release("ml-8", two).owner == one


def test_a_container_takes_over_its_instances_gpus_and_release_frees_them(store):
    claim(store, wanted=GpuRequest(2))
    assert store.put("ml-8", container=C1, state="running").holder == C1
    assert [row.holder for row in store.allocations()] == [C1, C1]
    assert ask(store, C1, 2) == ["0000:05:00.0", "0000:06:00.0"]
    # rebuilt: another container of the same name
    store.put("ml-8", container=C2)
    assert [row.holder for row in store.allocations()] == [C2, C2]
    # its container was destroyed by hand: the claim stands until it is released
    ask(store, C3, 1, seen=Seen(there=(C3,)))
    assert len(store.allocations(C2)) == 2
    with pytest.raises(Refused, match="belongs to alice"):
        store.release("ml-8", "bob")
    assert store.release("ml-8", "alice").container == C2
    assert store.release("ml-8") is None
    assert [row.holder for row in store.allocations()] == [C3]
    phases = [event.phase for event in store.events(instance="ml-8")]
    assert phases == ["claim", "gpu", "gpu", "state", "release"]


def test_what_put_does_not_know_is_a_mistake(store):
    claim(store)
    with pytest.raises(TypeError, match="owner"):
        store.put("ml-8", owner="bob")
    with pytest.raises(Refused, match="is no instance of node "):
        store.put("nobody", state="running")


def test_check_mode_claims_nothing(store):
    with store.transaction(dry=True):
        claim(store, wanted=GpuRequest(2))
        assert len(store.allocations()) == 2
    assert store.claims() == store.allocations() == store.events() == []


RACER = """
import json, sys
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Asked, Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import NoneFree
from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.allocation import GpuRequest
from ansible_collections.hetero.compute.tests.unit.devices.gpus.four import FOUR, HOST, KEY, Seen
path, me = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
with Store(path) as store:
    try:
        store.claim(Asked(me, me, {"name": "one"}, "debian", KEY, "lxc", GpuRequest(1)), HOST, Seen, FOUR)
        print(json.dumps([row.address for row in store.allocations("instance:" + me)]))
    except NoneFree as none:
        print(json.dumps(none.facts["rejected"]))
"""


def test_of_twelve_at_once_four_get_a_gpu_and_eight_are_told_why(path):
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, path, f"i-{number}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for number in range(12)
    ]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    answers = [json.loads(racer.communicate(timeout=600)[0]) for racer in racers]
    won = [answer for answer in answers if isinstance(answer, list)]
    assert sorted(won) == [[gpu.address] for gpu in FOUR]
    for rejected in answers:
        if isinstance(rejected, dict):
            assert all(why.startswith("allocated to i-") for why in rejected.values())
            assert len(rejected) == 4
    with Store(path) as store:
        assert len(store.claims()) == len(store.allocations()) == 4
