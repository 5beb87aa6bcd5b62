# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Device rules as a BPF program of our own, and such a program read back as its rules.

Two kinds: one that allows its rules and nothing else, one that forbids its rules and nothing else. Each begins with a
mark that tells it from everybody else's programs, and whose it is. Loading is bpf's, reading anybody's is evaluate's.
"""

from __future__ import annotations

import hashlib
from typing import List, NamedTuple

from .instructions import ALU, ALU64, AX, EXIT, JMP, Instruction, X, both, copy, load, mov, right, signed, unless
from .rules import KINDS, Rule, letters, needed

PREFIX = "hetero_"
#: First words of our programs: they are moved to r0, where they do nothing.
MARKS = {"allow": 0x68744131, "forbid": 0x68744631}
NAMES = 4  # bytes of the owner's name that the program's name shows: a name has 15 characters at most

# registers that hold the question
TYPE, ACCESS, MAJOR, MINOR, REST = 2, 3, 4, 5, 6


class Own(NamedTuple):
    """A program of ours, read back."""

    kind: str
    rules: List[Rule]


def name_of(owner):
    """How the program of `owner` (a ledger id: any text) is called in the kernel."""
    return PREFIX + hashlib.sha256(owner.encode()).digest()[:NAMES].hex()


def _mark(kind, owner):
    digest = hashlib.sha256(owner.encode()).digest()
    return [MARKS[kind], *(int.from_bytes(digest[at : at + 4], "little") for at in (0, 4))]


def compile_rules(kind, rules, owner):
    """Instructions of a program that allows ("allow") only these, or forbids ("forbid") only these."""
    out = [mov(0, word) for word in _mark(kind, owner)]
    # struct bpf_cgroup_dev_ctx: access << 16 | type, major, minor
    out += [load(TYPE, 1, 0), copy(ACCESS, TYPE), both(TYPE, 0xFFFF), right(ACCESS, 16)]
    out += [load(MAJOR, 1, 4), load(MINOR, 1, 8)]
    allowing = kind == "allow"
    for rule in needed(rules):
        conditions = []
        if rule.kind != "a":
            conditions.append((TYPE, KINDS[rule.kind]))
        conditions += [(MAJOR, rule.major)] * (rule.major is not None)
        conditions += [(MINOR, rule.minor)] * (rule.minor is not None)
        if rule.access == "rwm":
            asked = []
        elif allowing:
            asked = [copy(REST, ACCESS), both(REST, ~rule.mask), unless(REST, 0, 2)]
        else:
            # "jset, skip one" would say it in fewer instructions; this has one shape for both kinds
            asked = [copy(REST, ACCESS), both(REST, rule.mask), Instruction(JMP | 0x10, REST, 0, 2, 0)]
        length = len(conditions) + len(asked) + 2
        out += [unless(register, number, length - at - 1) for at, (register, number) in enumerate(conditions)]
        out += [*asked, mov(0, int(allowing)), EXIT]
        if length == 2:
            return out  # the verifier refuses what nothing can reach
    return [*out, mov(0, int(not allowing)), EXIT]


def read_rules(instructions, owner=None):
    """What a program of ours says, or None for anybody else's; of that owner's only, where one is given.

    Trusted only where compiling what was read gives the same program again.
    """
    plain = _unblinded(instructions)
    words = [one.imm & 0xFFFFFFFF for one in plain[:3]]
    for kind, mark in MARKS.items():
        if len(plain) < 5 or words[0] != mark:
            continue
        if owner is not None and words != _mark(kind, owner):
            return None
        rules = _rules(kind, plain[9:])
        again = compile_rules(kind, rules, owner or "")[3:]
        if [one._replace(off=0) for one in again] == [one._replace(off=0) for one in plain[3:]]:
            return Own(kind, rules)
    return None


def _rules(kind, instructions):
    found, where, bits = [], {}, None
    for at, one in enumerate(instructions):
        if one.code == JMP | 0x50 and one.dst in (TYPE, MAJOR, MINOR):
            where[one.dst] = one.imm
        elif one.code == ALU | 0x50 and one.dst == REST:
            bits = ~one.imm if kind == "allow" else one.imm
        elif one == EXIT:
            last = at == len(instructions) - 1
            answer = instructions[at - 1].imm
            if not (last and answer == int(kind != "allow")):
                letter = {number: name for name, number in KINDS.items()}.get(where.get(TYPE), "a")
                access = "rwm" if bits is None else letters(bits & 7)
                found.append(Rule(letter, where.get(MAJOR), where.get(MINOR), access))
            where, bits = {}, None
    return found


def _unblinded(instructions):
    """The instructions without the blinding of constants (bpf_jit_harden): ax = K1; ax ^= K2; op X with ax."""
    out, at = [], 0
    while at < len(instructions):
        one = instructions[at]
        three = instructions[at : at + 3]
        blinds = len(three) == 3 and all(part.dst == AX and not part.code & X for part in three[:2])
        if blinds and three[0].kind in (ALU, ALU64) and three[2].src == AX:
            one = three[2]
            number = signed(three[0].imm ^ three[1].imm)
            one = one._replace(code=one.code & ~X, src=0, imm=number)
            at += 2
        out.append(one)
        at += 1
    return out
