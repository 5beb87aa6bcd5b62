# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of alias and device_spec, and flavor properties, beside Nova's own checks. If this fails, something is written
with which a service does not start, or a sound line is refused.
"""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.openstack import specs
from ansible_collections.hetero.compute.tests.turns import todays

CASES = 250
IDS = ["10de", "11BF", "0000", "10d", "10dez", "*", "0x10", "", 4318, None]
ADDRESSES = [
    *("0000:85:00.0", "*:85:00.*", ":85:", ".", "85:00.0", "1:2:3:4.0", "0000:85:20.0", "0000:85:00.8", "zz:00.0", ""),
    *({}, {"bus": "8[5-6]"}, {"bus": "["}, {"slot": 5}, ["85"], 85, None, "10000:00:00.0", " 85 : 00 .0", "85:00. "),
]
SWITCHES = ["yes", "no", "True", "off", "1", "maybe", "", True, 0, None, " y "]
POLICIES = ["required", "legacy", "preferred", "socket", "none", "", None]
TYPES = ["type-PCI", "type-PF", "type-VF", "vdpa", "PF", "", None]
ALIASES = [json.dumps(dict(name=name, vendor_id="10de", product_id="11bf")) for name in ("a1", "a2", "a-3", "mine is")]


def alias(draw):
    found = dict(name=draw.choice(["a1", "a1", "a1", " a1 ", "a2", "x" * 257, "", 1]))
    for key in ("vendor_id", "product_id"):
        if draw.random() < 0.93:
            found[key] = draw.choice(["10de", "11bf"]) if draw.random() < 0.85 else draw.choice(IDS)
    for key, values in (("device_type", TYPES), ("numa_policy", POLICIES), ("live_migratable", SWITCHES)):
        if draw.random() < 0.4:
            found[key] = draw.choice(values[:3]) if draw.random() < 0.8 else draw.choice(values)
    if draw.random() < 0.06:
        found[draw.choice(["colour", "capability_type", "resource_class", "traits"])] = draw.choice(["pci", "red", 1])
    return odd(draw, json.dumps(found))


def rule(draw):
    found = {}
    for key in ("vendor_id", "product_id"):
        if draw.random() < 0.6:
            found[key] = draw.choice(IDS[:3]) if draw.random() < 0.8 else draw.choice(IDS)
    if draw.random() < 0.6:
        found["address"] = draw.choice(ADDRESSES[:5]) if draw.random() < 0.5 else draw.choice(ADDRESSES)
    for key in ("managed", "live_migratable", "one_time_use", "remote_managed"):
        if draw.random() < 0.15:
            found[key] = draw.choice(SWITCHES)
    if draw.random() < 0.05:
        # one that no machine has: of others Nova asks the machine
        found["devname"] = draw.choice(["gone0", "", None])
        found.pop("remote_managed", None)
    text = json.dumps(found)
    return odd(draw, f"[{text}, {text}]" if draw.random() < 0.2 else text)


def odd(draw, text):
    """Now and then no JSON object at all."""
    return (
        draw.choice(["", "[]", "{}", "a1", "null", f"[{text}]", text[:-1], f"'{text}'"])
        if draw.random() < 0.04
        else text
    )


def wanted(draw):
    parts = [
        draw.choice(
            ["a1", "a2", "a-3", "mine is", "a4", "", " a1 "] if draw.random() < 0.2 else ["a1", "a2", "a-3", "mine is"]
        )
        + draw.choice([":", ":", ":", ":", ":", ":", "", "::"])
        + draw.choice(["1", "1", "2", "10", "1", "01", "-1", "x", ""] if draw.random() < 0.2 else ["1", "2"])
        for _number in range(draw.choice([1, 1, 2, 3]))
    ]
    return draw.choice([",", ", ", " , ", " ,", ";" if draw.random() < 0.2 else ","]).join(parts)


def ours(case):
    try:
        if case["option"] == "alias":
            specs.aliases(case["texts"], "here")
        elif case["option"] == "device_spec":
            specs.device_specs(case["texts"], "here")
        else:
            specs.requests(case["texts"][0], specs.aliases(ALIASES, "here"), "flavor f")
    except BadInput:
        return False
    return True


@pytest.mark.dear
@pytest.mark.parametrize("days", [6, pytest.param(1, marks=pytest.mark.long)])
def test_what_nova_refuses_is_refused_and_nothing_else(ask_nova, tell, days):
    draw = random.Random(11)
    cases = [
        dict(option="alias", texts=[alias(draw) for _number in range(draw.choice([1, 1, 2]))])
        for _number in range(CASES)
    ]
    cases += [dict(option="device_spec", texts=[rule(draw)]) for _number in range(CASES)]
    cases += [dict(option="property", texts=[wanted(draw)], aliases=ALIASES) for _number in range(CASES)]
    cases = todays(cases, days)
    answers = ask_nova("accepts", cases)
    tally = Counter((case["option"], answer) for case, answer in zip(cases, answers))
    for option in ("alias", "device_spec", "property"):
        tell(f"{option:<12} {CASES // days} cases: {tally[option, True]} accepted, {tally[option, False]} refused")
    differ = [(case["texts"], answer) for case, answer in zip(cases, answers) if ours(case) != answer]
    assert differ == []
    assert min(tally.values()) >= (0.3 if days == 1 else 0.1) * CASES / days
