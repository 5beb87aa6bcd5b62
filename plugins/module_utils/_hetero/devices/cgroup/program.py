# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Device rules as a BPF program of the collection's own, and such a program read back as rules.

There are two kinds: one allows only its rules, the other denies only its rules. Each begins with a mark that tells it
from others' programs and names its owner. bpf.py loads programs, and evaluation.py understands those of others.
"""

from __future__ import annotations

import hashlib
from typing import Iterable, List, NamedTuple, Sequence, cast

from .instructions import (
    ALU,
    ALU64,
    AND,
    AX,
    EXIT,
    JMP,
    UNLESS,
    Instruction,
    X,
    both,
    copy,
    load,
    mov,
    right,
    signed,
    unless,
)
from .rules import KINDS, Rule, letters, needed

PREFIX = "hetero_"
#: First words of the collection's programs. They are moved to r0, where they have no effect.
MARKS = {"allow": 0x68744131, "forbid": 0x68744631}
NAMES = 4  # bytes of the owner's mark that the program's name shows: a name has 15 characters at most

# registers that hold the question
TYPE, ACCESS, MAJOR, MINOR, REST = 2, 3, 4, 5, 6


class Own(NamedTuple):
    """A program of the collection, read back.

    :param kind: "allow" (allows only its rules) or "forbid" (denies only its rules).
    :param mark: mark_of its owner.
    """

    kind: str
    rules: List[Rule]
    mark: bytes


def name_of(owner: str) -> str:
    """Return the kernel's name for the program of `owner` (any text)."""
    return PREFIX + mark_of(owner)[:NAMES].hex()


def mark_of(owner: str) -> bytes:
    """Return the eight bytes by which a program names its owner."""
    return hashlib.sha256(owner.encode()).digest()[:8]


def compile_rules(kind: str, rules: Iterable[Rule], mark: bytes) -> list[Instruction]:
    """Return the instructions of a program that allows only these rules ("allow"), or denies only these ("forbid")."""
    words = (MARKS[kind], *(int.from_bytes(mark[at : at + 4], "little") for at in (0, 4)))
    out = [mov(0, word) for word in words]
    # struct bpf_cgroup_dev_ctx: access << 16 | type, major, minor
    out += [load(TYPE, 1, 0), copy(ACCESS, TYPE), both(TYPE, 0xFFFF), right(ACCESS, 16)]
    out += [load(MAJOR, 1, 4), load(MINOR, 1, 8)]
    allowing = kind == "allow"
    for rule in needed(rules):
        conditions: list[tuple[int, int]] = []
        if rule.kind != "a":
            conditions.append((TYPE, KINDS[rule.kind]))
        conditions += [(MAJOR, cast("int", rule.major))] * (rule.major is not None)
        conditions += [(MINOR, cast("int", rule.minor))] * (rule.minor is not None)
        if rule.access == "rwm":
            asked = []
        elif allowing:
            asked = [copy(REST, ACCESS), both(REST, ~rule.mask), unless(REST, 0, 2)]
        else:
            # "jset, skip one" would need fewer instructions; this form serves both kinds
            asked = [copy(REST, ACCESS), both(REST, rule.mask), Instruction(JMP | 0x10, REST, 0, 2, 0)]
        length = len(conditions) + len(asked) + 2
        out += [unless(register, number, length - at - 1) for at, (register, number) in enumerate(conditions)]
        out += [*asked, mov(0, int(allowing)), EXIT]
        if length == 2:
            return out  # the verifier refuses instructions that are never reached
    return [*out, mov(0, int(not allowing)), EXIT]


def read_rules(instructions: Sequence[Instruction]) -> Own | None:
    """Return what a program of the collection says, or None for a program of others.

    It is the collection's if compiling the rules that were read gives the same program.
    """
    plain = _unblinded(instructions)
    words = [one.imm & 0xFFFFFFFF for one in plain[:3]]
    for kind, first in MARKS.items():
        if words and words[0] == first:
            mark = b"".join(word.to_bytes(4, "little") for word in words[1:])
            rules = _rules(kind, plain[9:])
            again = compile_rules(kind, rules, mark)
            # blinding makes programs longer, and so their jumps
            if [one._replace(off=0) for one in again] == [one._replace(off=0) for one in plain]:
                return Own(kind, rules, mark)
    return None


def _rules(kind: str, instructions: Iterable[Instruction]) -> list[Rule]:
    """Return the rules of a program's main part. Each rule ends with an exit, and so does the answer to all else."""
    kinds = {number: name for name, number in KINDS.items()}
    found, numbers, bits, answer = [], {}, 7, None
    for one in instructions:
        if one.code == UNLESS and one.dst in (TYPE, MAJOR, MINOR):
            numbers[one.dst] = one.imm
        elif one.code == AND and one.dst == REST:
            bits = (~one.imm if kind == "allow" else one.imm) & 7
        elif one == EXIT:
            if answer == int(kind == "allow"):
                kind_named = kinds[numbers[TYPE]] if TYPE in numbers else "a"
                found.append(Rule(kind_named, numbers.get(MAJOR), numbers.get(MINOR), letters(bits)))
            numbers, bits = {}, 7
        answer = one.imm
    return found


def _of_scratch(one: Instruction) -> bool:
    """Return whether an instruction sets the scratch register of blinding to a constant, or changes it by one."""
    return one.dst == AX and one.kind in (ALU, ALU64) and not one.code & X


def _unblinded(instructions: Sequence[Instruction]) -> list[Instruction]:
    """Return the instructions without the blinding of constants (bpf_jit_harden).

    Blinding writes: ax = K1; ax ^= K2; operation with ax. It writes a zero as r ^= r.
    """
    out, at = [], 0
    while at < len(instructions):
        one = instructions[at]
        three = instructions[at : at + 3]
        if len(three) == 3 and three[2].src == AX and all(_of_scratch(part) for part in three[:2]):
            one = three[2]
            number = signed(three[0].imm ^ three[1].imm)
            one = one._replace(code=one.code & ~X, src=0, imm=number)
            at += 2
        elif one.code == ALU64 | X | 0xA0 and one.src == one.dst:
            one = mov(one.dst, 0)
        out.append(one)
        at += 1
    return out
