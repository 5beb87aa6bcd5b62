# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of our own: what they answer, and what they are called. How they are read back is in test_rules.py."""

from __future__ import annotations

import itertools

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.evaluation import allows
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.instructions import (
    ALU,
    AX,
    EXIT,
    Instruction,
    X,
    pack,
    unpack,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.program import (
    compile_rules,
    mark_of,
    name_of,
    read_rules,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.rule_changes import OWNER
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.rules import (
    EVERYTHING,
    covered,
    parse,
)

#: What allows "c 195:0 rw", "b *:* m" and "c *:3 rwm" for "cgroup_devices exact", since the first release.
ALLOWING = """
b400000031417468 b40000005dd00084 b4000000f701127d
6112000000000000 bc23000000000000 54020000ffff0000 7403000010000000 6114040000000000 6115080000000000
5502070002000000 55040600c3000000 5505050000000000
bc36000000000000 54060000f9ffffff 5506020000000000 b400000001000000 9500000000000000
5502050001000000
bc36000000000000 54060000feffffff 5506020000000000 b400000001000000 9500000000000000
5502030002000000 5505020003000000 b400000001000000 9500000000000000
b400000000000000 9500000000000000
"""


def test_exact_programs_of_earlier_releases_stay_ours():
    """Lost: another device, to a container that was made exact before an upgrade."""
    rules = [parse("c 195:0 rw"), parse("b *:* m"), parse("c *:3 rwm")]
    mark = mark_of("cgroup_devices exact")
    assert pack(compile_rules("allow", rules, mark)) == bytes.fromhex(ALLOWING)
    assert read_rules(unpack(bytes.fromhex(ALLOWING))) == ("allow", rules, mark)


def test_programs_are_found_again_by_the_name_they_have_had():
    """Lost: each program of the release before: its device stays closed for ever."""
    assert name_of(OWNER) == "hetero_0576e5ca"
    assert name_of(f"{OWNER} exact") == "hetero_5dd00084"
    assert mark_of(OWNER).hex().startswith("0576e5ca")
    assert len(mark_of(OWNER)) == 8


@pytest.mark.parametrize(
    "texts",
    [
        ["c 195:0 r", "c 195:1 rw", "b 8:* m", "c *:3 rwm"],
        ["c 195:0 rw", "c 195:0 m", "c 1:3 w"],
        ["c *:* m", "b *:* r"],
        ["c 195:* wm", "a"],
        [],
    ],
)
def test_what_they_answer_to_each_question(texts):
    """Lost: a device that is forbidden and opens, or one of those beside it."""
    rules = [parse(text) for text in texts]
    devices = itertools.product("bc", (1, 8, 195), (0, 1, 3))
    for (kind, major, minor), bits in itertools.product(devices, (1, 2, 4, 6)):
        named = [rule.mask & bits for rule in rules if rule.names(kind, major, minor)]
        question = kind, major, minor, bits
        assert allows(compile_rules("allow", rules, bytes(8)), *question) is covered(
            compiled(rules), kind, major, minor, bits
        ), question
        assert allows(compile_rules("forbid", rules, bytes(8)), *question) is not any(named), question


def compiled(rules):
    """The rules as an own program has them: of equal numbers one."""
    return read_rules(compile_rules("allow", rules, bytes(8))).rules


@pytest.mark.parametrize("kind", ["allow", "forbid"])
def test_everything_ends_a_program(kind):
    """Lost: "allow a", the way back from any mistake: the verifier refuses what nothing can reach."""
    program = compile_rules(kind, [parse("c 195:0 rw"), EVERYTHING], bytes(8))
    assert len(program) == 9 + 2
    assert read_rules(program).rules == [EVERYTHING]


def test_constants_are_blinded_by_operations_of_either_width():
    """Lost: our own programs, on each kernel with bpf_jit_harden: Linux blinds 32-bit operations by 32-bit ones."""
    ours = compile_rules("forbid", [parse("c 195:0 rw")], mark_of("ledger-7"))
    out = []
    for one in ours:
        if one.kind == ALU and not one.code & X and one.imm:
            out.append(Instruction(ALU | 0xB0, AX, 0, 0, 0x1234567 ^ one.imm))
            out += [Instruction(ALU | 0xA0, AX, 0, 0, 0x1234567), one._replace(code=one.code | X, src=AX, imm=0)]
        else:
            out.append(one)
    assert len(out) > len(ours) + 8
    assert read_rules(out) == ("forbid", [parse("c 195:0 rw")], mark_of("ledger-7"))


def test_a_program_that_only_begins_like_a_blinded_one_is_nobodys():
    """Lost: an answer about a foreign program that ends early, or that has a register for itself."""
    ax = Instruction(ALU | 0xB0, AX, 0, 0, 5)
    for program in ([], [ax], [ax, ax], [ax, ax, EXIT], [EXIT]):
        assert read_rules(program) is None
