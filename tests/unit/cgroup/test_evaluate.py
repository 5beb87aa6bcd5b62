# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Device programs carried out instruction by instruction. If these fail, a container is told to be closed that is open.

Beside the kernel on random programs: test_parity.py.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils.cgroup import evaluate
from ansible_collections.hetero.compute.plugins.module_utils.cgroup.instructions import (
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
    load,
    mov,
)

WORD, HALF, BYTE, DOUBLE = 0x00, 0x08, 0x10, 0x18
MEM, MEMSX = 0x60, 0x80
ADD, SUB, MUL, DIV, OR, AND, LSH, RSH, NEG, MOD, XOR, MOV, ARSH, END = range(0x00, 0xE0, 0x10)


def answer(*instructions, compared=None):
    """r0 for opening c 195:7 for reading and writing."""
    return evaluate.Run([*instructions, EXIT], "c", 195, 7, 6, "its program", compared).answer()


def alu64(operation, dst, imm, off=0):
    return Instruction(ALU64 | operation, dst, 0, off, imm)


def alu64_by(operation, dst, src, off=0):
    return Instruction(ALU64 | X | operation, dst, src, off, 0)


def stored(value, at=-8, size=DOUBLE):
    return Instruction(ST | MEM | size, 10, 0, at, value)


def loaded(dst, at=-8, size=DOUBLE, mode=MEM, src=10):
    return Instruction(LDX | mode | size, dst, src, at, 0)


def test_the_question():
    """The kernel's words: access and kind, major, minor."""
    assert [answer(load(0, 1, off)) for off in (0, 4, 8)] == [6 << 16 | 2, 195, 7]
    assert answer(loaded(0, 2, HALF, src=1)) == 6
    assert answer(loaded(0, 4, BYTE, src=1)) == 195


@pytest.mark.parametrize(
    ("operation", "a", "b", "result"),
    [
        (ADD, 7, 5, 12),
        (SUB, 7, 5, 2),
        (MUL, 7, 5, 35),
        (DIV, 17, 5, 3),
        (DIV, 17, 0, 0),
        (MOD, 17, 5, 2),
        (MOD, 17, 0, 17),
        (OR, 6, 9, 15),
        (AND, 6, 12, 4),
        (XOR, 6, 12, 10),
        (LSH, 3, 4, 48),
        (LSH, 3, 65, 6),
        (RSH, 48, 4, 3),
        (ARSH, -16, 2, 0xFFFFFFFC),
        (MOV, 3, 9, 9),
    ],
)
def test_arithmetic(operation, a, b, result):
    """Of a constant and of a register, the same."""
    assert answer(alu64(MOV, 0, a), alu64(operation, 0, b)) == result
    assert answer(alu64(MOV, 0, a), alu64(MOV, 2, b), alu64_by(operation, 0, 2)) == result


@pytest.mark.parametrize(
    ("a", "b", "quotient", "rest"),
    [(17, 5, 3, 2), (-17, 5, -3, -2), (17, -5, -3, 2), (-17, -5, 3, -2), (-17, 0, 0, -17)],
)
def test_division_with_signs(a, b, quotient, rest):
    """Linux 6.6 on: toward zero, the rest with the sign of what is divided."""
    assert answer(alu64(MOV, 0, a), alu64(DIV, 0, b, 1)) == quotient & 0xFFFFFFFF
    assert answer(alu64(MOV, 0, a), alu64(MOD, 0, b, 1)) == rest & 0xFFFFFFFF


def test_halves_of_registers():
    """A 32-bit operation clears the upper half; a 64-bit one does not."""
    high = alu64(MOV, 2, -1), alu64(RSH, 2, 32), alu64_by(MOV, 0, 2)
    assert answer(*high) == 0xFFFFFFFF
    assert answer(mov(2, -1), alu64(RSH, 2, 32), alu64_by(MOV, 0, 2)) == 0
    assert answer(mov(0, 5), alu64(NEG, 0, 0)) == (-5) & 0xFFFFFFFF


def test_moves_that_extend_a_sign():
    for off, number, result in ((8, 0x1FF, -1), (16, 0x18000, -0x8000), (32, 0x7FFFFFFF, 0x7FFFFFFF)):
        assert answer(alu64(MOV, 2, number), alu64_by(MOV, 0, 2, off)) == result & 0xFFFFFFFF


@pytest.mark.parametrize(
    ("instruction", "result"),
    [
        (Instruction(ALU | END, 0, 0, 0, 16), 0x5678),
        (Instruction(ALU | END, 0, 0, 0, 32), 0x12345678),
        (Instruction(ALU | X | END, 0, 0, 0, 16), 0x7856),
        (Instruction(ALU | X | END, 0, 0, 0, 32), 0x78563412),
        (Instruction(ALU64 | END, 0, 0, 0, 16), 0x7856),
        (Instruction(ALU64 | END, 0, 0, 0, 32), 0x78563412),
    ],
)
def test_byte_order(instruction, result):
    assert answer(mov(0, 0x12345678), instruction) == result


def test_pointers_are_moved_by_known_distances():
    """How compilers reach a field: copy the pointer, add to it, load."""
    assert answer(alu64_by(MOV, 2, 1), alu64(ADD, 2, 4), load(0, 2, 0)) == 195
    assert answer(alu64_by(MOV, 2, 1), alu64(ADD, 2, 8), alu64(SUB, 2, 4), load(0, 2, 0)) == 195
    assert answer(alu64_by(MOV, 2, 1), alu64(MOV, 3, 8), alu64_by(ADD, 2, 3), load(0, 2, 0)) == 7
    assert answer(alu64_by(MOV, 2, 10), alu64(ADD, 2, -16), stored(3, -16), loaded(0, 0, src=2)) == 3


def test_the_stack():
    """Numbers by their bytes, pointers whole."""
    assert answer(stored(0x1234), loaded(0)) == 0x1234
    assert answer(stored(0x1234), loaded(0, -8, BYTE)) == 0x34
    assert answer(stored(0x1234), stored(0xAB, -7, BYTE), loaded(0, -8, HALF)) == 0xAB34
    assert answer(stored(0x80, -1, BYTE), loaded(0, -1, BYTE, MEMSX)) == 0xFFFFFF80
    kept = Instruction(STX | MEM | DOUBLE, 10, 1, -8, 0)
    assert answer(kept, loaded(2), load(0, 2, 4)) == 195
    assert answer(kept, stored(5), loaded(0)) == 5
    assert answer(stored(9, -512), loaded(0, -512)) == 9


def test_a_constant_of_two_words():
    wide = Instruction(LD | DOUBLE, 0, 0, 0, 5), Instruction(0, 0, 0, 0, 2)
    assert answer(*wide) == 5
    assert answer(*wide, alu64(RSH, 0, 32)) == 2


@pytest.mark.parametrize(
    ("condition", "a", "b", "taken"),
    [
        *[(0x10, 3, 3, True), (0x10, 3, 4, False), (0x50, 3, 4, True), (0x50, 3, 3, False)],
        *[(0x20, 4, 3, True), (0x20, 3, 3, False), (0x30, 3, 3, True), (0x30, 2, 3, False)],
        *[(0xA0, 2, 3, True), (0xA0, 3, 3, False), (0xB0, 3, 3, True), (0xB0, 4, 3, False)],
        *[(0x40, 6, 2, True), (0x40, 4, 2, False), (0x20, -1, 3, True), (0x60, -1, 3, False)],
        *[(0x60, 4, -3, True), (0x60, 3, 3, False), (0x70, 3, 3, True), (0x70, -4, 3, False)],
        *[(0xC0, -1, 3, True), (0xC0, 3, 3, False), (0xD0, 3, 3, True), (0xD0, 4, 3, False)],
    ],
)
@pytest.mark.parametrize("kind", [JMP, JMP32])
def test_jumps(kind, condition, a, b, taken):
    """A comparison that is off by one opens a minor number too many."""
    ahead = [mov(0, 1), EXIT, mov(0, 2)]
    assert answer(alu64(MOV, 2, a), Instruction(kind | condition, 2, 0, 2, b), *ahead) == (2 if taken else 1)
    by = alu64(MOV, 2, a), alu64(MOV, 3, b), Instruction(kind | X | condition, 2, 3, 2, 0)
    assert answer(*by, *ahead) == (2 if taken else 1)


def test_jumps_without_a_condition():
    skipped = [mov(0, 1), EXIT, mov(0, 2)]
    assert answer(Instruction(JMP, 0, 0, 2, 0), *skipped) == 2
    assert answer(Instruction(JMP32, 0, 0, 0, 2), *skipped) == 2


def test_numbers_that_the_answer_hangs_on():
    """Where the rule `195:*` is judged by a few numbers, one that is left out is a device left out."""
    compared = set()
    answer(load(2, 1, 4), Instruction(JMP | 0x10, 2, 0, 0, 200), mov(0, 1), compared=compared)
    assert compared == {200}
    compared = set()
    answer(load(2, 1, 4), Instruction(JMP | 0x20, 2, 0, 0, 200), mov(0, 1), compared=compared)
    assert compared == {199, 200, 201}


@pytest.mark.parametrize(
    ("instructions", "why"),
    [
        ([mov(0, 1), Instruction(JMP, 0, 0, 5, 0)], "runs out of its instructions"),
        ([Instruction(JMP, 0, 0, -1, 0)], "takes more than 1000 steps"),
        ([], "r0 holds nothing"),
        ([alu64_by(MOV, 0, 1)], "r0 holds a pointer"),
        ([alu64_by(MOV, 2, 1), alu64(MUL, 2, 4)], "code 0x27"),
        ([alu64_by(MOV, 2, 1), Instruction(ALU | ADD, 2, 0, 0, 4)], "code 0x04"),
        ([mov(2, 1), alu64(ADD, 2, 4, 3)], "code 0x07, registers 2 and 0, off 3, imm 4"),
        ([mov(2, 1), alu64(END, 2, 24)], "code 0xd7"),
        ([mov(2, 1), load(0, 2, 0)], "r2 is no pointer"),
        ([load(0, 1, 9)], "beyond the question"),
        ([load(0, 1, -1)], "beyond the question"),
        ([loaded(0, 0)], "beyond the stack"),
        ([stored(1, -520)], "beyond the stack"),
        ([loaded(0)], "stack that it has not written"),
        ([stored(1, -8, WORD), loaded(0)], "stack that it has not written"),
        ([Instruction(ST | MEM | WORD, 1, 0, 4, 0)], "writes into the question"),
        ([Instruction(STX | MEM | WORD, 10, 1, -8, 0)], "stores what is no number"),
        ([Instruction(STX | MEM | DOUBLE, 10, 1, -8, 0), stored(1, -4, BYTE), loaded(0)], "has not written"),
        ([Instruction(JMP | 0x80, 0, 0, 0, 14)], r"calls the kernel \(function 14\)"),
        ([Instruction(JMP32 | 0x80, 0, 0, 0, 14)], "code 0x86"),
        ([loaded(0, mode=0xE0)], "code 0xf9"),
        ([stored(1), loaded(0, mode=MEMSX)], "code 0x99"),
        ([mov(2, 1), alu64_by(MOV, 3, 2, 4)], "code 0xbf, registers 3 and 2, off 4"),
        ([mov(2, 1), Instruction(ALU | X | MOV, 3, 2, 32, 0)], "code 0xbc, registers 3 and 2, off 32"),
    ],
)
def test_what_only_the_kernel_can_tell(monkeypatch, instructions, why):
    """A guess would be told as proof."""
    monkeypatch.setattr(evaluate, "STEPS", 1000)
    with pytest.raises(evaluate.CannotTell, match=why):
        answer(*instructions)


def test_a_program_without_an_end_is_given_up():
    """Lost: a minute for each number that is asked about; Linux follows no program for more than a million steps."""
    with pytest.raises(evaluate.CannotTell, match="it takes more than 1000000 steps"):
        answer(Instruction(JMP, 0, 0, -1, 0))
