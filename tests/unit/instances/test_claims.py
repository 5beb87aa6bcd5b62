# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests for containers. If these fail, one user gets what another has, or is refused without a reason.

Tests compute_host/reconciliation.py.
"""

from __future__ import annotations

import json
import re
import sqlite3
from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host import allocation
from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import lifecycle, reconciliation
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, NoneFree, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.locks import lock
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import folders
from ansible_collections.hetero.compute.plugins.modules import instance
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY, OTHER_KEY
from ansible_collections.hetero.compute.tests.unit.instances.conftest import ADDRESSES, CG1


def flavor(**extra):
    return dict(CG1, extra_specs=dict(CG1["extra_specs"], **extra))


def holders(site):
    return [gpu["holder"] for gpu in site.info()["gpus"]]


def test_two_get_two_each_and_a_third_is_told_why_not(claims):
    """Memory is there for four, GPUs for two: each GPU says who has it, and nothing of the third stays."""
    first = claims.claim("ml-7")
    assert first["lines"][0]["text"] == "wants cg1.xlarge: 4 of 4 fermi GPUs free, gpu1 chosen"
    second = claims.claim("ml-8", owner="eve")
    assert second["lines"][0]["text"] == "wants cg1.xlarge: 2 of 4 fermi GPUs free, gpu1 chosen"
    assert holders(claims) == ["ml-7", "ml-7", "ml-8", "ml-8"]
    assert [one["ip"] for one in claims.info()["instances"]] == ["10.0.81.10", "10.0.81.11"]
    with pytest.raises(NoneFree) as caught:
        claims.claim("ml-9")
    said = str(caught.value).splitlines()
    assert said[0] == "ml-9 wants cg1.xlarge (16384 MB, 160 GB, hypervisor LXC, gpus 2, gpu_arch fermi): no node."
    assert said[1].startswith("  gpu1: 2 fermi GPUs wanted: ")
    for name, addresses in (("ml-7", ADDRESSES[:2]), ("ml-8", ADDRESSES[2:])):
        assert re.search(rf"{', '.join(addresses)} allocated to {name} since [0-9]+ s", said[1])
    assert [one["instance"] for one in claims.info()["instances"]] == ["ml-7", "ml-8"]
    claims.do(lifecycle.absent, "ml-7")
    assert claims.claim("ml-9")["instances"][0]["ip"] == "10.0.81.10"


def test_the_gpu_of_a_container_whose_file_system_is_not_mounted_is_given_to_nobody(claims):
    """Lost: a GPU of a container that was made by hand, and that starts with its file system, to the next who asks."""
    with claims.host() as host:
        gpu = host.gpus[0]
        nodes = tuple((node.path, *node.number) for node in gpu.nodes)
        wanted = allocation.GpuRequest(count=1)
        holder = f"{claims.lxcpath}/trainer#{'0' * 32}"
        host.store.grant(
            allocation.Allocation(gpu.address, holder, gpu.uuid, False, allocation.ATTACHED, 0.0, wanted, nodes)
        )
    claims.lxcpath.mkdir(exist_ok=True)
    for _again in range(2):
        with pytest.raises(NoneFree, match=rf"{gpu.address} allocated to trainer"):
            claims.claim(flavor=flavor(gpus="= 4"))
    folders.mark(str(claims.lxcpath))  # now it is the folder in which it was made
    claims.claim(flavor=flavor(gpus="= 4"))
    assert holders(claims) == ["ml-8"] * 4


def test_asked_again_and_asked_for_by_another(claims):
    """The same again changes nothing; another owner's name, another flavor and another key are refused."""
    claims.claim(lease_hours=3)
    again = claims.claim(lease_hours=9)
    assert (again["changed"], again["new"]) == (False, [])
    assert again["lines"][0]["text"] == "wants cg1.xlarge: has gpu1"
    for more, words in (
        (dict(owner="eve"), "belongs to jo"),
        (dict(key=OTHER_KEY), "another ssh key"),
        (dict(flavor=dict(CG1, memory_mb=1)), "another flavor"),
    ):
        with pytest.raises(Refused, match=words):
            claims.claim(**more)


def test_a_name_is_one_owners_as_an_instance_and_as_a_request(claims):
    """Lost: verbs take either, so that eve could make what jo asked for as one partly hers."""
    claims.claim("lab", count=2, flavor=dict(CG1, memory_mb=1))
    for more in (dict(instance="lab"), dict(instance="lab-2"), dict(instance="lab-1", count=2)):
        with pytest.raises(Refused, match="belongs to jo: choose another name"):
            claims.claim(owner="eve", **more)
    assert [claim["owner"] for claim in claims.info()["claims"]] == ["jo", "jo"]


def test_a_name_is_one_instances_or_that_of_several(claims):
    """Lost: lab-1 and lab-2, when somebody who forgot count= ends the lab that came beside them."""
    small = dict(CG1, memory_mb=1, vcpus=1, local_gb=1, extra_specs={"hypervisor": "s== LXC"})
    claims.claim("lab", count=2, flavor=small)
    claims.claim("web", flavor=small)
    claims.claim("ed-1", flavor=small)
    for more, words in (
        (dict(instance="lab"), r"^lab: stands for several that are there \(lab-1, lab-2\): add -e count=2"),
        (dict(instance="web", count=2), "^web: is an instance by itself, and cannot be several"),
        (dict(instance="ed", count=2), "^ed-1: is an instance by itself, and cannot be one of several"),
    ):
        with pytest.raises(Refused, match=words):
            claims.claim(flavor=small, **more)
    there = sorted(claim["instance"] for claim in claims.info()["claims"])
    assert there == ["ed-1", "lab-1", "lab-2", "web"]


def test_how_many_there_is_room_for_counts_none_that_was_there(claims):
    """Lost: the sense of the answer: `-1 of 2 nodes`, where the first of two is missing and the second one is there."""
    claims.claim("lab", count=2, numbers=(2,))
    claims.claim("full")
    with pytest.raises(NoneFree) as caught:
        claims.claim("lab", count=2)
    assert str(caught.value).splitlines()[0].endswith(": no node besides the 1 that it has.")


def test_a_path_is_no_image(claims):
    """A tenant's own root has a path on the host; and a configuration from before is told how to be mended."""
    for path in (f"{claims.lxcpath}/ml-8/rootfs/box.tar", "file:///srv/x.tar", "../box", "0" * 64):
        with pytest.raises(BadInput, match="is no name for an image: give the name of one in the store"):
            claims.claim(image=path)
    given = {name: option.get("default") for name, option in instance.SPEC.options.items()}
    given.update(
        kind="container", config=str(claims.config), instance="ml-8", owner="jo", flavor=CG1, ssh_public_key=KEY
    )
    claims.config.write_text(json.dumps(dict(claims.settings, default_image="/srv/images/box.tar")))
    with pytest.raises(BadInput, match=r"default_image is '/srv/images/box.tar'.*hetero.compute.gpu_host.* imports it"):
        instance.work(given, False)
    assert claims.nothing_is_left()


def test_a_claim_from_before_images_were_names(claims):
    """Its path is that of the file that gave the name, so that what it runs can still be restored and rebuilt."""
    claims.claim()
    with sqlite3.connect(claims.folder / "state" / "host.db") as table:
        table.execute("UPDATE instances SET image = '/srv/images/box.tar'")
    assert claims.claim()["changed"] is False


def test_all_or_nothing(claims):
    """Three times two of four GPUs: none of them, or with `partial` the two that are to be had."""
    with pytest.raises(NoneFree, match="2 of 3 nodes"):
        claims.claim("lab", count=3)
    assert (claims.info()["instances"], holders(claims)) == ([], [None] * 4)
    partial = claims.claim("lab", count=3, partial=True)
    assert partial["new"] == ["lab-1", "lab-2"]
    assert claims.info(instance="lab")["claims"][1]["request"] == "lab"
    assert len(claims.do(lifecycle.absent, "lab")["instances"]) == 2
    assert claims.nothing_is_left()


def test_a_share_of_a_request_that_others_serve_too(claims):
    """Numbers that another host has would be there twice; ended by number, the others stay."""
    given = claims.claim("lab", count=4, numbers=(2, 4))
    assert (given["new"], given["lines"][0]["text"]) == (
        ["lab-2", "lab-4"],
        "wants cg1.xlarge: 4 of 4 fermi GPUs free, gpu1 chosen",
    )
    assert claims.claim("lab", count=4, numbers=(2, 4))["changed"] is False
    with pytest.raises(NoneFree, match=r"lab wants 1 cg1\.xlarge .*: no node"):
        claims.claim("lab", count=4, numbers=(3,))
    assert [one["instance"] for one in claims.do(lifecycle.absent, "lab", numbers=(4,))["instances"]] == ["lab-4"]
    assert [one["instance"] for one in claims.info()["instances"]] == ["lab-2"]
    with pytest.raises(BadInput, match="numbers: has 5, and the instances are 1 to 4"):
        claims.claim("lab", count=4, numbers=(5,))


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (flavor(gpu_arch="s== kepler"), "gpu_arch fermi does not satisfy 's== kepler'"),
        (flavor(gpus="= 5"), "gpus 4 does not satisfy '= 5'"),
        (flavor(hypervisor="s== QEMU"), "hypervisor LXC does not satisfy 's== QEMU'"),
        (dict(CG1, memory_mb=70000), "memory_mb 65536 < 70000"),
        (dict(CG1, cpu_arch="tile-gx64"), "cpu_arch x86_64 is not tile-gx64"),
        (dict(name="plain", memory_mb=1), "the flavor does not ask for it (extra_specs: hypervisor: s== LXC)"),
    ],
)
def test_what_a_host_can_never_serve(claims, asked, why, monkeypatch):
    """Why a host is no answer to a flavor is said by the flavor's own keys."""
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    with pytest.raises(NoneFree) as caught:
        claims.claim(flavor=asked)
    assert caught.value.facts["rejected"] == {"gpu1": [why]}
    assert claims.nothing_is_left()


def test_an_image_that_is_not_here_is_no_reason_to_stop(claims):
    """A host without the image passes the request on to the next one; nothing is claimed for what cannot be made."""
    with pytest.raises(NoneFree) as caught:
        claims.claim(image="debian-13")
    assert caught.value.facts["rejected"]["gpu1"][0].startswith("image debian-13: no such image")
    assert claims.nothing_is_left()


def test_no_rebuild_is_advised_to_an_image_that_is_not_here(claims):
    """Lost: trust in the way on, which fails as typed; or the instance, where the way is to end it first."""
    claims.claim()
    for other in ({}, dict(flavor=dict(CG1, memory_mb=1))):
        with pytest.raises(Refused, match=r"image: image debian-13: no such image in .*: choose another image$"):
            claims.claim(image="debian-13", **other)


def test_gpus_that_are_counted_by_another_sign_or_none(claims):
    """A flavor may ask for a number in each of Nova's ways, or for a container without GPUs."""
    assert claims.claim("one", flavor=flavor(gpus=">= 1", gpu_arch="<or> kepler <or> fermi"))["new"] == ["one"]
    assert holders(claims).count("one") == 1
    without = {key: value for key, value in CG1["extra_specs"].items() if key == "hypervisor"}
    claims.claim("none", flavor=dict(CG1, extra_specs=without))
    assert holders(claims).count("none") == 0
    with pytest.raises(BadInput, match="give the number of GPUs"):
        claims.claim("odd", flavor=flavor(gpus="<= 2"))


def test_a_container_made_by_hand_is_nobodys_instance(claims):
    """Somebody's own container of the same name would be started, and removed with the instance."""
    (claims.lxcpath / "ml-8").mkdir(parents=True)
    (claims.lxcpath / "ml-8" / "config").write_text("lxc.uts.name = ml-8\n")
    with pytest.raises(NoneFree, match="there is a container ml-8 already that is no instance"):
        claims.claim()
    assert holders(claims) == [None] * 4
    assert (claims.lxcpath / "ml-8" / "config").exists()


def test_a_dry_run_of_reconcile_does_not_judge_an_instance_at_work(claims):
    """Lost: another user's provision, shown as a claim of which nothing is made, with a terminate as the way out."""
    claims.claim()
    with claims.host(create=False) as host:
        with lock(host.config.run_folder, "instance-ml-8", "start", "jo", Deadline(1)):
            (look,) = reconciliation.reconcile(host, Change(True), 5.0)["instances"]
        ((found, done),) = [(one["found"], one["done"]) for one in look["found"]]
        assert re.fullmatch(r"busy with start of ml-8 \(jo, pid [0-9]+, since [0-9:]+\): not looked at", found)
        assert done is None
        (look,) = reconciliation.reconcile(host, Change(True), 5.0)["instances"]
        assert "not made yet" in look["found"][0]["found"]


@pytest.mark.parametrize("kind", ["lxc", "kvm"])
def test_an_address_that_is_gone_from_the_database_is_said(claims, kind):
    """Lost: the word of what is wrong and what to do, in place of a traceback."""
    claims.claim()
    with claims.host() as host:
        there = host.store.put("ml-8", address=None, host_key="ssh-ed25519 AAAA x")
        work = lifecycle.work_of(host, replace(there, kind=kind), Change(), Deadline(0.5), lambda *_said, **_more: None)
        with pytest.raises(Refused, match=r"ml-8: has no address in the host's database: put a newer copy"):
            work.answer()
        assert work.result["known_hosts"] is None


def test_a_lease_is_extended_by_hours_that_are_given(claims):
    """Lost: a word that says which option is missing, in place of a traceback."""
    claims.claim(lease_hours=3)
    with pytest.raises(BadInput, match="lease_hours: is missing: give hours from now, 0 for no end"):
        claims.do(lifecycle.extended)
