# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Declarations of configuration files. If these fail, a slip in a node's file is found when a board does not boot, or
only the first of ten mistakes is told.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import typed_keys
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.typed_keys import (
    ADDRESS,
    FLAG,
    NETWORK,
    NUMBERED,
    PATH,
    SECRET,
    TEXT,
    Key,
    ListOf,
    Record,
    RecordOf,
    TableOf,
    WrongFile,
    as_said,
    declared,
    number,
    one_of,
    read_all,
    read_file,
    text,
    whole,
)


def read(kind, value, place="key"):
    """(what is used, [the mistakes as text])."""
    mistakes = []
    taken = read_all(kind, value, place, mistakes)
    return taken, [str(one) for one in mistakes]


@pytest.mark.parametrize(
    ("kind", "value", "taken"),
    [
        (TEXT, "a", "a"),
        (NUMBERED, 7, "7"),
        (whole(), "12", 12),
        (whole(1, 3), 3, 3),
        (number(0.5, 2), 2, 2),
        (FLAG, False, False),
        (one_of("on", "off"), "off", "off"),
        (PATH, "/srv/a b", "/srv/a b"),
        (ADDRESS, "10.0.2.1", "10.0.2.1"),
        (NETWORK, "10.0.2.0/24", "10.0.2.0/24"),
        (SECRET, 1234, "1234"),
    ],
)
def test_what_is_of_the_kind_is_taken(kind, value, taken):
    """Lost: a setting as it was meant."""
    assert read(kind, value) == (taken, [])


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (TEXT, ""),
        (TEXT, "a\0b"),
        (TEXT, "\ud800"),
        (TEXT, 7),
        (NUMBERED, True),
        (NUMBERED, 10**15),
        (text(most=2), "abc"),
        (text(fits=str.islower), "A"),
        (whole(), -1),
        (whole(), True),
        (whole(), 1.0),
        (whole(), "１２"),  # noqa: RUF001
        (whole(1, 3), 4),
        (number(0.5, 2), 0.4),
        (number(0.5, 2), "1"),
        (FLAG, "true"),
        (FLAG, 0),
        (one_of("on", "off"), True),
        (PATH, "srv"),
        (PATH, "/" + "a" * 256),
        (PATH, "/" + "ü" * 128),
        (PATH, "/a" * 501),
        (ADDRESS, "10.0.2.256"),
        (ADDRESS, 167772161),
        (NETWORK, "10.0.2.1/24"),
        (NETWORK, 167772160),
        (ListOf(TEXT), "a"),
        (TableOf(TEXT), ["a"]),
    ],
)
def test_what_is_not_is_named_with_what_belongs_there(kind, value):
    """Lost: which key, and what to write."""
    _taken, [said] = read(kind, value)
    assert said.startswith("key: is ")
    assert f"give {kind.wanted}" in said


def test_a_secret_is_not_shown():
    """Lost: a password, in the log of a play."""
    assert read(SECRET, ["hunter2"])[1] == ["key: is none: give text"]
    assert "hunter2" not in str(read(TableOf(SECRET, secret=True), "hunter2")[1])


def test_each_mistake_has_its_place():
    """Lost: all but the first of them, one run each."""
    kind = Record({"pdus": Key(TableOf(Record({"port": Key(whole(1, 65535))}))), "boards": Key(ListOf(ADDRESS))})
    _taken, said = read(kind, {"pdus": {"a": {"port": 0}, "b": {"port": 1}}, "boards": ["10.0.2.1", "x"]}, "")
    assert said == [
        "pdus.a.port: is 0: give a whole number from 1 to 65535",
        'boards[1]: is "x": give an IPv4 address',
    ]


def test_a_slip_of_a_key_is_a_mistake_and_a_key_of_ones_own_is_none():
    """Lost: a setting that nobody reads; or the settings of a site's own driver."""
    kind = Record({"server": Key(ADDRESS)})
    taken, said = read(kind, {"servr": "10.0.2.1", "our_own": [1]}, "")
    assert said == ["servr: is no key: did you mean server? A key of your own needs another name"]
    assert taken["our_own"] == [1]
    strict = Record({"server": Key(ADDRESS)}, others=TEXT)
    assert read(strict, {"our_own": 1}, "")[1] == [f"our_own: is 1: give {TEXT.wanted}"]


def test_a_number_that_is_none_is_found_at_any_depth():
    """Lost: NaN seconds, in a key that a driver reads."""
    deep = {"our_own": {"list": [1, {"x": float("nan")}]}, "port": float("inf")}
    _taken, said = read(Record({"port": Key(whole())}), deep, "")
    assert said == [
        "port: is Infinity: give a whole number of 0 or more",
        "our_own.list[1].x: is NaN: give a finite number",
    ]


@dataclass(frozen=True)
class Config:
    server: str = declared(ADDRESS)
    hours: int = declared(whole(), 8)
    table: dict = declared(TableOf(TEXT), {"a": "b"})  # noqa: RUF009
    others: dict = field(default_factory=dict)


def test_a_record_is_read_into_its_dataclass():
    """Lost: a default; or what the file says besides."""
    made, said = read(RecordOf(Config), {"server": "10.0.2.1", "hours": None, "own": 1})
    assert (made, said) == (Config("10.0.2.1", 8, {"a": "b"}, {"own": 1}), [])
    assert as_said(made) == {"server": "10.0.2.1", "hours": 8, "table": {"a": "b"}, "own": 1}
    assert Config().table is not Config().table, "one file's table is not another one's"


def test_an_empty_text_is_no_value_where_none_is_the_default():
    """Lost: `server: ""` of a template, which is as good as none; and `hours: ""`, which is a mistake."""
    assert read(RecordOf(Config), {"server": ""}) == (Config(), [])
    assert read(RecordOf(Config), {"hours": ""})[1] == ['key.hours: is "": give a whole number of 0 or more']


def test_a_file_with_mistakes_tells_them_all(tmp_path, monkeypatch):
    """Lost: the place of each; or a terminal, to ten thousand of them."""
    monkeypatch.setattr(typed_keys, "LISTED", 2)
    path = tmp_path / "proxy.json"
    path.write_text(json.dumps({"boards": [1, 2, 3]}))
    with pytest.raises(WrongFile) as error:
        read_file(str(path), Record({"boards": Key(ListOf(TEXT))}), "run the set-up again")
    assert len(error.value.mistakes) == 3
    assert error.value.what == "3 mistakes"
    assert [line.partition(": boards")[2][:3] for line in str(error.value).split("\n")][:2] == ["[0]", "[1]"]
    assert str(error.value).split("\n")[2] == f"{path}: and 1 more"
    assert "then run the set-up again" in str(error.value).split("\n")[3]
    path.unlink()
    with pytest.raises(BadInput, match="cannot be read"):
        read_file(str(path), Record({}), "run the set-up again")
