# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Device programs as others write them: LXC's, systemd's and runc's shapes, and random ones of every instruction that a
compiler may make.
"""

from __future__ import annotations

import random

from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.instructions import (
    ALU,
    ALU64,
    EXIT,
    JMP,
    JMP32,
    LD,
    LDX,
    ST,
    STX,
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
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.rules import KINDS

LXC_END = [[mov(0, 0), EXIT], [mov(0, 1), EXIT]]


def lxc(rules, default):
    """The question's fields in r2 to r5; `default` is the answer where no rule fits, each rule says the other one."""
    out = [load(2, 1, 0), both(2, 0xFFFF), load(3, 1, 0), right(3, 16), load(4, 1, 4), load(5, 1, 8)]
    for rule in rules:
        block = []
        if rule.access != "rwm":
            # (access & rule) != access: not this rule
            block += [copy(1, 3), both(1, rule.mask), ("unlike", 1, 3)]
        if rule.kind != "a":
            block.append(("not", 2, KINDS[rule.kind]))
        block += [("not", 4, rule.major)] * (rule.major is not None) + [("not", 5, rule.minor)] * (
            rule.minor is not None
        )
        length = len(block)
        for at, one in enumerate(block):
            skip = length - at - 1 + 2
            if one[0] == "unlike":
                block[at] = Instruction(JMP | X | 0x50, one[1], one[2], skip, 0)
            elif one[0] == "not":
                block[at] = unless(one[1], one[2], skip)
        out += block + LXC_END[not default]
        if not length:
            return out
    return out + LXC_END[default]


def systemd(rules):
    """An allow list whose blocks jump to one end, by 32-bit comparisons."""
    out = [
        Instruction(LDX | 0x60, 2, 1, 0, 0),
        Instruction(ALU | 0xB0 | X, 3, 2, 0, 0),
        Instruction(ALU | 0x50, 2, 0, 0, 0xFFFF),
        Instruction(ALU | 0x70, 3, 0, 0, 16),
        Instruction(LDX | 0x60, 4, 1, 4, 0),
        Instruction(LDX | 0x60, 5, 1, 8, 0),
    ]
    blocks = []
    for rule in rules:
        block = [Instruction(ALU | 0xB0 | X, 1, 3, 0, 0), Instruction(ALU | 0x50, 1, 0, 0, rule.mask)]
        block += [("x", 1, 3)] + [("k", 2, KINDS[kind]) for kind in rule.kinds if rule.kind != "a"]
        block += [("k", 4, rule.major)] * (rule.major is not None) + [("k", 5, rule.minor)] * (rule.minor is not None)
        block.append("exit")
        blocks.append(block)
    total = sum(map(len, blocks))
    done = 0
    for block in blocks:
        for at, one in enumerate(block):
            skip = len(block) - at - 1
            if one == "exit":  # to "return 1" behind "return 0"
                block[at] = Instruction(JMP, 0, 0, total - done - at - 1 + 2, 0)
            elif one[0] == "x":
                block[at] = Instruction(JMP | X | 0x50, one[1], one[2], skip, 0)
            elif one[0] == "k":
                block[at] = Instruction(JMP32 | 0x50, one[1], 0, skip, signed(one[2]))
        out += block
        done += len(block)
    return [*out, mov(0, 0), EXIT] + ([mov(0, 1), EXIT] if blocks else [])


def runc(rules, default):
    """The last rule first, 32-bit fields, byte by byte as its assembler does."""
    out = [
        Instruction(LDX | 0x60, 2, 1, 0, 0),
        Instruction(ALU | 0x50, 2, 0, 0, 0xFFFF),
        Instruction(LDX | 0x60, 3, 1, 0, 0),
        Instruction(ALU | 0x70, 3, 0, 0, 16),
        Instruction(LDX | 0x60, 4, 1, 4, 0),
        Instruction(LDX | 0x60, 5, 1, 8, 0),
    ]
    for rule in reversed(rules):
        block = [("k", 2, KINDS[kind]) for kind in rule.kinds if rule.kind != "a"]
        if rule.access != "rwm":
            block += [copy(1, 3), both(1, rule.mask), ("x", 1, 3)]
        block += [("k", 4, rule.major)] * (rule.major is not None) + [("k", 5, rule.minor)] * (rule.minor is not None)
        for at, one in enumerate(block):
            skip = len(block) - at - 1 + 2
            if one[0] == "x":
                block[at] = Instruction(JMP | X | 0x50, one[1], one[2], skip, 0)
            elif one[0] == "k":
                block[at] = unless(one[1], one[2], skip)
        out += [*block, Instruction(ALU64 | 0xB0, 0, 0, 0, int(not default)), EXIT]
        if not block:
            return out
    return [*out, Instruction(ALU64 | 0xB0, 0, 0, 0, int(default)), EXIT]


OPERATIONS = (0x00, 0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0x90, 0xA0, 0xC0)
SHIFTS, DIVISIONS = (0x60, 0x70, 0xC0), (0x30, 0x90)
JUMPS = (0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0xA0, 0xB0, 0xC0, 0xD0)
SIZES = {0x00: 4, 0x08: 2, 0x10: 1, 0x18: 8}
NUMBERS = (0, 1, 2, 3, 5, 7, 8, 16, 195, 255, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, -1, -2, -128, -195, -0x80000000)


def scrambled(chance: random.Random, length, newest):
    """A random program over the question: arithmetic, jumps, stack.

    :param newest: use what Linux 6.6 added (signed division, sign-extending moves and loads, bswap, long jumps).
    """
    out = [load(2, 1, 0), load(3, 1, 4), load(4, 1, 8)]
    out.append(Instruction(LDX | chance.choice((0x08, 0x10)) | 0x60, 5, 1, chance.choice((0, 2)), 0))
    for register in (6, 7, 8, 9):
        low, high = (signed(chance.getrandbits(32)) for _half in range(2))
        out += [Instruction(LD | 0x18, register, 0, 0, low), Instruction(0, 0, 0, 0, high)]
    for slot in range(4):
        out.append(Instruction(STX | 0x18 | 0x60, 10, 6 + slot, -8 * (slot + 1), 0))
    for _at in range(length):
        ops = [_operation(chance, newest) for _op in range(chance.randint(1, 3))]
        if chance.random() < 0.4:
            kind, source = chance.choice((JMP, JMP32)), chance.choice((0, X))
            number = 0 if source else chance.choice(NUMBERS)
            register = chance.randint(2, 9) if source else 0
            skip = sum(map(len, ops))
            out.append(Instruction(kind | source | chance.choice(JUMPS), chance.randint(2, 9), register, skip, number))
        for one in ops:
            out += one
    out.append(Instruction(ALU64 | X | 0xB0, 0, chance.randint(2, 9), 0, 0))
    out.append(Instruction(ALU64 | 0x70, 0, 0, 0, chance.randint(0, 20)))
    out.append(Instruction(ALU64 | 0x50, 0, 0, 0, 1))
    return [*out, EXIT]


def _operation(chance, newest):
    """One instruction, or an immediate's two."""
    dst, src = chance.randint(2, 9), chance.randint(2, 9)
    kind, bits = chance.choice(((ALU, 32), (ALU64, 64)))
    what = chance.random()
    if what < 0.55:
        operation, source = chance.choice(OPERATIONS), chance.choice((0, X))
        number = 0 if source else chance.choice(NUMBERS)
        if not source and operation in SHIFTS:
            number = chance.randrange(bits)
        if not source and operation in DIVISIONS:
            number = number or 3
        off = int(newest and operation in DIVISIONS and chance.random() < 0.5)
        return [Instruction(kind | source | operation, dst, src if source else 0, off, number)]
    if what < 0.62:
        off = chance.choice((0, 8, 16) + ((32,) if bits == 64 else ())) if newest else 0
        return [Instruction(kind | X | 0xB0, dst, src, off, 0)]
    if what < 0.68:
        return [Instruction(kind | 0x80, dst, 0, 0, 0)]
    if what < 0.74:
        turned = newest and chance.random() < 0.4
        return [
            Instruction(
                (ALU64 if turned else ALU | chance.choice((0, X))) | 0xD0, dst, 0, 0, chance.choice((16, 32, 64))
            )
        ]
    if what < 0.78:
        return [Instruction(kind | 0xB0, dst, 0, 0, chance.choice(NUMBERS))]
    if what < 0.80:
        return [Instruction(JMP, 0, 0, 0, 0) if not newest or chance.random() < 0.5 else Instruction(JMP32, 0, 0, 0, 0)]
    size = chance.choice(list(SIZES))
    at = -chance.randint(1, 32 // SIZES[size]) * SIZES[size]
    if what < 0.87:
        return [Instruction(STX | size | 0x60, 10, src, at, 0)]
    if what < 0.92:
        return [Instruction(ST | size | 0x60, 10, 0, at, chance.choice(NUMBERS))]
    extended = newest and size != 0x18 and chance.random() < 0.5
    return [Instruction(LDX | size | (0x80 if extended else 0x60), dst, 10, at, 0)]
