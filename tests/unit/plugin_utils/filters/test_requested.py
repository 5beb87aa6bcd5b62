# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose variables say what is asked for. If these fail, a node is asked for what nobody said: a lease that ends, or
an instance of another owner, by a variable of its own in the inventory that only has such a name.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from jinja2 import Environment

from ansible_collections.hetero.compute.plugins.plugin_utils.filters import requested as code

ROOT = Path(__file__).resolve().parents[4]
JINJA = Environment(autoescape=False)


@pytest.fixture
def owner(monkeypatch):
    """A function that returns the owner whom a node hears, or another value, by variables of the node, of localhost, of
    -e and of the play.
    """

    def read(node=None, localhost=None, extra=None, play=None, name="p1", what="owner"):
        given = dict(extra or {})
        hosts = dict(p1={**(node or {}), **given}, localhost={**(localhost or {}), **given})
        known = {**hosts[name], **(play or {}), **given}
        monkeypatch.setattr(code, "load_extra_vars", lambda _loader: given)
        variables = dict(known, inventory_hostname=name, hostvars=hosts, awx_user_name="jo")
        return code.requested(JINJA.from_string("").new_context(variables), what)

    return read


INFRA, BO = dict(owner="infra"), dict(owner="bo")


def test_a_nodes_own_variable_is_no_word_of_who_asks(owner):
    assert owner(node=INFRA) == "jo"
    assert owner(node=INFRA, localhost=BO) == "bo"
    assert owner(node=dict(image="of a role"), what="given_image") == ""
    assert owner(node=dict(hetero_boot_timeout=900), what="timeout") == 900  # a site's setting may be a node's


@pytest.mark.parametrize("word", ["adopt", "forget", "remove"])
def test_reconcile_ends_takes_and_removes_nothing_by_a_nodes_own_variable(owner, word):
    """Lost: a claim, or a root, of a node whose inventory has a variable of that name for something else."""
    asked = owner(node={word: "board7, jackie"}, extra={word: " jo,board2 ,"}, what=word)
    assert (owner(node={word: "board7, jackie"}, what=word), asked) == ([], ["jo", "board2"])


@pytest.mark.parametrize("word", ["adopt", "forget", "remove"])
def test_reconcile_gives_its_nodes_what_was_asked_for(word):
    """Lost: the same, to a variable of the play that reads the word by itself."""
    read = yaml.safe_load((ROOT / "playbooks/vars/request.yml").read_text(encoding="utf-8"))
    assert read[f"_{word}"] == f"{{{{ '{word}' | hetero.compute.requested }}}}"


def test_what_is_said_to_all_is_heard_by_each_node(owner):
    """Lost: what was asked for, by -e, by an inventory for all of its hosts, or by a play's own variables."""
    assert owner(node=INFRA, extra=BO) == "bo"
    assert owner(node=BO, localhost=BO) == "bo"
    assert owner(play=BO) == "bo"
    assert owner(node=dict(image="x"), extra=dict(image="y"), what="given_image") == "y"
    assert owner(node=INFRA, play=BO) == "bo"
    assert owner(name="localhost", localhost=BO) == "bo"
    assert owner(node=dict(owner=JINJA.undefined())) == "jo"
