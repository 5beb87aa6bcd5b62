# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said of an argument that nothing can be done with. If these fail, a slip of the keyboard is a traceback, a
wait without end, or a screen full of what was pasted by mistake.

Tests core/errors.py, core/job.py, core/module.py.
"""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import job
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError, told
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.module import run
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import MOST
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.instance import (
    must_be_free_word,
    valid_instance,
)

INF, NAN = float("inf"), float("nan")
LONG = "a word and " * 100


class Ended(Exception):
    """The module's end."""


def ended(work=lambda params, check: {}, start=run, **params):
    """What a module with these arguments ends with."""
    results = []

    def end(**result):
        results.append(json.loads(json.dumps(result, allow_nan=False)))
        raise Ended

    module = SimpleNamespace(params=params, check_mode=False, exit_json=end, fail_json=end)
    with pytest.raises(Ended):
        start(module, work)
    return results[0]


ODD = [
    (INF, "is inf: give a finite number"),
    (NAN, "is nan: give a finite number"),
    ("a\0b", "holds a NUL character: leave it out"),
    ("\udcff", "holds bytes that are not UTF-8: write it in UTF-8"),
    (2**63, "is too large a number: give one of at most 18 digits"),
    (-1e300, "is too large a number: give one of at most 18 digits"),
    ({"a": [{"b": -INF}]}, "is -inf: give a finite number"),
    ({"a": {"\0": 1}}, "holds a NUL character: leave it out"),
]


@pytest.mark.parametrize(("value", "words"), ODD)
def test_what_nothing_can_be_done_with_is_refused_by_its_name(value, words):
    assert ended(timeout=1.0, given=value)["msg"] == f"given: {words}"


def test_a_module_that_goes_on_by_itself_refuses_it_too():
    """Lost: a worker that waits for ever, which nobody follows."""

    def start(module, work):
        job.in_background(module, lambda: pytest.fail("it was begun"), work)

    assert ended(start=start, timeout=INF)["msg"] == "timeout: is inf: give a finite number"


def test_numbers_and_texts_that_are_right_go_through():
    given = dict(a=2**63 - 1, b=-(2**63) + 1, c=1e18, d="é\n", e=None, f=[True, {"x": []}])
    assert ended(lambda params, check: {"got": params}, **given)["got"] == given


@pytest.mark.parametrize("where", [dict(what=f"is {LONG!r}"), dict(what="is wrong", thing=LONG)])
@pytest.mark.parametrize("given", [LONG, {"deep": [LONG]}])
def test_an_error_shows_an_argument_cut_off(where, given):
    def work(params, check):
        raise BadInput(**{"remedy": f"not {LONG}", **where})

    result = ended(work, given=given)
    assert LONG not in json.dumps(result)
    assert len(result["msg"]) < 3 * MOST
    assert f"{LONG[: MOST - 1]}…" in result["msg"]


def test_an_error_of_parts_shows_an_argument_cut_off():
    """Those of many boards at once come as a result, and not as an error."""
    result = ended(lambda params, check: dict(failed=True, msg=f"board0: no {LONG}"), given=LONG)
    assert result["msg"] == f"board0: no {LONG[: MOST - 1]}…"


def test_an_error_shows_a_long_word_cut_off_wherever_it_is_from():
    """What files and other machines say is not known to a module as an argument."""
    error = HeteroError(f"no {'x' * 5000}", "y" * 5000, f"give {'z' * MOST}")
    assert str(error) == f"{'y' * (MOST - 1)}…: no {'x' * (MOST - 1)}…: give {'z' * MOST}"
    assert error.failure["what"] == f"no {'x' * (MOST - 1)}…"
    assert len(told(ValueError("x" * 5000), "board0")) < 2 * MOST


@pytest.mark.parametrize("name", ["localhost", "all", "ungrouped"])
def test_words_of_ansible_are_no_names_for_instances(name):
    """A play on `all` would run on one tenant's board, and one on localhost elsewhere than its author meant."""
    with pytest.raises(BadInput, match=f"{name}: is a word of Ansible's"):
        must_be_free_word(name)
    # what has such a name from before can be given back by it
    assert valid_instance(name) == name
    must_be_free_word(f"{name}-1")
