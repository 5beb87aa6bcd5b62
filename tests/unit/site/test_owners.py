# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an owner may be called. If these fail, two owners are one for everybody who reads a table, or a node answers
nobody any more.
"""

from __future__ import annotations

import unicodedata
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import seen
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import owners
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.owners import must_be_owner

#: Characters that str.isprintable lets through, or that are blanks, and which no eye sees in a name.
UNSEEN = "\u3164\u115f\u1160\uffa0\u2800\u034f\ufe0f\U000e0100\u17b4\u17b5\u180b\xa0\u2003\u3000\u2009\u202f\u1680"
#: Names as people have them: letters, marks, digits and signs of all languages.
NAMES = (
    "ann",
    "Ann Ünal",
    "jo@example.org",
    "O'Neill-Smith",
    "李小龍",
    "김민수",
    "אברהם",
    "محمد",
    "अनिता",
    "ស្រី",
    "🙂",
    "a" * 255,
)


@pytest.mark.parametrize("char", UNSEEN, ids=lambda char: f"{ord(char):04x}")
@pytest.mark.parametrize("name", ["mallory{}", "{}", "mal{}lory"])
def test_a_name_with_what_nobody_sees_gets_nothing(char, name):
    """Lost: whose an instance is, to one whose name looks like another's."""
    owner = name.format(char)
    with pytest.raises(BadInput) as error:
        must_be_owner(owner)
    assert error.value.thing == "owner"
    assert char not in str(error.value)


@pytest.mark.parametrize("owner", ["mallory ", " mallory", "a" * 256, "a" * 20_001])
def test_a_name_that_looks_like_another_or_has_no_end_gets_nothing(owner):
    """Lost: the same; or a node, whose answers no play takes with a longer text."""
    with pytest.raises(BadInput, match=r"^owner: "):
        must_be_owner(owner)


@pytest.mark.parametrize("owner", NAMES)
def test_names_of_all_languages_are_names(owner):
    must_be_owner(owner)
    assert seen(owner) == owner


def test_letters_marks_digits_and_signs_are_seen_and_nothing_else_is():
    """Lost: a language; or one of the characters that are not in the list above."""
    shown = [char for char in map(chr, range(0x110000)) if seen(char) == char]
    kinds = {unicodedata.category(char) for char in shown}
    assert not kinds & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    assert [char for char in shown if unicodedata.category(char) == "Zs"] == [" "]
    letters = [char for char in map(chr, range(0x110000)) if unicodedata.category(char)[0] in "LNP"]
    assert [char for char in letters if seen(char) != char] == list("\u115f\u1160\u3164\uffa0")


@pytest.mark.parametrize("forms", [("NFC", "NFD"), ("NFD", "NFC")])
def test_a_name_with_an_accent_is_one_however_it_is_typed(forms):
    """Lost: an instance, or a name that is waited for, to its own owner, who comes back from another keyboard."""
    had, typed = (unicodedata.normalize(form, "José") for form in forms)
    assert had != typed
    claim = dict(instance="lab", request="lab", owner=had, created=5.0, image_hash=None)
    answer = dict(item="p1", claims=[claim], queue=[dict(request="lab", owner=had, asked=5.0)], boards=[])
    answer.update(ended=[dict(instance="lab", owner=had, time=5.0)], alike=[dict(instance="lab", owner=had)])
    owners.must_own(SimpleNamespace(**claim), typed)
    owners.refuse_taken([claim], "lab", ["lab"], typed)
    assert owners.waited_for([answer], "lab", 1, typed, None) == ""
    assert owners.taken([answer], "lab", 1, typed) == []
    _parts, surplus = owners.holders([answer], "lab", 1, typed, keep=())
    assert [part["item"] for part in surplus] == ["p1"]
    made = dict(claim, image_hash="x")
    there = [dict(item=name, claims=[dict(made, created=when)]) for name, when in (("p1", 1.0), ("p2", 2.0))]
    assert len(owners.twice(there, "lab", typed)) == 1
    assert "p1 ended lab at" in owners.ended([answer], "lab", typed)
    assert owners.meant([answer], "lap", typed) == "is lab meant?"
    with pytest.raises(Refused, match="belongs to José".replace("José", had)):
        owners.must_own(SimpleNamespace(**claim), "Jose")
