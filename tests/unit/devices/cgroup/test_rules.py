# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Device rules as text, and our own programs read back as the rules they were made from."""

from __future__ import annotations

import random

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.instructions import (
    ALU,
    ALU64,
    AX,
    EXIT,
    JMP,
    Instruction,
    X,
    mov,
    pack,
    unpack,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.program import (
    compile_rules,
    mark_of,
    name_of,
    read_rules,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.rules import (
    EVERYTHING,
    Rule,
    covered,
    merged,
    needed,
    parse,
    questions,
)
from ansible_collections.hetero.compute.tests.unit.devices.cgroup import device_programs
from ansible_collections.hetero.compute.tests.unit.devices.cgroup.test_parity import random_rules


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("c 195:0 rw", Rule("c", 195, 0, "rw")),
        ("  c   195:*   wr ", Rule("c", 195, None, "rw")),
        ("b *:* m", Rule("b", None, None, "m")),
        ("a", EVERYTHING),
        ("a *:* rwm", EVERYTHING),
        ("c 195:0 mrw", Rule("c", 195, 0, "rwm")),
    ],
)
def test_a_rule_is_read_as_the_kernel_writes_it(text, rule):
    """A list that the kernel shows could not be compared with what the user asked."""
    assert parse(text) == rule
    assert parse(str(rule)) == rule


@pytest.mark.parametrize(
    ("rule", "kind", "major", "minor", "named"),
    [
        ("a", "b", 8, 0, True),
        ("a", "c", 195, 0, True),
        ("c 195:* r", "b", 195, 0, False),
        ("c 195:* r", "c", 195, 1048575, True),
        ("c 195:* r", "c", 196, 0, False),
        ("c *:3 r", "c", 1, 3, True),
        ("c *:3 r", "c", 1, 4, False),
        ("b 4095:1048575 m", "b", 4095, 1048575, True),
    ],
)
def test_which_devices_a_rule_names(rule, kind, major, minor, named):
    """Lost: a disk that "a" opens, or the last device of a driver."""
    assert parse(rule).names(kind, major, minor) is named


@pytest.mark.parametrize(
    ("one", "other", "holds"),
    [
        ("a", "b 8:0 rwm", True),
        ("c *:* rwm", "a", False),
        ("c 195:* rw", "c 195:0 r", True),
        ("c 195:* rw", "c 195:0 rwm", False),
        ("c 195:0 rw", "c 195:* r", False),
        ("c *:0 rw", "c 195:0 w", True),
        ("c 195:0 rw", "c 195:0 rw", True),
        ("b 195:0 rw", "c 195:0 rw", False),
    ],
)
def test_which_rules_a_rule_holds(one, other, holds):
    """Lost: a rule that goes because another one seems to say the same."""
    assert parse(one).holds(parse(other)) is holds


def test_questions_of_the_kernel():
    """open() asks reading and writing at once, mknod() by itself."""
    assert [questions(access) for access in ("r", "w", "rw", "m", "rwm", "rm", "")] == [
        [2],
        [4],
        [6],
        [1],
        [6, 1],
        [2, 1],
        [],
    ]


@pytest.mark.parametrize(
    "text",
    ["", "c", "c 195:0", "d 1:3 r", "c 195 rw", "c c3:0 rw", "c 195:0 x", "c 4096:0 r", "c 1:1048576 r", "c -1:0 r",
     "c 1:3 r\nc 1:5 r", "c \u0661:\u0663 r", None],
)  # fmt: skip
def test_what_is_no_rule_is_refused(text):
    """A typing error would open or close another device."""
    with pytest.raises(BadInput, match="c 195:0 rw"):
        parse(text)


@pytest.mark.parametrize("text", ["a 1:3 r", "a 195:* rwm", "a *:* r"])
def test_an_a_with_numbers_is_refused(text):
    """The kernel takes 'a 1:3 r' for all devices: a user who means one device would open everything."""
    with pytest.raises(BadInput, match="all devices"):
        parse(text)


def test_one_rule_must_cover_all_that_is_asked():
    """A cgroup would be said to open a device that the kernel denies: it adds up equal numbers only."""
    rules = merged([parse("c 1:3 r"), parse("c 1:3 w"), parse("c 5:* r"), parse("c 5:1 w")])
    assert covered(rules, "c", 1, 3, 6)
    assert not covered(rules, "c", 5, 1, 6)


def test_rules_within_others_are_not_needed():
    """The verifier refuses a program with an unreachable instruction."""
    rules = [parse(text) for text in ("c 195:* rw", "c 195:0 rw", "c 195:0 rwm", "a", "a")]
    assert needed(rules) == [EVERYTHING]
    assert needed(rules[:3]) == [parse("c 195:* rw"), parse("c 195:0 rwm")]


def test_our_programs_are_read_back():
    """A device that our own program closed could not be opened again without losing its other rules."""
    chance = random.Random(11)
    for _program in range(500):
        kind, rules, mark = chance.choice(("allow", "forbid")), random_rules(chance), chance.randbytes(8)
        assert read_rules(compile_rules(kind, rules, mark)) == (kind, needed(rules), mark)


#: What forbids "c 195:0 rw" and "b *:* m" for "ledger-7", since the first release.
RELEASED = """
b400000031467468 b4000000e020fa67 b4000000193ac8c6
6112000000000000 bc23000000000000 54020000ffff0000 7403000010000000 6114040000000000 6115080000000000
5502070002000000 55040600c3000000 5505050000000000
bc36000000000000 5406000006000000 1506020000000000 b400000000000000 9500000000000000
5502050001000000
bc36000000000000 5406000001000000 1506020000000000 b400000000000000 9500000000000000
b400000001000000 9500000000000000
"""


def test_programs_of_earlier_releases_stay_ours():
    """A container that was given its GPU before an upgrade could never be given another, or lose it."""
    rules = [parse("c 195:0 rw"), parse("b *:* m")]
    data = bytes.fromhex(RELEASED)
    assert read_rules(unpack(data)) == ("forbid", rules, mark_of("ledger-7"))
    assert pack(compile_rules("forbid", rules, mark_of("ledger-7"))) == data
    assert name_of("ledger-7") == "hetero_e020fa67"


SECRET = 0x5A5A1234


def blinded(instructions):
    """As a kernel with bpf_jit_harden shows them (bpf_jit_blind_insn in its kernel/bpf/core.c)."""
    for one in instructions:
        if one == mov(one.dst, 0):
            yield Instruction(ALU64 | X | 0xA0, one.dst, one.dst, 0, 0)
        elif one.kind in (ALU, JMP) and not one.code & X and one != EXIT:
            yield Instruction(ALU64 | 0xB0, AX, 0, 0, SECRET ^ one.imm)
            yield Instruction(ALU64 | 0xA0, AX, 0, 0, SECRET)
            yield one._replace(code=one.code | X, src=AX, imm=0)
        else:
            yield one


def test_our_programs_are_read_back_where_the_kernel_blinds_constants():
    """The same, on each kernel that is hardened."""
    chance = random.Random(13)
    for _program in range(200):
        kind, rules, mark = chance.choice(("allow", "forbid")), random_rules(chance), chance.randbytes(8)
        assert read_rules(list(blinded(compile_rules(kind, rules, mark)))) == (kind, needed(rules), mark)


def test_programs_of_others_are_not_taken_for_ours():
    """A foreign program would be replaced: LXC would lose its own and shut the container."""
    chance = random.Random(12)
    for _program in range(200):
        rules = random_rules(chance)
        for program in (
            device_programs.lxc(rules, 0),
            device_programs.systemd(rules),
            device_programs.scrambled(chance, 9, True),
        ):
            assert read_rules(program) is None
    ours = compile_rules("forbid", [parse("c 195:0 rw")], b"12345678")
    for at in range(len(ours)):
        if at not in (1, 2):  # the mark
            changed = [*ours[:at], ours[at]._replace(imm=ours[at].imm ^ 0x40, dst=ours[at].dst ^ 1), *ours[at + 1 :]]
            assert read_rules(changed) is None, at
        assert read_rules(ours[:at]) is None
