# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which kind of instance module `instance` means. If these fail, it looks into a table that has not what is meant.

Tests instances/kinds/compute_host.py.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.this_node import THIS_NODE
from ansible_collections.hetero.compute.plugins.module_utils._hetero.instances.kinds import (
    board,
    compute_host,
    registry,
)
from ansible_collections.hetero.compute.plugins.modules import instance

LXC, KVM = ({"extra_specs": {"hypervisor": f"s== {name}"}} for name in ("LXC", "kvm"))


@pytest.fixture
def node(tmp_path, monkeypatch):
    """A function that makes this a node with these configurations."""
    for name in ("PROXY", "HOST"):
        monkeypatch.setattr(registry, name, str(tmp_path / name))

    def configured(*names):
        for name in names:
            (tmp_path / name).touch()

    return configured


def asked(**given):
    params = {option: spec.get("default") for option, spec in instance.SPEC.options.items()}
    return dict(params, instance="jackie", **given)


@pytest.mark.parametrize(
    ("given", "there", "kind", "config"),
    [
        (dict(kind="guest"), ["PROXY"], "guest", "HOST"),
        (dict(kind="board", flavor=LXC), ["HOST"], "board", "PROXY"),
        (dict(flavor=LXC), ["PROXY"], "container", "HOST"),
        (dict(flavor=KVM), ["PROXY"], "guest", "HOST"),
        (dict(flavor={"name": "tp64.8x8"}), ["PROXY", "HOST"], "board", "PROXY"),
        ({}, ["HOST"], "container", "HOST"),
        ({}, ["PROXY"], "board", "PROXY"),
        ({}, [], "board", "PROXY"),
    ],
)
def test_what_is_said_goes_before_what_the_node_is(node, given, there, kind, config):
    node(*there)
    params = asked(**given)
    found = registry.kind_of(params)
    assert (params["kind"], params["config"]) == (kind, getattr(registry, config))
    assert found is (board if kind == "board" else compute_host)


def test_a_configuration_that_is_named_is_taken(node):
    params = asked(kind="guest", config="/srv/host.json")
    registry.kind_of(params)
    assert params["config"] == "/srv/host.json"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (dict(kind="container", board=0), "board: is of a board, and jackie is a container: leave it out"),
        (
            dict(kind="container", boot_source="disk"),
            "boot_source: is of a board, and jackie is a container: leave it out",
        ),
        (dict(kind="board", devices=["0000:86:00.0"]), "devices: is of a guest, and jackie is a board: leave it out"),
    ],
)
def test_an_option_of_another_kind_is_no_wish_that_is_forgotten(node, given, words):
    with pytest.raises(BadInput) as error:
        registry.kind_of(asked(**given))
    assert str(error.value) == words


@pytest.mark.parametrize("flavor", [None, {}])
def test_a_machine_that_is_both_is_asked_for_one_of_its_kinds(node, flavor):
    """Lost: a container that stays, as `state=absent` of its name looked at the boards and found nothing to change."""
    node("PROXY", "HOST")
    with pytest.raises(BadInput) as error:
        registry.kind_of(asked(flavor=flavor))
    both = f"a proxy node ({registry.PROXY}) and a compute host ({registry.HOST})"
    said = f"kind: is not given, and {THIS_NODE} is {both}: say what is meant: kind board, container or guest"
    assert str(error.value) == said
