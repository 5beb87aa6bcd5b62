# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers of which any one value is of another type, or not there. If these fail, one node of which a stranger is root
ends the table, the page and the requests of a whole site, with an error that does not say which node it is.
"""

from __future__ import annotations

import contextlib
import copy
import json

import pytest

from ansible_collections.hetero.compute.plugins.plugin_utils import request_steps
from ansible_collections.hetero.compute.plugins.plugin_utils.answers import checked
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.snapshots import snapshots
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.status_page import status_page
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.status_table import status_table
from ansible_collections.hetero.compute.plugins.plugin_utils.request_steps import Stop
from ansible_collections.hetero.compute.tests.turns import in_turns
from ansible_collections.hetero.compute.tests.unit.plugin_utils import test_gpu_hosts
from ansible_collections.hetero.compute.tests.unit.plugin_utils.page.test_page import Page
from ansible_collections.hetero.compute.tests.unit.plugin_utils.site import lab

MISSING = object()
WRONG = [MISSING, None, True, -1, 1e300, 10**400, float("nan"), "", "x", [], [[]], [None], {}, {"x": 1}, [{}]]
#: More digits than Python reads as a number (sys.int_info.default_max_str_digits is 4300), as a text and in one.
WRONG += ["9" * 5000, {"geometry": "9" * 5000}]
#: Keys that an answer of its kind does not have, and which other code has for its own.
FOREIGN = ("look", "node", "proxy", "item", "place", "gpus", "instances", "boards", "capacity", "devices", "msg")
FLAVORS = {
    "tp64": dict(name="tp64", memory_mb=1, vcpus=1, local_gb=0, extra_specs={}),
    "cg1": dict(name="cg1", memory_mb=1, extra_specs={"hypervisor": "s== LXC", "gpus": "= 1", "gpu_arch": "s== fermi"}),
    "kg1": dict(name="kg1", memory_mb=1, extra_specs={"hypervisor": "s== KVM", "pci_passthrough:alias": "a:1"}),
}


def places(value, path=()):
    """The path of each value in an answer; of a list that of its first one. Also of keys that it does not have."""
    if path:
        yield path
    if isinstance(value, dict):
        for key in dict.fromkeys([*value, *(FOREIGN if len(path) in (0, 2) else ())]):
            yield from places(value.get(key), (*path, key))
    elif isinstance(value, list) and value:
        yield from places(value[0], (*path, 0))


def spoiled(answer, path, wrong):
    """A copy of an answer with another value at one place."""
    answer = copy.deepcopy(answer)
    at = answer
    for key in path[:-1]:
        at = at[key]
    if wrong is not MISSING:
        at[path[-1]] = wrong
    elif isinstance(at, list) or path[-1] in at:
        del at[path[-1]]
    return answer


def looked_at(answer, hosts):
    """Everything that plays, tables and pages compute from one answer."""
    told = dict(answer, item="n1")
    seen = snapshots([told], hosts=hosts)
    boards, hosts = ({}, seen) if hosts else (seen, {})
    status_table(boards, fits=FLAVORS, hosts=hosts)
    page = status_page(boards, hosts=hosts)
    # jackie is an instance of the boards, ml-7 one of the hosts
    for name, flavor in [("jackie", "tp64"), ("new", "tp64"), ("ml-7", "cg1"), ("new", "cg1"), ("new", "kg1")]:
        request = dict(instance=name, owner="alice", flavor=FLAVORS[flavor], count=1, partial=False, image="debian-12")
        request.update(placement="spread", board="", proxy="", boot_source="nfs")
        with contextlib.suppress(Stop):
            request_steps.find(request, [told], [])
        for source in ("nfs", "disk"):
            with contextlib.suppress(Stop):
                request_steps.choose(dict(request, boot_source=source), [told], [], {})
        with contextlib.suppress(Stop):
            request_steps.settle(request, [told], dict(before=[], parts=[]), [])
    return page


@pytest.fixture
def answers(tmp_path):
    """{module: an answer of it, in which each list has something}"""
    proxy = json.loads(json.dumps(lab(tmp_path).result(events=1)))
    known = dict(arch="TILEPro64", arguments=True, kernels=["default", "0.disk"], initrds=["ram"])
    proxy.update(images={"debian-12": dict(known, ram=False), "tools": dict(known, ram=True)})
    means = dict(driver="pxe", arguments=True, flash=False, cmdline=True, ram_image="tools", ram_keys=True)
    proxy["boards"] = [dict(one, boot=means, disks=["/dev/sda"]) for one in proxy["boards"]]
    host = test_gpu_hosts.answer()
    claim = dict(instance="ml-7", request="ml-7", owner="alice", name="gpu1", created=1.5, ip=None, kind="lxc")
    claim.update(console="/x/ml-7/console.log")
    devices = [dict(host["gpus"][0], arch="a"), dict(host["gpus"][1], arch="a, b")]
    host.update(claims=[claim], devices=devices, hypervisors=["LXC", "KVM"])
    left = [dict(instance="eve", name="board9", text="a root", harmless=True)]
    for answer in (proxy, host):
        answer.update(unclaimed=left)
        del answer["item"]
    return {"board_info": proxy, "host_info": host}


@pytest.mark.parametrize("module", ["board_info", "host_info"])
def test_what_is_looked_at_is_an_answer(answers, module):
    assert checked(answers[module], module) is answers[module]
    looked_at(answers[module], module == "host_info")


@pytest.mark.parametrize("wrong", in_turns(WRONG, 4), ids=lambda wrong: "-" if wrong is MISSING else f"{wrong!r:.9}")
@pytest.mark.parametrize("module", ["board_info", "host_info"])
def test_any_value_of_another_type_is_the_nodes_fault_or_does_no_harm(answers, module, wrong):
    answer, refused = answers[module], set()
    for path in places(answer):
        said = checked(spoiled(answer, path, wrong), module)
        if "claims" not in said:
            assert f"what the node answers to {module} cannot be ({path[0]} is " in said["msg"]
            refused.add(path[0])
            continue
        try:
            looked_at(said, module == "host_info")
        except Exception as error:
            raise AssertionError(f"{path} as {wrong!r:.40}: {error!r}") from error
    if not isinstance(wrong, list):
        assert refused >= {"claims", "unclaimed"} | ({"boards"} if module == "board_info" else {"gpus", "devices"})


def test_an_answer_does_not_choose_how_it_is_shown(answers):
    """Lost: which boards are out of use, to a proxy that calls its own boards free."""
    honest = Page(looked_at(answers["board_info"], False)).cells
    for board in answers["board_info"]["boards"]:
        board.update(look="free", node="proxy9", proxy="proxy9", gpus=["0000:05:00.0"], place="proxy9")
    page = Page(looked_at(answers["board_info"], False))
    assert page.cells == honest
    assert not {"proxy9", "0000:05:00.0"} & set(page.texts)
