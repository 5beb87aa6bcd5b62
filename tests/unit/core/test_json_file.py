# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""JSON as nodes read it. If these fail, a file of a person's or of a site's tool means one thing here and another to
its writer, or a node waits for a pipe that nobody writes.
"""

from __future__ import annotations

import math
import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.json_file import (
    any_number,
    loads,
    read_object,
    read_text,
)


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", '{"a": -Infinity}'])
def test_what_is_no_number_of_json_is_refused(text):
    """Lost: a lease of NaN hours, which compares as over and as not over."""
    with pytest.raises(ValueError, match="is no JSON number"):
        loads(text)


def test_a_number_that_a_float_does_not_hold_is_refused():
    """Lost: a number that became infinite on the way."""
    assert loads("1e308") == 1e308
    with pytest.raises(ValueError, match="1e309 is too large"):
        loads("1e309")


def test_a_key_twice_in_one_object_is_named():
    """Lost: which of two rows for board 3 a person meant; Python takes the last without a word."""
    with pytest.raises(ValueError, match="the key pdu is there twice in one object"):
        loads('{"boards": {"pdu": "a", "pdu": "b"}}')
    assert loads('[{"pdu": 1}, {"pdu": 2}]') == [{"pdu": 1}, {"pdu": 2}]


@pytest.mark.parametrize("read", [loads, any_number])
def test_what_is_nested_too_deep_is_no_traceback(read):
    """Lost: the error's words, to a traceback of a thousand lines."""
    with pytest.raises(ValueError, match="it is nested too deep"):
        read("[" * 100_000)


def test_who_names_the_places_of_numbers_gets_them():
    """Lost: the place of the wrong number in a site's settings."""
    assert math.isnan(any_number('{"a": NaN}')["a"])


def test_a_pipe_in_a_files_place_is_not_waited_for(tmp_path):
    """Lost: the verb, which waits for ever for a writer."""
    os.mkfifo(tmp_path / "proxy.json")
    with pytest.raises(OSError, match="it is no regular file"):
        read_text(str(tmp_path / "proxy.json"))


def test_a_larger_file_is_not_read(tmp_path):
    """Lost: the node's memory."""
    path = tmp_path / "a.json"
    path.write_text("x" * 11)
    assert read_text(str(path), most=11) == "x" * 11
    with pytest.raises(OSError, match="more than 10 bytes"):
        read_text(str(path), most=10)


def test_what_says_more_than_its_size_is_not_read_on():
    """Lost: the same, to a file of the kernel's, whose size is 0."""
    with pytest.raises(OSError, match="more than 10 bytes"):
        read_text("/proc/self/status", most=10)


def test_each_fault_says_the_file_and_what_to_do(tmp_path):
    """Lost: which of a node's files is wrong, and on which machine."""
    path = tmp_path / "a.json"
    with pytest.raises(BadInput, match=r"a\.json: cannot be read on the controller \(No such file.*: put it back"):
        read_object(str(path), "put it back", where="the controller")
    path.write_text("{")
    with pytest.raises(BadInput, match=r"a\.json: is not JSON \(.*line 1 column 2"):
        read_object(str(path), "put it back")
    path.write_text("[1]")
    with pytest.raises(BadInput, match="is not a JSON object"):
        read_object(str(path), "put it back")
    path.write_text('{"a": 1}')
    assert read_object(str(path), "put it back") == {"a": 1}
