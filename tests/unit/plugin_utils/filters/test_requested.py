# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose variables say what is asked for. If these fail, a node is asked for what nobody said: a lease that ends, or
an instance of another owner, by a variable of its own in the inventory that only has such a name.
"""

from __future__ import annotations

import pytest
from jinja2 import Environment

from ansible_collections.hetero.compute.plugins.plugin_utils.filters import requested as code

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


def test_what_is_said_to_all_is_heard_by_each_node(owner):
    """Lost: what was asked for, by -e, by an inventory for all of its hosts, or by a play's own variables."""
    assert owner(node=INFRA, extra=BO) == "bo"
    assert owner(node=BO, localhost=BO) == "bo"
    assert owner(play=BO) == "bo"
    assert owner(node=dict(image="x"), extra=dict(image="y"), what="given_image") == "y"
    assert owner(node=INFRA, play=BO) == "bo"
    assert owner(name="localhost", localhost=BO) == "bo"
    assert owner(node=dict(owner=JINJA.undefined())) == "jo"
