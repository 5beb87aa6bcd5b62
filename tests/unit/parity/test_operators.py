# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""extra_specs beside Nova's own code. If this fails, a flavor that worked with Nova asks for other nodes here."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.extra_specs import OPERATORS, satisfies

CASES = 300
WORDS = ["LXC", "lxc", "kvm", "fermi", "kepler", "sse4", "sse4.2", "8x8", "10", "9", "2.0", "", "ä", "a b", "=", "<or>"]
NUMBERS = ["0", "1", "2", "2.0", "3", "10", "-1", "1e1", " 2", "1_0", "inf", "nan", "0.5"]
#: What stands where an operator is expected, and is none.
PLAIN = ["", ">", "<", "=2", ">=2", "S==", "~", "<and>", "fermi"]


def blanks(draw):
    return draw.choice([" ", " ", " ", "  ", "\t", "\n", "\u00a0"])


def number(draw):
    """Mostly numbers, so that most comparisons are decided and not refused."""
    return draw.choice(NUMBERS) if draw.random() < 0.94 else draw.choice(WORDS)


def value_of(draw, sign, operands):
    """A node's value for a requirement: near what it asks for as often as far from it."""
    if draw.random() < 0.04:
        return None
    if sign in ("=", "==", "!=", ">=", "<="):
        near = sign in ("==", "!=") and draw.random() < 0.45
        found = operands[0] if near and operands else number(draw)
        return draw.choice([found, found, int(found)]) if found.isdigit() else found
    if sign in ("<in>", "<all-in>"):
        wanted = operands if draw.random() < 0.5 else draw.sample(WORDS, 2)
        return wanted + draw.sample(WORDS, 2) if draw.random() < 0.5 else " ".join([*wanted, draw.choice(WORDS)])
    if draw.random() < 0.03:
        return draw.sample(WORDS, 2)
    equal = operands and draw.random() < (0.2 if sign in ("s<=", "s>=") else 0.0 if sign in ("s<", "s>") else 0.45)
    return draw.choice(operands) if equal else draw.choice(WORDS)


def case(draw, sign):
    """A requirement with this operator, and a value."""
    if sign == "plain":
        text = " ".join([draw.choice(PLAIN), *draw.sample(WORDS, draw.choice([0, 0, 1, 2]))])
        value = text if draw.random() < 0.5 else draw.choice([*WORDS, None, 2, [text]])
        return dict(value=value, requirement=text)
    count = draw.choices([0, 1, 2, 3], [2, 80, 10, 8])[0]
    source = number if sign in ("=", "==", "!=", ">=", "<=") else lambda draw: draw.choice(WORDS)
    operands = [source(draw) for _number in range(count)]
    words = [sign]
    for operand in operands:
        words += ([] if sign != "<or>" or len(words) == 1 else [draw.choice(["<or>", "<or>", "or"])]) + [operand]
    text = "".join(word + blanks(draw) for word in words)
    text = draw.choice(["", "", " "]) + (text if draw.random() < 0.2 else text.rstrip())
    return dict(value=value_of(draw, sign, operands), requirement=text)


def ours(value, requirement):
    try:
        return satisfies(value, requirement, "gpus")
    except BadInput as error:
        named = str(error).startswith("gpus: ") and repr(requirement) in str(error)
        return "refused" if named else f"names neither key nor text: {error}"


def test_every_operator_decides_as_nova_does(ask_nova, tell):
    """At least 200 cases an operator, each outcome at least 30 % of them; what Nova raises at, we refuse by name."""
    draw = random.Random(34)
    cases = [(sign, case(draw, sign)) for sign in (*OPERATORS, "plain") for _number in range(CASES)]
    answers = ask_nova("operators", [case for _sign, case in cases])
    tallies = {sign: Counter() for sign in (*OPERATORS, "plain")}
    differ = []
    for (sign, case_), answer in zip(cases, answers):
        nova = answer if isinstance(answer, bool) else "refused"
        tallies[sign][nova] += 1
        if ours(**case_) != nova:
            differ.append((case_, answer, ours(**case_)))
    tell("operator   cases  met  not  refused")
    for sign, tally in tallies.items():
        tell(f"{sign:<9} {sum(tally.values()):6} {tally[True]:4} {tally[False]:4} {tally['refused']:8}")
    assert differ == []
    for sign, tally in tallies.items():
        assert sum(tally.values()) >= 200
        assert min(tally[True], tally[False]) >= 0.3 * sum(tally.values()), (sign, tally)


@pytest.mark.parametrize("requirement", [True, None, ["= 2"], {"=": 2}])
def test_a_requirement_that_is_no_text_is_refused(requirement):
    """YAML's `yes` is no text: compared as one it would silently never fit."""
    with pytest.raises(BadInput, match=r"^gpus: is .*: give it as text"):
        satisfies("2", requirement, "gpus")
