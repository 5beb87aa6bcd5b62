# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with a request, all of it at once and before anything is claimed. If these fail, an hour's boot ends
with what could have been said at its begin.

tests/unit/plays/test_names.py has most texts, as playbooks say them.

Tests plugin_utils/request_mistakes.py, plugin_utils/filters/mistakes.py.
"""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.plugin_utils.filters import mistakes as of_filter
from ansible_collections.hetero.compute.plugins.plugin_utils.filters import requested
from ansible_collections.hetero.compute.plugins.plugin_utils.request_mistakes import CHECKS, mistakes
from ansible_collections.hetero.compute.plugins.plugin_utils.request_values import Requested
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY

GROUPS = dict(all=["p1", "p2", "lab-2"], proxies=["p1", "p2"], web=["lab-2"])


def asked(**variables):
    return Requested(dict(dict(groups=GROUPS, hetero_ssh_public_key=KEY), **variables).get)


def problem(check, **variables):
    return CHECKS[check](asked(**variables))


def all_said():
    """Every text that these checks say of a request of which all is wrong, and of one that says nothing."""
    wrong = dict.fromkeys(("instance", "flavor", "image", "board", "key", "user_data", "hetero_priority"), "a/b")
    nobody = dict(groups=dict(all=[]), instance=7)
    requests = (wrong, dict(wrong, instance="p1", flavor="tp64", board="3", node="4"), nobody)
    return [text for request in requests for text in mistakes(asked(**request), [], list(CHECKS))]


@pytest.mark.parametrize("name", ["a", "lab-1", "0", "x" * 63])
def test_a_name_that_can_be_a_host_name(name):
    assert problem("instance", instance=name) == ""


@pytest.mark.parametrize("name", ["Lab", "-a", "a-", "a_b", "x" * 64, "a\n", "ä", 7, True, [1]])
def test_a_name_that_can_be_none(name):
    """Lost: a host name that no node takes; or instance 007, which is 7 to Ansible."""
    assert "instance is " in problem("instance", instance=name)


def test_who_names_none_is_told_how():
    assert problem("instance") == "Name the instance: -e instance=NAME"
    assert problem("instance", instance="", _or_else=", or a board: -e node=board3").endswith("-e node=board3")


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (dict(instance="p1"), "p1 is in"),
        (dict(instance="all"), "all is in"),
        (dict(instance="lab", count=3), "lab-2 is in"),
        (dict(instance="web"), "web is in"),
        (dict(instance="lab", count=3, numbers="1,3"), ""),
        (dict(instance="Wrong", count=3), ""),  # which is said already
    ],
)
def test_names_of_the_inventory_are_no_names_for_instances(said, text):
    """Lost: a play for a proxy node, which goes to a tenant's board."""
    assert problem("name", **said).startswith(text)
    assert bool(problem("name", **said)) is bool(text)


def test_of_many_taken_names_some_are_named():
    groups = dict(all=[f"lab-{number}" for number in range(1, 9)])
    said = problem("name", instance="lab", count=8, groups=groups)
    assert said.startswith("lab-1, lab-2, lab-3, lab-4, lab-5 and more are in the inventory")


@pytest.mark.parametrize("flavor", ["", None, [1], {"a": 1}])
def test_who_names_no_flavor_is_told_which_there_are(flavor):
    assert problem("flavor", flavor=flavor).startswith("Name a flavor: -e flavor=NAME, one of cg1.xlarge, ")


def test_a_mistake_in_the_sites_flavors_is_one_of_those_of_the_request(tmp_path):
    """Lost: all else that is wrong with a request, to an error of a template, which Ansible says three times."""
    path = tmp_path / "flavors.yml"
    path.write_text("mine: {vcpus: x}\nother: {memory: 1}\n")
    first = f"{path}:1:8: flavor mine: vcpus is 'x': give a whole number of 0 or more"
    wrong = dict(hetero_instance_types_file=str(path), instance="A", flavor="mine")
    name, both = mistakes(asked(**wrong), [], ["instance", "flavor"])
    second = f"{path}:2:9: flavor other: unknown key 'memory': write memory_mb"
    assert (name.partition(":")[0], both) == ("instance is A", f"{first}; {second}")
    assert asked(**wrong).hypervisor == "", "by which the playbook looks at other words"
    assert problem("flavors", **wrong) == asked(**wrong).flavor_mistakes == both
    with pytest.raises(AnsibleFilterError, match="flavor mine: vcpus is 'x'"):
        assert asked(**wrong).flavors
    assert (problem("flavors"), "tp64.8x8" in asked().flavors) == ("", True)


@pytest.mark.parametrize("variable", ["hetero_extra_instance_types", "hetero_instance_types"])
@pytest.mark.parametrize("table", [[dict(name="mine", vcpus=1)], "mine"])
def test_another_thing_in_place_of_the_sites_flavors_is_one_of_the_mistakes(variable, table):
    """Lost: who has what, of which status says nothing beside an error of a template."""
    text = f"{variable} is no mapping of flavors by name: write NAME: {{memory_mb: …, vcpus: …, local_gb: …}}"
    wrong = {variable: table, "flavor": "mine"}
    assert problem("flavor", **wrong) == problem("flavors", **wrong) == asked(**wrong).flavor_mistakes == text
    assert asked(**wrong).hypervisor == ""
    with pytest.raises(AnsibleFilterError, match="is no mapping of flavors by name"):
        assert asked(**wrong).flavors


def test_flavors_are_named_whatever_their_names_are():
    """Lost: which flavors there are, to an error of Python's: YAML makes a number of the name 302."""
    assert problem("flavor", hetero_instance_types={302: {}, "small": {}}).endswith("one of 302, small")


def test_a_slip_in_a_flavor_is_named():
    assert problem("flavor", flavor="tp64.8x8") == ""
    assert problem("flavor", flavor="tp64.8x").startswith("tp64.8x is no flavor: is tp64.8x8 meant? Give one of cg1")
    assert problem("flavor", flavor="huge").startswith("huge is no flavor: give one of cg1.xlarge")


@pytest.mark.parametrize(("board", "node", "same"), [("3", "board3", True), (3, "3", True), ("3", "4", False)])
def test_two_words_for_one_board(board, node, same):
    """Lost: the power or the disk of the other board."""
    text = f"board is {board} and node is {node}, which are two boards: give one of them"
    for check in ("two_boards", "board"):
        assert problem(check, board=board, node=node) == ("" if same else text)


def test_one_board_of_one_proxy_node():
    assert problem("one_board", node="board3", proxy="p1") == problem("one_board", node=3, without="p2") == ""
    several = "Name the board (-e node=board3) and, of several proxy nodes (p1, p2), its own (-e proxy=NAME)"
    assert problem("one_board") == problem("one_board", node="board3") == several
    assert problem("one_board", node="bord3", _or_instance=", or X") == f"node is bord3. {several}, or X"
    assert problem("one_board", board="3,board4") == "One board at a time: -e node=board3, then -e node=board4"
    assert problem("one_board", node="3", groups=dict(all=[])).startswith("The inventory has no proxy node: group")


def test_several_boards_of_one_proxy_node_or_all_of_each():
    assert problem("boards") == problem("boards", node="board3,4", proxy="p1") == ""
    several = "Name boards as board3,board4 and, of several proxy nodes (p1, p2), their own (-e proxy=NAME)"
    assert problem("boards", node="board3,4") == several
    assert problem("boards", board="3,bord4", proxy="p1") == f"board is 3,bord4. {several}"
    assert problem("boards", groups=dict(all=[])).startswith("The inventory has no proxy node: group proxies is empty.")


def test_nobody_to_ask_is_said():
    """Lost: a success, for a request that no node has heard."""
    assert problem("owner") == ""
    assert problem("owner", without="p1,p2").startswith("Nobody is left to ask: p1, p2 left out by without")
    assert "groups proxies, hypervisor_lxc and hypervisor_kvm are empty" in problem("owner", groups=dict(all=[]))


def test_a_machine_of_two_kinds_needs_two_names():
    groups = dict(all=["p1"], proxies=["p1"], hypervisor_lxc=["p1"])
    assert problem("kinds", groups=groups).endswith("needs two names in the inventory: p1")
    assert problem("kinds") == ""


@pytest.mark.parametrize(("priority", "right"), [(0, True), ("-1000", True), (1000, True), (1001, False), ("x", False)])
def test_a_sites_priority(priority, right):
    assert problem("priority", hetero_priority=priority) == (
        "" if right else f"hetero_priority is {priority}: give a whole number from -1000 to 1000"
    )


def test_a_key_and_data_for_cloud_init_are_looked_at(tmp_path):
    assert problem("key", key=KEY) == problem("public_key", key=KEY) == problem("user_data") == ""
    assert "no OpenSSH public key" in problem("key", key="me")
    assert "cannot be read" in problem("user_data", user_data=str(tmp_path / "none"))


def test_a_new_instance_has_a_key(tmp_path, monkeypatch):
    """Lost: an instance that nobody can log in to; or a private key, to each node and its events."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert "ssh-keygen" in problem("public_key", hetero_ssh_public_key=None)
    private = "-----BEGIN OPENSSH PRIVATE KEY-----"
    assert problem("public_key", hetero_ssh_public_key=private).startswith("That is a private key")
    assert problem("public_key", hetero_ssh_public_key=private, key=KEY) == ""
    # one that was given is told of as such, and once
    (said,) = mistakes(asked(key=private), [], ["key", "public_key"])
    assert said.startswith("That is a private key: give the .pub file beside it (key_file=FILE, key=TEXT or ")


def test_a_way_in_that_cannot_be_written_is_said_before(tmp_path):
    (tmp_path / "lab-1").write_text("mine\n")
    said = problem("ssh_folder", hetero_ssh_folder=str(tmp_path), instance="lab", count=2)
    assert said.startswith(f"{tmp_path}/lab-1 is no file of an instance")
    assert problem("ssh_folder", hetero_ssh_folder=str(tmp_path), instance="other") == problem("ssh_folder") == ""


@pytest.mark.parametrize(("check", "option"), [("instance", "instance"), ("flavor", "flavor"), ("board", "board")])
@pytest.mark.parametrize("value", ["x" * 10_000, list(range(10_000))])
def test_what_an_error_repeats_of_a_request_is_short(check, option, value):
    """Lost: the screen, to a file that was given in place of a name."""
    assert len(problem(check, **{option: value})) < 400


def test_all_that_is_wrong_is_said_in_the_order_that_was_asked_for():
    request = asked(count=0, force="x", instance="A", image="a/b")
    found = [text.split()[0] for text in mistakes(request, ["force", "count"], ["image", "instance"])]
    assert found == ["force", "count", "image", "instance"]


class Context:
    """The variables of a play, as Jinja has them."""

    def __init__(self, **variables):
        self.variables = variables

    def resolve_or_missing(self, name):
        return self.variables.get(name, requested.missing)


def test_a_check_that_there_is_not_is_an_error():
    """Lost: a playbook that looks at nothing, for a slip in its own text."""
    context = Context(groups=GROUPS, count=0)
    assert of_filter.mistakes(context, [], ["count"])[0].startswith("count is 0")
    assert requested.requested(context, "count") == 0
    for checks, words in ((["instanse"], []), ([], ["cuont"]), ("instance", [])):
        with pytest.raises(AnsibleFilterError, match="needs a list of checks"):
            of_filter.mistakes(context, checks, words)
    with pytest.raises(AnsibleFilterError, match="knows no cuont: give one of"):
        requested.requested(context, "cuont")
