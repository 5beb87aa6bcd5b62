# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests/callbacks/kept_templates.py keeps. If these fail, plays of the tests are given another template's code."""

from __future__ import annotations

import pytest
from ansible.template import Templar, trust_as_template
from jinja2 import TemplateSyntaxError

from ansible_collections.hetero.compute.tests.callbacks.kept_templates import Kept, _jinja_bits, keep

NAMES = {"name": "jackie", "inner": "{{ name | upper }}"}


@pytest.fixture
def compiled(monkeypatch, tmp_path):
    """The sources that Jinja compiled while Ansible's own environments keep what they compile."""
    done, environment = [], _jinja_bits.AnsibleEnvironment
    real = environment._compile

    def compiling(self, source, filename):
        done.append(source)
        return real(self, source, filename)

    monkeypatch.setattr(environment, "_compile", compiling)
    for name in ("compile", "compile_expression"):
        monkeypatch.setattr(environment, name, getattr(environment, name))
    keep(environment, Kept(str(tmp_path / "kept")))
    return done


def templar():
    return Templar(variables={name: trust_as_template(value) for name, value in NAMES.items()})


def rendered(text):
    return templar().template(trust_as_template(text))


def truth(text):
    return templar().evaluate_expression(trust_as_template(text))


def test_the_second_time_gives_the_same_and_compiles_nothing(compiled):
    """Lost: a template that says something else in the second play; or all the time that this is for."""
    first = [rendered("{{ inner }} and {{ [1, 2] | sum }}"), rendered("{{ 'a\\b' }}"), truth("name == 'jackie'")]
    assert first == ["JACKIE and 3", "a\\b", True]
    before = len(compiled)
    assert before >= 4
    again = [rendered("{{ inner }} and {{ [1, 2] | sum }}"), rendered("{{ 'a\\b' }}"), truth("name == 'jackie'")]
    assert (again, len(compiled)) == (first, before)


def test_a_template_and_an_expression_of_the_same_words_are_two(compiled):
    """Lost: a condition that is taken for its text, and so is always true."""
    words = "'{{ name }}'"
    assert rendered(words) == "'jackie'"
    assert truth(words) == "{{ name }}"
    assert rendered(words) == "'jackie'"


def test_other_marks_are_another_template(compiled):
    """Lost: a file with marks of its own, by what another made of the same words."""
    text = "[[ name ]] {{ name }}"
    assert rendered(text) == "[[ name ]] jackie"
    header = '#jinja2: variable_start_string: "[[", variable_end_string: "]]"\n'
    assert rendered(header + text) == "jackie {{ name }}"


def test_one_that_does_not_compile_says_so_each_time(compiled):
    """Lost: the error, in the second play."""
    for _turn in range(2):
        with pytest.raises(Exception, match="Syntax error in template") as error:
            rendered("{{ name ")
        assert isinstance(error.value.__cause__, TemplateSyntaxError)
