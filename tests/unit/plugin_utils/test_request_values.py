# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a request says, with its defaults. If these fail, a form's empty field is taken for a word, and two users for
one.

Tests plugin_utils/request_values.py, plugin_utils/filters/requested.py.
"""

from __future__ import annotations

import os
import pwd
import subprocess
import sys

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.plugin_utils import request_values
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.requested import VALUES
from ansible_collections.hetero.compute.plugins.plugin_utils.request_values import Requested, number
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY

FLAVORS = {
    "small": dict(name="small", flavorid=301, vcpus=1, memory_mb=1, root_gb=0, ephemeral_gb=0, swap=0),
    "302": dict(name="302", flavorid=303, vcpus=2, memory_mb=1, root_gb=0, ephemeral_gb=0, swap=0),
    "303": dict(name="303", flavorid=304, vcpus=3, memory_mb=1, root_gb=0, ephemeral_gb=0, swap=0),
}
GROUPS = dict(all=["p1", "p2"], proxies=["p1", "p2"])


def asked(**variables):
    return Requested(dict(dict(groups=GROUPS, hetero_instance_types=FLAVORS), **variables).get)


def test_what_a_form_left_empty_says_nothing():
    """Lost: each job template whose survey has a field that nobody filled in."""
    fields = ("boot_source", "count", "devices", "image", "numbers", "partial", "placement", "wait", "board", "wipe")
    empty = asked(instance="a", flavor="small", owner="me", **dict.fromkeys(fields, ""))
    assert empty.request == asked(instance="a", flavor="small", owner="me").request
    assert (empty.count, empty.numbers, empty.partial, empty.wait_minutes, empty.wipe) == (1, [], False, 0.0, "")
    assert (empty.devices, empty.image, empty.boot_source, empty.placement) == ([], "", "nfs", "spread")


@pytest.mark.parametrize(
    ("said", "count"),
    [
        *((said, 0) for said in ("0", "-1", "2.5", "three", True, "3\n", "9" * 5000)),
        *((said, 3) for said in (3, "3")),
        (None, 1),
    ],
)
def test_how_many(said, count):
    """Lost: 25 boards for `count=2.5`; or what is wrong, to Python's own error of a number that it does not read."""
    assert asked(count=said).count == count


@pytest.mark.parametrize(
    ("said", "numbers"),
    [
        ("2,5", [2, 5]),
        (" 5 , 2,2", [2, 5]),
        ([5, 2], [2, 5]),  # -e '{"numbers": [5, 2]}'
        (7, [7]),
        ("10000", [10_000]),
        ("10001", []),
        ("0", []),
        ("2;5", []),
        ("2,", []),
        ({"2": 5}, []),
    ],
)
def test_which_of_several(said, numbers):
    """Lost: `numbers=2;5` ends all of NAME-1 to NAME-9 but is never told."""
    assert asked(numbers=said).numbers == numbers


def test_names_are_of_those_that_are_meant():
    """Lost: a name of the inventory's that a request of several takes."""
    assert asked(instance="lab").names == ["lab"]
    assert asked(instance="lab", count=3).names == ["lab-1", "lab-2", "lab-3"]
    assert asked(instance="lab", count=9, numbers="2,7").names == ["lab-2", "lab-7"]
    assert len(asked(instance="lab", count=10**12).names) == request_values.MOST


@pytest.mark.parametrize(("said", "board"), [("3", "3"), ("board3", "3"), (3, "3"), (0, "0"), ("boards", "boards")])
def test_a_board_is_meant_by_its_id_or_as_tables_call_it(said, board):
    """Lost: `board=board3`, as status shows it; or board 0, which is empty to a template."""
    assert asked(board=said).board == board


def test_either_word_names_a_board():
    """Lost: `node=board3`, where `board=3` is taken; or a host that is taken for a board."""
    assert (asked(node="board3").board, asked(node="3").board, asked(node="gpu1").board) == ("3", "3", "")
    assert asked(node="board3, 4,board5").boards == ["3", "4", "5"]
    assert (asked(board=7).node, asked(node="gpu1", board=7).node, asked().node) == (7, "gpu1", "")
    # for operators the one that is looked at: both are the same to them, as blanks do not count there
    assert asked(node="board3", board="3 ").one_board == "3"


@pytest.mark.parametrize(
    ("said", "name"),
    [("small", "small"), (302, "302"), ("302", "302"), ("301", "small"), (301, "small"), ("303", "303"), (304, "303")],
)
def test_a_flavor_is_meant_by_its_name_or_else_by_its_id(said, name):
    """Lost: who asks for flavor 303 by its name gets the one whose id is 303."""
    assert asked(flavor=said).flavor_name == asked(flavor=said).flavor["name"] == name


@pytest.mark.parametrize("said", ["", None, "smal", [1], {"a": 1}, "999"])
def test_what_is_no_flavor_is_none(said):
    """Lost: any node, to a request whose flavor was left empty."""
    assert (asked(flavor=said).flavor_name, asked(flavor=said).flavor, asked(flavor=said).hypervisor) == (None, {}, "")
    with pytest.raises(AnsibleFilterError, match="there is no flavor"):
        assert asked(flavor=said).request


def test_an_image_is_that_of_its_kind():
    """Lost: a container with the root of a board."""
    site = dict(hetero_default_image="debian", hetero_container_image="alpine")
    assert asked(**site).images == dict(board="debian", container="alpine", guest="")
    assert asked(image="mine", **site).images == dict(board="mine", container="mine", guest="mine")


def test_for_whom_it_is_asked(monkeypatch):
    """Lost: instances of one user, which another may end."""
    monkeypatch.setenv("USER", "ann")
    assert asked().owner == "ann"
    assert asked(owner="bob").owner == "bob"
    assert asked(awx_user_name="cyd", awx_user_id=4).owner == "cyd"
    assert asked(tower_user_name="cyd", tower_user_id=4).owner == "cyd"
    assert asked(awx_user_name="cyd", tower_user_name="dan", awx_user_id=4).owner == "cyd"
    # made of 007, of [1] and of True by some release of Ansible; and who is called as such a user would be
    for name in (7, [1], "[1]", True, "True", "awx-user-3", "{a}"):
        assert asked(awx_user_name=name, awx_user_id=4).owner == "awx-user-4"
    # made of null, which every user of that name has in place of a name
    nobody = dict(awx_user_name=None, tower_user_name=None)
    assert asked(awx_user_id=4, tower_user_id=4, **nobody).owner == "awx-user-4"
    assert asked(tower_user_name=None, tower_user_id=5).owner == "awx-user-5"
    with pytest.raises(AnsibleFilterError, match="awx_user_name is None, and awx_user_id is missing"):
        assert asked(**nobody).owner
    with pytest.raises(AnsibleFilterError, match="awx_user_id is missing"):
        assert asked(awx_user_name=7).owner


def test_who_has_no_name_is_told_to_give_one(monkeypatch):
    """Lost: the owner of what a service asks for, whose environment has no USER and whose number no name."""
    monkeypatch.delenv("USER", raising=False)
    assert asked().owner == pwd.getpwuid(os.geteuid()).pw_name
    monkeypatch.setattr(request_values.os, "geteuid", lambda: 4_000_000_000)
    with pytest.raises(AnsibleFilterError, match="user 4000000000 of this machine has no name: give owner=NAME"):
        assert asked().owner


@pytest.mark.parametrize("variable", ["awx_job_id", "tower_job_id"])
@pytest.mark.parametrize("number", [1, 0, None, False, ""])
def test_a_job_knows_itself_by_a_variable(variable, number):
    """Lost: a file of the controller's, which a form names, whatever else the form says."""
    assert asked(**{variable: number}).in_a_job
    assert not asked().in_a_job


@pytest.mark.parametrize("variable", request_values.JOB_VARIABLES)
def test_a_job_knows_itself_by_its_environment(monkeypatch, variable, tmp_path):
    (tmp_path / "key.pub").write_text(KEY)
    given = dict(key_file=str(tmp_path / "key.pub"))
    assert asked(**given).public_key == KEY
    monkeypatch.setenv(variable, "4")
    assert asked().in_a_job
    with pytest.raises(AnsibleFilterError, match="key_file is for the command line"):
        assert asked(**given).public_key


def test_of_several_nodes_localhost_decides():
    """Lost: a request that acts on what another node said of itself."""
    plan = dict(visits=[dict(item="p2")], parts=[])
    assert asked(hostvars=dict(localhost=dict(_plan=plan), p1=dict(_plan={}))).chosen == plan
    # a syntax check has asked nobody
    assert asked().chosen == dict(visits=[], refused=[], looked=False)
    with pytest.raises(AnsibleFilterError, match="decided nothing"):
        assert asked(hostvars=dict(localhost={})).chosen


def test_a_single_node_is_chosen_without_a_look_before():
    """Lost: a second round trip to the node of each request of a small site."""
    alone = asked(groups=dict(all=["p1"], proxies=["p1"]))
    assert alone.chosen == dict(visits=[dict(item="p1", kind="board", numbers=[])], refused=[], looked=False)


def test_only_what_is_asked_for_is_read():
    """Lost: each play of a site whose inventory has a variable `devices`, `count` or `key` of its own."""
    read = []

    def look(name):
        read.append(name)
        return {"groups": GROUPS, "count": 2}.get(name)

    assert Requested(look).count == 2
    assert read == ["count"]
    read.clear()
    assert Requested(look).site["nodes"] == ["p1", "p2"]
    assert read == ["groups", "without"]


def test_values_that_need_no_flavor_import_none():
    """Lost: some tens of milliseconds of each play: Ansible compiles what is imported anew in each process."""
    words = (
        "import sys; from ansible_collections.hetero.compute.plugins.plugin_utils import request_values; "
        "print(*(name.rpartition('.')[2] for name in sys.modules if '.hetero.compute.plugins.' in name))"
    )
    done = subprocess.run([sys.executable, "-c", words], check=True, capture_output=True, text=True)
    assert not {"flavors", "flavor_check", "login_key", "user_data", "cloud_init"} & set(done.stdout.split())


@pytest.mark.parametrize(("said", "value"), [("1.5", 1.5), (2, 2.0), *((no, -1.0) for no in ("x", None, [], 10**400))])
def test_what_is_no_number_is_below_all(said, value):
    assert number(said) == value


def test_each_value_can_be_asked_for():
    """Lost: a variable of the playbooks, by an error in a play."""
    assert {"request", "count", "names", "flavors", "owner", "chosen", "public_key"} <= set(VALUES)
    assert {"look", "said", "filled", "true"} & set(VALUES) == set()
