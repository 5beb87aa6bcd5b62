# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Instructions as the kernel has them in memory."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup import instructions
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.instructions import (
    Instruction,
    pack,
    unpack,
)


@pytest.mark.parametrize(
    ("instruction", "data"),
    [
        (instructions.mov(3, 0xFFFFFFF9), "b4030000f9ffffff"),
        (instructions.mov(0, 0x7FFFFFFF), "b4000000ffffff7f"),
        (instructions.mov(0, 0x80000000), "b400000000000080"),
        (instructions.copy(3, 2), "bc23000000000000"),
        (instructions.both(2, 0xFFFF), "54020000ffff0000"),
        (instructions.both(6, ~6), "54060000f9ffffff"),
        (instructions.right(3, 16), "7403000010000000"),
        (instructions.load(4, 1, 4), "6114040000000000"),
        (instructions.unless(4, 195, 6), "55040600c3000000"),
        (instructions.EXIT, "9500000000000000"),
        (Instruction(0xFF, 15, 10, -2, -3), "ffaffefffdffffff"),
    ],
)
def test_how_the_kernel_writes_it(instruction, data):
    """Lost: each program: the verifier refuses it, or it answers for other devices."""
    assert pack([instruction, instruction]).hex() == data * 2
    assert unpack(bytes.fromhex(data * 2)) == [instruction, instruction]


def test_classes_are_the_low_three_bits():
    """Lost: what others' programs do: each kind of instruction would be taken for another."""
    names = ("LD", "LDX", "ST", "STX", "ALU", "JMP", "JMP32", "ALU64")
    assert [getattr(instructions, name) for name in names] == list(range(8))
    assert [Instruction(code, 0, 0, 0, 0).kind for code in (0x18, 0x61, 0xB4, 0x95, 0xBF)] == [0, 1, 4, 5, 7]
    assert (instructions.X, instructions.AX) == (8, 11)


@pytest.mark.parametrize(
    ("number", "field"),
    [(0, 0), (0x7FFFFFFF, 0x7FFFFFFF), (0x80000000, -0x80000000), (0xFFFFFFFF, -1), (-1, -1), (-(1 << 31), -(1 << 31))],
)
def test_constants_have_a_sign(number, field):
    """Lost: a program that forbids something but writing, whose mask has the highest bit."""
    assert instructions.signed(number) == field
