# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers of nodes that are none. If these fail, one node of which a stranger is root, or whose disk is bad, decides
what all others' plays, tables and pages show, or types into the shell of who reads them.
"""

from __future__ import annotations

import json
import time

import pytest

from ansible_collections.hetero.compute.plugins.plugin_utils.answers import checked
from ansible_collections.hetero.compute.tests.unit.plugin_utils.site import CPU, lab

ROOTS = dict(promised=1, there=2, taken=0, overcommit=1.5)
CLAIM = dict(instance="jackie", request="jackie", owner="jo", name="board0", created=1.5, ip="10.0.2.1", board=0)
EVENT = dict(time=1.0, phase="power", text="on", seconds=None)
BOARD = dict(
    id=0,
    name="board0",
    ip="10.0.2.1",
    arch="TILEPro64",
    vcpus=10,
    memory_mb=1,
    local_gb=0,
    cpu_info={},
    state="running",
)
NODE = dict(changed=False, claims=[CLAIM], boards=[dict(BOARD, events=[EVENT])], roots=ROOTS)
AMOUNTS = {name: dict(total=2, free=1) for name in ("memory_mb", "vcpus", "local_gb")}
HOST = dict(
    changed=False,
    claims=[dict(CLAIM, name="gpu1.example.org", ip=None, kind="lxc", console="/x/jackie/console.log")],
    instances=[],
    gpus=[],
    hypervisor="LXC",
    hypervisors=["LXC"],
    cpu_arch="x86_64",
    unsupported=None,
    capacity=AMOUNTS,
)


@pytest.mark.parametrize(("module", "answer"), [("board_info", NODE), ("host_info", HOST), ("board_image", {"x": 1})])
def test_what_nodes_say_is_passed_on_as_it_is(module, answer):
    """Lost: all nodes, to a look at them that knows nodes badly."""
    assert checked(answer, module) is answer


def test_all_that_a_proxy_can_say_is_an_answer(tmp_path):
    """Lost: a whole node with all its boards, for a row of the boards file that says little of a board."""
    site = lab(tmp_path)
    assert not checked(site.result(), "board_info").get("failed")
    path = tmp_path / "tilera_boards"
    path.write_text(path.read_text().replace(CPU, "{}"))
    answer = site.result()
    assert {board["arch"] for board in answer["boards"]} == {None}
    path.write_text("".join(path.read_text().splitlines(keepends=True)[2:]))  # boards that instances have are gone
    gone = site.result()
    for said in (answer, gone):
        assert checked(json.loads(json.dumps(said)), "board_info") == json.loads(json.dumps(said))
    assert None in {claim["ip"] for claim in gone["claims"]}


@pytest.mark.parametrize(
    ("module", "answer", "key"),
    [
        ("board_info", dict(NODE, claims={}), "claims"),
        ("board_info", dict(NODE, claims=[dict(CLAIM, created=float("nan"))]), "claims"),
        ("board_info", dict(NODE, claims=[dict(CLAIM, created=True)]), "claims"),
        ("board_info", dict(NODE, claims=[dict(CLAIM, owner=None)]), "claims"),
        ("board_info", dict(NODE, claims=[dict(CLAIM, instance="../x")]), "claims"),
        ("board_info", dict(NODE, claims=[dict(CLAIM, ip="10.0.2.1;reboot")]), "claims"),
        ("board_info", dict(NODE, boards=[dict(BOARD, since_seconds=float("inf"))]), "boards"),
        ("board_info", dict(NODE, boards=[dict(BOARD, cpu_info=[])]), "boards"),
        ("board_info", dict(NODE, boards=[dict(BOARD, events=[dict(EVENT, time="now")])]), "boards"),
        ("board_info", dict(NODE, roots=None), "roots"),
        ("board_info", dict(NODE, unclaimed=["x"]), "unclaimed"),
        ("host_info", dict(HOST, capacity={}), "capacity"),
        ("host_info", dict(HOST, instances=[dict(state="running")]), "instances"),
        ("board_info", dict(NODE, claims=[dict(CLAIM, created=0)]), "claims"),
        ("board_info", dict(NODE, claims=[dict(CLAIM, created=-1.5)]), "claims"),
        ("board_info", dict(NODE, claims=[dict(CLAIM, created=time.time() + 2 * 86400)]), "claims"),
        ("board_info", dict(NODE, claims=[dict(CLAIM, ip="10.0.2")]), "claims"),
        ("host_info", dict(HOST, claims=[dict(HOST["claims"][0], created=9e99)]), "claims"),
        ("instance", dict(changed=True), "instances"),
        ("instance", dict(changed=True, instances=None), "instances"),
        ("instance", dict(changed=True, instances=[dict(instance="x", created=0)]), "instances"),
        ("instance", dict(changed=True, instances=[dict(instance="x", name="`reboot`")]), "instances"),
        ("instance", dict(changed=True, instances=[dict(instance="x", ip="-oProxyCommand=x")]), "instances"),
        ("instance", dict(changed=True, instances=[dict(instance="x", ip="fe80::1%h$(id)")]), "instances"),
        ("instance", dict(changed=True, instances=[dict(instance="x", known_hosts="10.0.2.1 ${HOME} A")]), "instances"),
        ("instance", dict(changed=True, instances=[dict(instance="x", known_hosts="-n ssh-rsa A")]), "instances"),
        ("board_info", dict(NODE, claims=[dict(CLAIM, ip="fe80::1%;reboot")]), "claims"),
        ("board_info", dict(NODE, boards=[dict(BOARD, ip="fe80::1%eth0")]), "boards"),
    ],
)
def test_what_cannot_be_is_a_failure_that_names_it(module, answer, key):
    """Lost: the other nodes' answers, to a traceback; or a line that a shell obeys."""
    result = checked(answer, module)
    assert result["failed"] is True
    assert f"what the node answers to {module} cannot be ({key} is " in result["msg"]
    assert set(result) == {"failed", "changed", "msg"}


@pytest.mark.parametrize("ip", ["10.0.2.1", "2001:db8::1", "fe80::1"])
def test_the_way_in_is_passed_on_as_it_is(ip):
    """Lost: each new instance, to a look at its address or host keys that knows those badly."""
    keys = f"{ip} ssh-ed25519 AAAA+/b=\n[{ip}]:2222 ecdsa-sha2-nistp256 AAAA\n{ip} sk-ssh-ed25519@openssh.com AA=="
    answer = dict(changed=True, instances=[dict(instance="jackie", ip=ip, known_hosts=keys)])
    assert checked(answer, "instance") is answer


def test_a_nodes_clock_may_be_some_hours_ahead():
    """Lost: a node's instances, to a clock of another time zone."""
    answer = dict(NODE, claims=[dict(CLAIM, created=time.time() + 80000)])
    assert checked(answer, "board_info") is answer


def test_who_fails_says_nothing_of_what_there_is():
    """Lost: an instance elsewhere, to claims of a node that failed to read them."""
    result = checked(dict(NODE, failed=True, msg=["no"]), "board_info")
    assert (result["failed"], result["msg"], "claims" in result, "boards" in result) == (True, "['no']", False, False)
    assert checked(dict(failed=True, msg="no", instances=[1], failure={}), "instance")["instances"] == [1]


@pytest.mark.parametrize(
    "failure", [5, [], "x", dict(rejected=5), dict(rejected=dict(board0=5)), dict(unfit=[]), dict(room="3")]
)
def test_a_reason_that_cannot_be_is_left_out(failure):
    """Lost: why a request was refused, to an error about a dict; the scheduler reads the reasons of who refused."""
    given = dict(failed=True, msg="wants 2 boards", failure=failure)
    assert checked(given, "instance") == dict(failed=True, msg="wants 2 boards")
    sound = dict(rejected=dict(board0=["in use"], name="is taken"), unfit=dict(board0=True), what="x")
    assert checked(dict(given, failure=sound), "instance")["failure"] == sound


def test_a_module_that_broke_off_is_named_with_its_last_words():
    """Lost: the reason. Ansible says of it that no JSON was found."""
    said = "Traceback (most recent call last):\n  File ...\nOSError: [Errno 5] Input/output error\x1b[2J\n"
    given = dict(failed=True, msg="Module result deserialization failed: No start of json char found", rc=1)
    told = checked(dict(given, module_stdout="", module_stderr=said), "board_info")["msg"]
    assert "board_info cannot be (it broke off: OSError: [Errno 5] Input/output error\\x1b[2J): see whether" in told
    closed = "Shared connection to 192.0.2.1 closed.\r\n"
    assert checked(dict(given, module_stdout=said, module_stderr=closed), "board_info")["msg"] == told
    assert checked(dict(given, module_stderr="\n"), "board_info")["msg"] == given["msg"]
