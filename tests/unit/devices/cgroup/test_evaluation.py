# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Device programs carried out instruction by instruction. If these fail, a container is told to be closed that is open.

Beside the kernel on random programs: test_parity.py.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup import evaluation
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
    load,
    mov,
)

WORD, HALF, BYTE, DOUBLE = 0x00, 0x08, 0x10, 0x18
MEM, MEMSX = 0x60, 0x80
ADD, SUB, MUL, DIV, OR, AND, LSH, RSH, NEG, MOD, XOR, MOV, ARSH, END = range(0x00, 0xE0, 0x10)


def answer(*instructions, compared=None):
    """r0 for opening c 195:7 for reading and writing."""
    return evaluation.Run([*instructions, EXIT], "c", 195, 7, 6, "its program", compared).answer()


def upper(*instructions):
    """The upper half of r0."""
    return answer(*instructions, Instruction(ALU64 | RSH, 0, 0, 0, 32))


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
        (LSH, 1, 31, 0x80000000),
        (RSH, 48, 4, 3),
        (ARSH, -16, 2, 0xFFFFFFFC),
        (MOV, 3, 9, 9),
    ],
)
@pytest.mark.parametrize("kind", [ALU, ALU64])
def test_arithmetic(kind, operation, a, b, result):
    """Of a constant and of a register, the same."""
    assert answer(alu64(MOV, 0, a), Instruction(kind | operation, 0, 0, 0, b)) == result
    by = Instruction(kind | X | operation, 0, 2, 0, 0)
    assert answer(alu64(MOV, 0, a), alu64(MOV, 2, b), by) == result


@pytest.mark.parametrize(
    ("a", "b", "quotient", "rest"),
    [(17, 5, 3, 2), (-17, 5, -3, -2), (17, -5, -3, 2), (-17, -5, 3, -2), (-17, 0, 0, -17)],
)
@pytest.mark.parametrize("kind", [ALU, ALU64])
def test_division_with_signs(kind, a, b, quotient, rest):
    """Linux 6.6 on: toward zero, the rest with the sign of what is divided."""
    assert answer(alu64(MOV, 0, a), Instruction(kind | DIV, 0, 0, 1, b)) == quotient & 0xFFFFFFFF
    assert answer(alu64(MOV, 0, a), Instruction(kind | MOD, 0, 0, 1, b)) == rest & 0xFFFFFFFF


def test_halves_of_registers():
    """A 32-bit operation clears the upper half; a 64-bit one does not."""
    high = alu64(MOV, 2, -1), alu64(RSH, 2, 32), alu64_by(MOV, 0, 2)
    assert answer(*high) == 0xFFFFFFFF
    assert answer(mov(2, -1), alu64(RSH, 2, 32), alu64_by(MOV, 0, 2)) == 0
    assert answer(mov(0, 5), alu64(NEG, 0, 0)) == (-5) & 0xFFFFFFFF
    assert upper(mov(0, 5), alu64(NEG, 0, 0)) == 0xFFFFFFFF
    assert upper(mov(0, 5), Instruction(ALU | NEG, 0, 0, 0, 0)) == 0
    assert upper(alu64(MOV, 0, -1), Instruction(ALU | ADD, 0, 0, 0, 5)) == 0
    assert upper(alu64(MOV, 0, -1), alu64(ADD, 0, -5)) == 0xFFFFFFFF
    assert upper(alu64(MOV, 0, 1), alu64(LSH, 0, 63)) == 0x80000000
    assert upper(alu64(MOV, 0, -16), alu64(ARSH, 0, 2)) == 0xFFFFFFFF
    assert upper(alu64(MOV, 0, -16), alu64(DIV, 0, 2, 1)) == 0xFFFFFFFF


def test_moves_that_extend_a_sign():
    for off, number, result in ((8, 0x1FF, -1), (16, 0x18000, -0x8000), (32, 0x7FFFFFFF, 0x7FFFFFFF)):
        assert answer(alu64(MOV, 2, number), alu64_by(MOV, 0, 2, off)) == result & 0xFFFFFFFF
        assert upper(alu64(MOV, 2, number), alu64_by(MOV, 0, 2, off)) == (result >> 32) & 0xFFFFFFFF
        if off < 32:
            narrow = alu64(MOV, 2, number), Instruction(ALU | X | MOV, 0, 2, off, 0)
            assert (answer(*narrow), upper(*narrow)) == (result & 0xFFFFFFFF, 0)
    assert upper(mov(2, -2), alu64_by(MOV, 0, 2, 32)) == 0xFFFFFFFF
    assert upper(mov(2, -2), alu64_by(MOV, 0, 2)) == 0


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


def test_byte_order_of_a_whole_register():
    """Lost: what a program of a machine with the other byte order answers."""
    number = mov(0, 0x12345678), alu64(MOV, 2, 5), alu64(LSH, 2, 32), alu64_by(OR, 0, 2)
    for turn, low, high in (
        (Instruction(ALU | END, 0, 0, 0, 64), 0x12345678, 5),
        (Instruction(ALU | END, 0, 0, 0, 32), 0x12345678, 0),
        (Instruction(ALU | X | END, 0, 0, 0, 64), 0x05000000, 0x78563412),
        (alu64(END, 0, 64), 0x05000000, 0x78563412),
    ):
        assert (answer(*number, turn), upper(*number, turn)) == (low, high)


def test_a_register_by_itself_is_cleared():
    """Lost: each program of a hardened kernel, which writes a zero so."""
    assert answer(alu64_by(XOR, 0, 0)) == 0
    assert answer(Instruction(ALU | X | XOR, 0, 0, 0, 0)) == 0
    assert answer(alu64_by(MOV, 0, 1), alu64_by(XOR, 0, 0)) == 0


def test_pointers_are_moved_by_known_distances():
    """How compilers reach a field: copy the pointer, add to it, load."""
    assert answer(alu64_by(MOV, 2, 1), alu64(ADD, 2, 4), load(0, 2, 0)) == 195
    assert answer(alu64_by(MOV, 2, 1), alu64(ADD, 2, 8), alu64(SUB, 2, 4), load(0, 2, 0)) == 195
    assert answer(alu64_by(MOV, 2, 1), alu64(MOV, 3, 8), alu64_by(ADD, 2, 3), load(0, 2, 0)) == 7
    assert answer(alu64_by(MOV, 2, 10), alu64(ADD, 2, -16), stored(3, -16), loaded(0, 0, src=2)) == 3
    by = alu64_by(MOV, 2, 10), alu64(MOV, 3, -16), alu64_by(ADD, 2, 3)
    assert answer(*by, stored(3, -16), loaded(0, 0, src=2)) == 3


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
    assert answer(stored(-2), loaded(0, -4, WORD)) == 0xFFFFFFFF
    assert answer(stored(-2, size=WORD), stored(0, -4, WORD), loaded(0), alu64(RSH, 0, 32)) == 0
    assert upper(stored(0x80, -1, BYTE), loaded(0, -1, BYTE, MEMSX)) == 0xFFFFFFFF
    assert upper(stored(0x8000, -2, HALF), loaded(0, -2, HALF, MEMSX)) == 0xFFFFFFFF
    assert upper(stored(-2, -4, WORD), loaded(0, -4, WORD, MEMSX)) == 0xFFFFFFFF
    assert upper(stored(-2, -4, WORD), loaded(0, -4, WORD)) == 0
    assert answer(load(2, 1, 4), Instruction(STX | MEM | BYTE, 10, 2, -3, 0), loaded(0, -3, BYTE)) == 195


@pytest.mark.parametrize("beside", [-24, -8])
def test_pointers_on_the_stack_and_numbers_beside_them(beside):
    """Lost: what a program says that keeps its question there, as compilers do where registers are few."""
    kept = Instruction(STX | MEM | DOUBLE, 10, 1, -16, 0)
    assert answer(kept, stored(5, beside), loaded(2, -16), load(0, 2, 4)) == 195
    assert answer(stored(5, beside), kept, loaded(0, beside)) == 5
    moved = alu64_by(MOV, 3, 1), alu64(ADD, 3, 4), Instruction(STX | MEM | DOUBLE, 10, 3, -16, 0)
    assert answer(kept, *moved, loaded(2, -16), load(0, 2, 0)) == 195


def test_barriers_of_the_verifier_do_nothing():
    """Lost: each program as a kernel shows it that guards against speculation."""
    assert answer(mov(0, 7), Instruction(ST | 0xC0, 0, 0, 0, 0)) == 7


def test_a_constant_of_two_words():
    wide = Instruction(LD | DOUBLE, 0, 0, 0, 5), Instruction(0, 0, 0, 0, 2)
    assert answer(*wide) == 5
    assert answer(*wide, alu64(RSH, 0, 32)) == 2
    negative = Instruction(LD | DOUBLE, 0, 0, 0, -5), Instruction(0, 0, 0, 0, -2)
    assert (answer(*negative), upper(*negative)) == (0xFFFFFFFB, 0xFFFFFFFE)
    assert answer(*negative, mov(0, 3)) == 3


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


@pytest.mark.parametrize(("kind", "result"), [(JMP, 1), (JMP32, 2)])
def test_the_width_of_comparisons(kind, result):
    """Lost: the answer of a program whose upper halves are not clear."""
    high = alu64(MOV, 2, 1), alu64(LSH, 2, 32), alu64(ADD, 2, 3), alu64(MOV, 3, 3)
    for jump in (Instruction(kind | 0x10, 2, 0, 2, 3), Instruction(kind | X | 0x10, 2, 3, 2, 0)):
        assert answer(*high, jump, mov(0, 1), EXIT, mov(0, 2)) == result


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
    compared = set()
    answer(load(2, 1, 8), Instruction(JMP | 0x50, 2, 0, 0, 200), mov(0, 1), compared=compared)
    assert compared == {200}
    compared = set()
    by = load(2, 1, 4), mov(3, 50), Instruction(JMP32 | X | 0xB0, 3, 2, 0, 0), mov(0, 1)
    answer(*by, compared=compared)
    assert compared == {49, 50, 51}
    compared = set()
    answer(load(2, 1, 4), Instruction(JMP | 0x20, 2, 0, 0, 7), mov(0, 1), compared=compared)
    assert compared == set(), "both were asked for"


@pytest.mark.parametrize(("number", "passes"), [(0, False), (1, True), (2, True)])
def test_what_is_not_zero_passes(number, passes):
    """Lost: the answer itself."""
    assert evaluation.allows([mov(0, number), EXIT], "c", 195, 7, 6) is passes
    with pytest.raises(evaluation.CannotTell, match="its program: cannot tell what it allows: instruction 0: r0 holds"):
        evaluation.allows([EXIT], "c", 195, 7, 6)


def test_a_constant_of_two_words_that_is_cut_off():
    """Lost: an error that says what is wrong, in place of a traceback."""
    with pytest.raises(evaluation.CannotTell, match="instruction 0: code 0x18"):
        evaluation.Run([Instruction(LD | DOUBLE, 0, 0, 0, 5)], "b", 8, 0, 2, "its program").answer()


def test_the_last_step_that_is_followed(monkeypatch):
    """Lost: the answer of the longest program that Linux takes."""
    monkeypatch.setattr(evaluation, "STEPS", 1000)
    many = [mov(0, 1)] * 999
    assert answer(*many) == 1
    with pytest.raises(evaluation.CannotTell, match="more than 1000 steps"):
        answer(*many, mov(0, 1))


@pytest.mark.parametrize(
    ("instructions", "why"),
    [
        ([mov(0, 1), Instruction(JMP, 0, 0, 5, 0)], "runs out of its instructions"),
        ([Instruction(JMP, 0, 0, -1, 0)], "takes more than 1000 steps"),
        ([], "r0 holds nothing"),
        ([alu64_by(MOV, 0, 1)], "r0 holds a pointer"),
        ([Instruction(ALU | X | MOV, 2, 1, 0, 0)], "r1 holds a pointer"),
        ([alu64_by(MOV, 2, 1, 8)], "r1 holds a pointer"),
        ([alu64_by(MOV, 2, 1, 32)], "r1 holds a pointer"),
        ([Instruction(ALU | X | MOV, 2, 1, 8, 0)], "r1 holds a pointer"),
        ([alu64(NEG, 1, 0)], "r1 holds a pointer"),
        ([Instruction(JMP | 0x10, 1, 0, 0, 0)], "r1 holds a pointer"),
        ([mov(2, 1), alu64_by(ADD, 2, 3)], "r3 holds nothing"),
        ([alu64(MOV, 2, 4, 8)], "code 0xb7, registers 2 and 0, off 8, imm 4"),
        ([mov(2, 1), alu64(0xE0, 2, 1)], "code 0xe7"),
        ([mov(2, 1), alu64(DIV, 2, 1, 2)], "code 0x37"),
        ([mov(2, 1), alu64_by(END, 2, 0)], "code 0xdf"),
        ([mov(2, 1), Instruction(ALU64 | X | END, 2, 0, 0, 16)], "code 0xdf"),
        ([Instruction(JMP | X, 0, 0, 1, 0)], "code 0x0d"),
        ([Instruction(LD | DOUBLE, 2, 1, 0, 5), mov(0, 0)], "code 0x18, registers 2 and 1"),
        ([Instruction(LD | 0x20, 2, 0, 0, 5)], "code 0x20"),
        ([stored(1), Instruction(STX | 0xC0 | DOUBLE, 10, 2, -8, 0)], "code 0xdb"),
        ([mov(2, 1), stored(1), Instruction(LDX | 0x40, 2, 10, -8, 0)], "code 0x41"),
        ([stored(1), Instruction(STX | MEM | DOUBLE, 10, 1, -8, 0), loaded(0, -8, BYTE)], "has not written"),
        ([stored(1, -16), Instruction(STX | MEM | DOUBLE, 10, 1, -8, 0), loaded(0, -9, HALF)], "has not written"),
        ([Instruction(STX | MEM | DOUBLE, 10, 1, -8, 0), stored(1, -1, BYTE), loaded(0)], "has not written"),
        ([Instruction(STX | MEM | DOUBLE, 10, 1, -8, 0), stored(1, -12), loaded(0)], "has not written"),
        ([Instruction(STX | MEM | DOUBLE, 10, 9, -8, 0)], "stores what is no number"),
        ([load(0, 1, 12)], "beyond the question"),
        ([stored(1, -7)], "beyond the stack"),
        ([stored(1, -513, BYTE)], "beyond the stack"),
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
    monkeypatch.setattr(evaluation, "STEPS", 1000)
    with pytest.raises(evaluation.CannotTell, match=why):
        answer(*instructions)


def test_a_program_without_an_end_is_given_up():
    """Lost: a minute for each number that is asked about; Linux follows no program for more than a million steps."""
    with pytest.raises(evaluation.CannotTell, match="it takes more than 1000000 steps"):
        answer(Instruction(JMP, 0, 0, -1, 0))
