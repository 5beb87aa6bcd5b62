# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tasks of a play are given of a request. If these fail, a node claims another thing than was asked for."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.plugin_utils.filters.requested import WORDS
from ansible_collections.hetero.compute.plugins.plugin_utils.request_options import RequestOptions
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY
from ansible_collections.hetero.compute.tests.unit.plugin_utils.test_request_values import FLAVORS, GROUPS

VISITS = [dict(item="p2", kind="board", numbers=[]), dict(item="p1", kind="board", numbers=[2, 3])]
PLAY = dict(inventory_hostname="p1", groups=GROUPS, hetero_instance_types=FLAVORS, hostvars={}, _visits=VISITS)
ASKED = dict(instance="jackie", flavor="small", owner="jo", key=KEY, _claimed_before=False)
CHECK = dict(_options="instance flavor", _checks=["owner", "instance"], _words=["count"], ansible_inventory_sources=[])


def of(**variables):
    return RequestOptions(dict(dict(PLAY, **ASKED), **variables).get)


def test_a_node_is_asked_for_its_share():
    """Lost: who asks, what for, or which of several instances."""
    assert of().claim == dict(
        instance="jackie",
        kind="board",
        owner="jo",
        flavor=FLAVORS["small"],
        ssh_public_key=KEY,
        boot_source="nfs",
        devices=[],
        count=1,
        numbers=[2, 3],
        priority=0,
        partial=True,  # another one may have what this one has not
        attempts=2,
        timeout=300,
    )


@pytest.mark.parametrize(
    ("said", "options"),
    [
        (dict(board="board7"), dict(board="7")),
        (dict(image="debian"), dict(image="debian")),
        (dict(hetero_default_image="tile", hetero_container_image="box"), dict(image="tile")),
        (dict(hours=5), dict(lease_hours=5)),
        (dict(hours="none"), dict(lease_hours=0)),
        (dict(attempts="3"), dict(attempts=3)),
        (dict(wipe="zero", hetero_wipe_method="discard"), dict(wipe_method="zero")),
        (dict(wipe="", hetero_wipe_method="discard"), dict(wipe_method="discard")),
        (dict(wipe_verify="full"), dict(wipe_verify="full")),
        (dict(hetero_wipe_verify="none"), dict(wipe_verify="none")),
        (dict(hetero_boot_timeout=900), dict(timeout=900)),
        (dict(hetero_boot_timeout=0), dict(timeout=0)),  # which the node refuses
        (dict(hetero_boot_timeout=None, hetero_wipe_method=None, hetero_wipe_verify=""), {}),
        (dict(devices="86:00.0"), dict(devices="86:00.0")),
        (dict(hetero_priority=-3), dict(priority=-3)),
        (dict(_visits=VISITS[1:]), dict(partial=False)),
        (dict(_visits=VISITS[1:], partial="yes"), dict(partial=True)),
        (dict(inventory_hostname="p2", numbers="4", count=4), dict(numbers=[4], count=4)),
        (dict(hostvars=dict(localhost=dict(_plan=dict(asked=17.5)))), dict(asked=17.5)),
        (dict(hostvars=dict(localhost=dict(_plan=dict(visits=VISITS)))), {}),
        (dict(hostvars=dict(localhost={})), {}),
    ],
)
def test_what_is_said_besides_is_passed_on_and_what_is_not_is_the_nodes_own(said, options):
    """Lost: an option of a request, or what a node has its own usual way for."""
    assert of(**said).claim == dict(of().claim, **options)


def test_what_it_claimed_before_is_brought_up_by_its_time():
    """Lost: another's instance, of the same name, in place of the one that was claimed; or a lease that begins anew."""
    parts = [dict(VISITS[1], claims=[dict(created=1.5), dict(created=2.5)])]
    again = of(_claimed_before=True, _visits=[*parts, dict(VISITS[0], claims=[])], hours=5).claim
    assert again == dict(of().claim, created=[1.5, 2.5], partial=False)  # each is to bring up all of its own


def test_a_container_gets_the_image_of_containers():
    visits = [dict(item="p1", kind="container", numbers=[])]
    site = dict(hetero_default_image="tile", hetero_container_image="box")
    assert of(_visits=visits, **site).claim["image"] == "box"
    assert "image" not in of(_visits=visits, hetero_default_image="tile").claim


def test_who_is_not_visited_is_asked_for_nothing():
    """Lost: a second instance, on a node that nobody chose."""
    assert of(inventory_hostname="p3").visit == {}
    assert of(inventory_hostname="p2").visit == VISITS[0]


PARTS = [
    dict(item="p2", kind="guest", numbers=[], claims=[dict(created=9.0, owner="bo")]),
    dict(item="p1", kind="board", numbers=[1], claims=[dict(created=1.5, owner="al"), dict(created=2.5, owner="al")]),
]
FOUND = dict(hostvars=dict(localhost=dict(_plan=dict(parts=PARTS))))


@pytest.mark.parametrize(
    ("state", "said", "options"),
    [
        ("stopped", dict(how="hard", fresh=True, hours=3, only_key=KEY), {}),
        ("rebooted", {}, dict(how="auto", soft_timeout=30)),
        ("rebooted", dict(how="hard", soft_timeout=9), dict(how="hard", soft_timeout=9)),
        ("rebooted", dict(how="", soft_timeout=""), dict(how="auto", soft_timeout=30)),
        ("extended", dict(hours="none"), dict(lease_hours=0)),
        ("extended", dict(hours=1.5), dict(lease_hours=1.5)),
        # what is missing is the module's to refuse, and no lease without an end
        ("extended", dict(hours=""), {}),
        ("migrated", dict(board=""), {}),
        ("migrated", dict(board="board3"), dict(board="3")),
        ("rebuilt", dict(image="", key="", fresh=""), dict(fresh=False)),
        ("rebuilt", dict(image="tile", key=KEY, fresh="yes"), dict(image="tile", ssh_public_key=KEY, fresh="yes")),
        ("absent", dict(only_key="", wipe="zero"), dict(wipe_method="zero")),
        ("absent", dict(only_key=KEY, wipe="zero"), dict(only_key=KEY, wipe_method="zero")),
    ],
)
def test_a_verb_is_done_with_the_nodes_own_part(state, said, options):
    """Lost: what a verb was told, or another's instance of the same name: each claim is known by its time."""
    own = dict(instance="jackie", kind="board", created=[1.5, 2.5], owner="al", numbers=[1], timeout=300)
    assert of(_state=state, **said, **FOUND).deed == dict(own, **options)


@pytest.mark.parametrize(
    "state", ["present", "running", "stopped", "rebooted", "extended", "migrated", "rebuilt", "absent"]
)
def test_what_a_node_is_told_is_what_was_asked_for(state):
    """Lost: a reboot by ssh, to a node's own variable `how` in the inventory, and with it what its memory had."""
    given = dict(PLAY, **ASKED, **FOUND, _state=state)
    looked = set()

    def look(name, otherwise=None):
        looked.add(name)
        return given.get(name, otherwise)

    options = RequestOptions(look)
    assert options.claim if state in ("present", "running") else options.deed
    about_the_node = {"ansible_inventory_sources", "groups", "hostvars", "inventory_hostname", "inventory_file"}
    words = {name for name in looked - about_the_node if not name.startswith(("_", "hetero_"))}
    # who asks by AWX, and where that has its files, are no node's
    assert {name for name in words if not name.startswith(("awx_", "tower_"))} <= WORDS


def test_a_rebuild_alone_takes_the_data_for_cloud_init(tmp_path):
    """Lost: the data; or a stop, which the module refuses for them."""
    (tmp_path / "first.yml").write_text("#cloud-config\n")
    given = dict(user_data=str(tmp_path / "first.yml"), **FOUND)
    assert of(_state="rebuilt", **given).deed["user_data"] == "#cloud-config\n"
    assert "user_data" not in of(_state="stopped", **given).deed


def test_an_instance_is_found_by_its_name_and_numbers():
    """Lost: a verb's part of a request, to a variable `numbers` of an inventory; or whose it has to be."""
    wanted = dict(request=dict(instance="jackie", owner="jo", numbers=[]), nodes=["p1"], without=["p2"], force=False)
    assert of(numbers="2", without="p2").find == wanted
    said = of(numbers="2", without="p2", force="yes", _to="stop", _words=["numbers"]).find
    assert said == dict(wanted, request=dict(wanted["request"], numbers=[2]), force=True, to="stop")


def test_a_step_goes_by_the_last_plan_or_by_the_one_that_the_play_names():
    """Lost: what was decided before, so that a request is served twice."""
    decided = dict(hostvars=dict(localhost=dict(_plan=dict(placed=True))))
    step = of(**decided, wait="5", without="p2").step
    assert (step["plan"], step["nodes"], step["without"]) == (dict(placed=True), ["p1"], ["p2"])
    assert (step["wait"], step["interval"], step["request"]["instance"]) == (5.0, 10, "jackie")
    assert of(**decided, hetero_wait_interval=None).step["interval"] == 10
    step = of(**decided, _before={}, _minutes=0, wait=5, hetero_wait_interval=2).step
    assert (step["plan"], step["wait"], step["interval"]) == ({}, 0, 2)


def test_all_that_is_wrong_is_said_once_and_in_one_line(monkeypatch):
    """Lost: a mistake that nobody hears of before boards are claimed; or the others, to the first."""
    assert of(**CHECK).wrong == ""
    wrong = dict(CHECK, instance=None, count=0, without="p9,p8", ansible_limit="p1", _limited="--limit leaves out p2")
    said = of(**wrong, _problems=["", "own\x1b[2J", "own\x1b[2J"]).wrong
    told = [one.partition(":")[0] for one in said.split("; ")]
    assert told[:2] == ["--limit leaves out p2", "without"]
    assert "the inventory has no p9, p8; count is 0" in said
    assert "Name the instance" in said
    assert said.endswith(r"own\x1b[2J")
    assert said.count("own") == 1
