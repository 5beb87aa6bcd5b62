# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""BPF instructions as values: their form in memory, and the few that the collection's own programs use."""

from __future__ import annotations

import struct
from typing import Iterable, NamedTuple

# linux/bpf_common.h and linux/bpf.h: the class is in the low three bits of the code
LD, LDX, ST, STX, ALU, JMP, JMP32, ALU64 = range(8)
#: Bit of the code: the operand is in the source register and not in the instruction.
X = 0x08
#: With a constant: dst &= it, and skip instructions if dst is not it.
AND, UNLESS = ALU | 0x50, JMP | 0x50
#: Number of the scratch register that the blinding of constants (bpf_jit_harden) uses.
AX = 11


class Instruction(NamedTuple):
    code: int
    dst: int
    src: int
    off: int
    imm: int

    @property
    def kind(self) -> int:
        """Its instruction class."""
        return self.code & 0x07


def pack(instructions: Iterable[Instruction]) -> bytes:
    """Return the bytes on x86-64 and aarch64: little-endian, with the destination in the low half of its byte."""
    parts = (struct.pack("<BBhi", one.code, one.src << 4 | one.dst, one.off, one.imm) for one in instructions)
    return b"".join(parts)


def unpack(data: bytes) -> list[Instruction]:
    return [
        Instruction(code, registers & 15, registers >> 4, off, imm)
        for code, registers, off, imm in struct.iter_unpack("<BBhi", data)
    ]


def signed(number: int) -> int:
    """Return a 32-bit constant as the signed field holds it."""
    return (number & 0xFFFFFFFF) - (1 << 32 if number & 0x80000000 else 0)


def mov(dst: int, number: int) -> Instruction:
    """dst = number (32 bits)."""
    return Instruction(ALU | 0xB0, dst, 0, 0, signed(number))


def copy(dst: int, src: int) -> Instruction:
    return Instruction(ALU | X | 0xB0, dst, src, 0, 0)


def both(dst: int, number: int) -> Instruction:
    """dst &= number."""
    return Instruction(AND, dst, 0, 0, signed(number))


def right(dst: int, bits: int) -> Instruction:
    """dst >>= bits."""
    return Instruction(ALU | 0x70, dst, 0, 0, bits)


def load(dst: int, src: int, off: int) -> Instruction:
    """dst = the 32-bit word at src + off."""
    return Instruction(LDX | 0x60, dst, src, off, 0)


def unless(dst: int, number: int, skip: int) -> Instruction:
    """Skip `skip` instructions if dst != number."""
    return Instruction(UNLESS, dst, 0, skip, signed(number))


EXIT = Instruction(JMP | 0x90, 0, 0, 0, 0)
