# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host or a board is good for, by itself: reasons, room, what is counted. test_schedule.py has searches.

Tests site/kinds.py.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling import compute_hosts, fit, nodes
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.kinds import BY_HYPERVISOR, INSTANCES
from ansible_collections.hetero.compute.tests.unit.scheduling.test_schedule import (
    KVM,
    board,
    device,
    gpu,
    host,
    proxy,
)

PLAIN = dict(name="plain", memory_mb=1024, vcpus=2, local_gb=10)
LXC = dict(PLAIN, extra_specs={"hypervisor": "s== LXC"})


def test_words_that_programs_compare():
    """Lost: hosts of one kind, as host_info calls what they run by these words, and folders of tasks are named so."""
    assert {word: kind.nodes for word, kind in BY_HYPERVISOR.items()} == {"LXC": "GPU hosts", "KVM": "KVM hosts"}
    assert INSTANCES == {"boards": "board", "GPU hosts": "container", "KVM hosts": "guest"}


def test_a_host_that_never_serves_has_no_room():
    """Lost: a request that waits for ever for a host that cannot serve it, for it counts as room."""
    verdict = nodes.host_verdict(dict(LXC, memory_mb=1 << 20), host("h"), "h")
    assert verdict.never
    assert (verdict.room, verdict.most, verdict.busy, verdict.brief) == (0, 0, (), "")


def test_what_a_host_lacks_just_now_is_said_in_peoples_words():
    """Lost: of what there is too little, or that it is only in use."""
    verdict = nodes.host_verdict(dict(LXC, memory_mb=4), host("h", free=3), "h")
    assert verdict.busy == ("4 MB of memory wanted, 3 of 65536 left", "10 GB of disk wanted, 3 of 65536 left")
    assert (verdict.brief, verdict.room, verdict.most) == ("in use", 0, nodes.PLENTY)
    verdict = nodes.host_verdict(dict(LXC, vcpus=9, memory_mb=8), host("h", free=8), "h")
    assert verdict.busy[0] == "9 vcpus wanted, 8 of 65536 left"
    verdict = nodes.host_verdict(dict(LXC, memory_mb=30000), host("h", free=30000), "h")
    assert (verdict.room, verdict.most) == (1, 2)
    # just enough is enough
    verdict = nodes.host_verdict(dict(LXC, vcpus=8, memory_mb=8, local_gb=8), host("h", free=8), "h")
    assert (verdict.busy, verdict.brief, verdict.room) == ((), "", 1)


@pytest.mark.parametrize(
    ("text", "aliases"),
    [
        ("", []),
        ("a1", [("a1", 1)]),
        ("a1:0", [("a1", 1)]),
        ("a1:2, b2:3,", [("a1", 2), ("b2", 3)]),
    ],
)
def test_aliases_and_how_many(text, aliases):
    """Lost: a guest's cards: an alias without a number is one of them."""
    assert compute_hosts.aliases_of({"extra_specs": {"pci_passthrough:alias": text}}) == aliases
    assert compute_hosts.aliases_of({}) == []


def test_a_card_of_several_aliases_serves_each():
    """Lost: cards that the operator put into two lists."""
    one = host("h", hypervisors=("KVM",), devices=[device(1, alias="b2, a1"), device(2, alias="a1")])
    verdict = nodes.host_verdict(KVM, one, "h")
    assert (verdict.never, verdict.room) == ((), 2)


def test_what_may_be_made_free_counts_for_who_waits():
    """Lost: a wait that cannot end, for GPUs that no driver serves; or one that could, for cards that another uses."""
    cards = [device(1, unsupported="is on nouveau"), device(2)]
    verdict = nodes.host_verdict(KVM, host("h", hypervisors=("KVM",), devices=cards), "h")
    assert (verdict.room, verdict.most) == (1, 2)
    one = dict(LXC, extra_specs={"hypervisor": "s== LXC", "gpus": "= 1"})
    gpus = [gpu(1), gpu(2) | dict(unsupported="no driver"), gpu(3, "ml"), gpu(4)]
    verdict = nodes.host_verdict(one, host("h", *gpus), "h")
    assert (verdict.room, verdict.most) == (2, 3)
    two = dict(LXC, extra_specs={"hypervisor": "s== LXC", "gpus": "= 2", "gpu_arch": "s== fermi"})
    others = [gpu(number, arch=arch) for number, arch in ((5, "kepler"), (6, "kepler"), (7, "kepler"), (8, None))]
    verdict = nodes.host_verdict(two, host("h", *gpus, gpu(9), *others), "h")
    assert (verdict.room, verdict.most) == (1, 2), "of fermi alone, and two for each"


@pytest.mark.parametrize("answer", [{"state": "running"}, {"cpu_info": {}}, {}])
def test_what_is_no_answer_is_said(answer):
    """Lost: that a play gave something else: nothing would fit, without a reason."""
    with pytest.raises(BadInput, match="is no result of board_info or host_info"):
        nodes.verdicts(PLAIN, [answer])


def test_a_board_need_have_no_disk_unless_that_is_asked_for():
    """Lost: all boards that boot by the network, to callers that say nothing of disks."""
    bare = dict(name="any", memory_mb=1024)
    (verdict,) = nodes.verdicts(bare, [proxy("p1", board(0))])
    assert (verdict.never, verdict.room, verdict.owner) == ((), 1, "p1")
    (verdict,) = nodes.verdicts(bare, [proxy("p1", board(0))], disk=True)
    assert verdict.never == (fit.NO_DISK,)


def test_a_host_by_itself_is_its_own_owner():
    """Lost: facts of a host that are given without the loop that asked for them: claims would go to nobody."""
    (verdict,) = nodes.verdicts(LXC, [dict(host("h"), item=None)])
    assert (verdict.owner, verdict.name, verdict.kind) == ("h", "h", "GPU hosts")
    (verdict,) = nodes.verdicts(LXC, [dict(host("h"), item="inventory name")])
    assert (verdict.owner, verdict.name) == ("inventory name", "h")
    unnamed = {key: value for key, value in host("h").items() if key != "name"}
    assert nodes.verdicts(LXC, [unnamed])[0].name == "h"


@pytest.mark.parametrize(
    ("flavor_gb", "board_gb", "usual_gb", "room", "most"),
    [
        (None, 100, 8, 0, 0),
        (None, None, 8, 1, 1),
        (None, None, 100, 0, 0),
        (9, 100, 100, 1, 1),
        (None, None, None, 1, 1),
    ],
)
def test_how_large_a_root_would_be(flavor_gb, board_gb, usual_gb, room, most):
    """Lost: a board whose proxy has room, or a claim on one that has none: a root is what its board or proxy says."""
    roots = dict(promised=0, there=50 << 30, taken=0, overcommit=1.0)
    if usual_gb is not None:
        roots["root_gb"] = usual_gb
    answer = dict(proxy("p1", board(0) | dict(local_gb=board_gb)), roots=roots, images={})
    flavor = dict(name="any", **({"local_gb": flavor_gb} if flavor_gb else {}))
    (verdict,) = nodes.verdicts(flavor, [answer])
    assert (verdict.room, verdict.most) == (room, most)
