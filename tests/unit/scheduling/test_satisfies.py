# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""extra_specs in a template and in a search. That they decide as Nova does is shown in tests/unit/parity."""

from __future__ import annotations

import jinja2
import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.fit import rejections
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.flavor_check import validate
from ansible_collections.hetero.compute.plugins.test.satisfies import TestModule as Plugin


@pytest.mark.parametrize(
    ("expression", "met"),
    [
        ("[1, 2] | length is satisfies('>= 2')", True),
        ("'LXC' is satisfies('s== KVM')", False),
        ("['sse4', 'aes'] is satisfies('<all-in> aes sse4')", True),
        ("none is satisfies('>= 0')", False),
        ("5 is satisfies('>= 3 <= 4')", True),
    ],
)
def test_in_a_template(expression, met):
    """A play's `when` uses it; a test that returned a text would always be true."""
    jinja = jinja2.Environment()
    jinja.tests.update(Plugin().tests())
    assert jinja.compile_expression(expression)() is met


@pytest.mark.parametrize(
    ("requirement", "met", "unmet"),
    [
        *[("= 2", [2, 3], [1]), ("== 2", [2, 2.0], [1, 3]), ("!= 2", [1, 3], [2])],
        *[(">= 2", [2, 10], [1.9]), ("<= 2", [1, 2], [2.1, 10])],
        *[("s== b", ["b"], ["a", "bb"]), ("s!= b", ["a", "bb"], ["b"])],
        *[("s< b", ["a"], ["b", "c"]), ("s<= b", ["a", "b"], ["c"])],
        *[("s> b", ["c"], ["a", "b"]), ("s>= b", ["b", "c"], ["a"])],
        *[("<in> aes", [["sse4", "aes"], "sse4,aes"], [["sse4"], ""]), ("<all-in> a b", [["b", "a"]], [["a"], ["b"]])],
        *[("<or> a <or> b", ["a", "b"], ["c", "<or>"]), ("fermi", ["fermi"], ["kepler"]), ("> 2", ["> 2"], [3])],
    ],
)
def test_each_operator_at_its_edge(requirement, met, unmet):
    """Lost: the nodes that are just enough, or a node that is not."""
    satisfies = Plugin().tests()["satisfies"]
    assert [satisfies(value, requirement) for value in met] == [True] * len(met)
    assert [satisfies(value, requirement) for value in unmet] == [False] * len(unmet)


def test_what_nova_raises_at_is_an_error_that_names_the_key():
    """A number asked of a text is a mistake in the flavor: "false" would hide it."""
    satisfies = Plugin().tests()["satisfies"]
    with pytest.raises(AnsibleFilterError, match="satisfies: gpu_arch: '>= 2' compares numbers, and 'fermi' is none"):
        satisfies("fermi", ">= 2", "gpu_arch")


@pytest.mark.parametrize("requirement", [True, None, ["s== LXC"], {"gpus": 2}])
def test_what_is_no_text_is_an_error_that_names_the_key(requirement):
    """YAML makes `yes` true and `- x` a list: compared as texts they are met by no node, and nobody learns why."""
    with pytest.raises(AnsibleFilterError, match=r"satisfies: gpu_arch: is .*: give it as text such as"):
        Plugin().tests()["satisfies"]("fermi", requirement, "gpu_arch")


def test_one_node_that_says_nonsense_is_a_rejected_node():
    """It must not stop the search among the others; that Nova would is no use to anybody."""
    flavor = dict(name="x", extra_specs={"cores": ">= 2 <= 8"})
    validate(flavor)
    assert rejections(flavor, {"cores": 2}) == []
    assert rejections(flavor, {"cores": "many"}) == ["cores: '>= 2 <= 8' compares numbers, and 'many' is none"]
