# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a device cgroup's program answers, found by executing it here: any program, however it was written.

All instructions are known that need nothing of the kernel (no helper, no map): those of LXC, systemd, runc, and of
compilers. For any other instruction CannotTell is raised; nothing is guessed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Dict, NamedTuple, Sequence, Union, cast

from ...core.errors import HeteroError
from .instructions import ALU, ALU64, JMP, JMP32, LD, LDX, ST, STX, X
from .rules import KINDS

if TYPE_CHECKING:
    from .instructions import Instruction

#: The verifier follows at most so many instructions of a program (BPF_COMPLEXITY_LIMIT_INSNS).
STEPS = 1000000
STACK = 512  # bytes (MAX_BPF_STACK)
WORD, LONG = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
SIZES = {0x00: 4, 0x08: 2, 0x10: 1, 0x18: 8}
MEM, MEMSX, NOSPEC = 0x60, 0x80, 0xC0
QUESTION, STACKED = "question", "stack"
REMEDY = "ask whoever loaded it (bpftool prog show), or prove by open() inside"


class CannotTell(HeteroError):
    """A program does something whose result only the kernel knows."""


class Place(NamedTuple):
    """A pointer into the question or the stack."""

    area: str
    at: int


#: Contents of a register: a number, a pointer, or None before it is set.
Value = Union[int, Place, None]


def _signed(number: int, bits: int) -> int:
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number


def _divided(a: int, b: int, bits: int, signed: bool) -> int:
    if b == 0:
        return 0
    rest = _remainder(a, b, bits, signed)
    if signed:
        a, b = _signed(a, bits), _signed(b, bits)
    return (a - rest) // b


def _remainder(a: int, b: int, bits: int, signed: bool) -> int:
    if b == 0:
        return a
    if not signed:
        return a % b
    a, b = _signed(a, bits), _signed(b, bits)
    return abs(a) % abs(b) * (-1 if a < 0 else 1)


#: Operation → function of (a, b, bits).
PLAIN: Dict[int, Callable[[int, int, int], int]] = {
    0x00: lambda a, b, bits: a + b,
    0x10: lambda a, b, bits: a - b,
    0x20: lambda a, b, bits: a * b,
    0x40: lambda a, b, bits: a | b,
    0x50: lambda a, b, bits: a & b,
    0x60: lambda a, b, bits: a << (b & (bits - 1)),
    0x70: lambda a, b, bits: a >> (b & (bits - 1)),
    0xA0: lambda a, b, bits: a ^ b,
    0xC0: lambda a, b, bits: _signed(a, bits) >> (b & (bits - 1)),
}
#: Condition → function of (a, b, bits).
CONDITIONS: Dict[int, Callable[[int, int, int], bool]] = {
    0x10: lambda a, b, bits: a == b,
    0x20: lambda a, b, bits: a > b,
    0x30: lambda a, b, bits: a >= b,
    0x40: lambda a, b, bits: bool(a & b),
    0x50: lambda a, b, bits: a != b,
    0x60: lambda a, b, bits: _signed(a, bits) > _signed(b, bits),
    0x70: lambda a, b, bits: _signed(a, bits) >= _signed(b, bits),
    0xA0: lambda a, b, bits: a < b,
    0xB0: lambda a, b, bits: a <= b,
    0xC0: lambda a, b, bits: _signed(a, bits) < _signed(b, bits),
    0xD0: lambda a, b, bits: _signed(a, bits) <= _signed(b, bits),
}
EQUALITIES = (0x10, 0x50)
DIV, NEG, MOD, XOR, MOV, END = 0x30, 0x80, 0x90, 0xA0, 0xB0, 0xD0
JA, CALL, EXIT = 0x00, 0x80, 0x90


class Run:
    """One question to one program.

    :param compared: a set that gets the numbers with which the device's numbers were compared, and their neighbours for
        comparisons of size: the other places where the answer can change. None collects nothing.
    """

    def __init__(
        self,
        instructions: Sequence[Instruction],
        kind: str,
        major: int,
        minor: int,
        bits: int,
        thing: str,
        compared: set[int] | None = None,
    ) -> None:
        words = ((bits << 16) | KINDS[kind], major, minor)
        self.instructions = instructions
        self.question = b"".join(word.to_bytes(4, "little") for word in words)
        # the stack's bytes, which of them were written as numbers, and pointers by their place
        self.stack = bytearray(STACK)
        self.written: set[int] = set()
        self.pointers: dict[int, Place] = {}
        self.asked = (major, minor)
        self.registers: dict[int, Value] = dict.fromkeys(range(16))
        self.registers.update({1: Place(QUESTION, 0), 10: Place(STACKED, STACK)})
        self.thing, self.compared, self.at = thing, compared, 0

    def answer(self) -> int:
        """Execute the program; return r0 at its exit."""
        for _step in range(STEPS):
            if not 0 <= self.at < len(self.instructions):
                raise self.unknown("it runs out of its instructions")
            one = self.instructions[self.at]
            self.at += 1
            if one.kind in (ALU, ALU64):
                self.registers[one.dst] = self.computed(one)
            elif one.kind in (JMP, JMP32):
                if one.code == JMP | EXIT:
                    return self.number(0) & WORD
                self.jump(one)
            else:
                self.access(one)
        raise self.unknown(f"it takes more than {STEPS} steps")

    def unknown(self, why: str) -> CannotTell:
        what = f"cannot tell what it allows: instruction {self.at - 1}: {why}"
        return CannotTell(what, self.thing, REMEDY)

    def strange(self, one: Instruction) -> CannotTell:
        return self.unknown("code 0x{:02x}, registers {} and {}, off {}, imm {}".format(*one))

    def number(self, register: int) -> int:
        value = self.registers[register]
        if isinstance(value, int):
            return value
        raise self.unknown(f"r{register} holds {'a pointer' if value else 'nothing'}")

    def computed(self, one: Instruction) -> Value:
        """Return the new value of the destination."""
        operation, bits = one.code & 0xF0, 64 if one.kind == ALU64 else 32
        full = (1 << bits) - 1
        left = self.registers[one.dst]
        if operation == MOV:
            return self.moved(one, bits)
        if operation == END:
            return self.swapped(one)
        if operation == XOR and one.code & X and one.src == one.dst:
            return 0  # the blinding of constants writes zero like this, whatever was there
        if operation == NEG:
            return -(self.number(one.dst)) & full
        if isinstance(left, Place):
            return self.pointer(one, left)
        a = self.number(one.dst) & full
        b = (self.number(one.src) if one.code & X else one.imm) & full
        if operation in (DIV, MOD) and one.off in (0, 1):
            how = _divided if operation == DIV else _remainder
            return how(a, b, bits, one.off == 1) & full
        if operation not in PLAIN or one.off:
            raise self.strange(one)
        return PLAIN[operation](a, b, bits) & full

    def moved(self, one: Instruction, bits: int) -> Value:
        full = (1 << bits) - 1
        if not one.code & X:
            if one.off:
                raise self.strange(one)
            return one.imm & full
        value = self.registers[one.src]
        if isinstance(value, Place) and bits == 64 and one.off == 0:
            return value
        if one.off == 0:
            return self.number(one.src) & full
        if one.off in (8, 16) or (one.off == 32 and bits == 64):
            return _signed(self.number(one.src), one.off) & full
        raise self.strange(one)

    def swapped(self, one: Instruction) -> int:
        """Return a number with its byte order changed.

        The machines here are little-endian, so "to little" only cuts.
        """
        if one.imm not in (16, 32, 64) or (one.kind == ALU64 and one.code & X):
            raise self.strange(one)
        cut = (self.number(one.dst) & ((1 << one.imm) - 1)).to_bytes(one.imm // 8, "little")
        turned = one.kind == ALU64 or one.code & X
        return int.from_bytes(cut, "big" if turned else "little")

    def pointer(self, one: Instruction, place: Place) -> Place:
        """Move an address in the stack or the question by a known distance."""
        operation = one.code & 0xF0
        if one.kind != ALU64 or operation not in (0x00, 0x10):
            raise self.strange(one)
        distance = _signed(self.number(one.src) if one.code & X else one.imm, 64)
        return Place(place.area, place.at + (distance if operation == 0x00 else -distance))

    def jump(self, one: Instruction) -> None:
        operation, bits = one.code & 0xF0, 64 if one.kind == JMP else 32
        if operation == JA and not one.code & X:
            self.at += one.off if one.kind == JMP else one.imm
            return
        if operation not in CONDITIONS:
            called = operation == CALL and one.kind == JMP
            raise self.unknown(f"it calls the kernel (function {one.imm})") if called else self.strange(one)
        full = (1 << bits) - 1
        a = self.number(one.dst) & full
        b = (self.number(one.src) if one.code & X else one.imm) & full
        if self.compared is not None:
            # a comparison with exactly the number that is asked for tells only about the other numbers
            apart = (0,) if operation in EQUALITIES else (-1, 0, 1)
            self.compared.update(one + by for one in (a, b) if one not in self.asked for by in apart)
        if CONDITIONS[operation](a, b, bits):
            self.at += one.off

    def access(self, one: Instruction) -> None:
        """Execute a load or a store."""
        mode, size = one.code & 0xE0, SIZES[one.code & 0x18]
        if one.code == ST | NOSPEC:  # inserted by the verifier: a barrier against speculation
            return
        if one.code == LD | 0x18 and one.src == 0 and self.at < len(self.instructions):
            self.registers[one.dst] = (self.instructions[self.at].imm & WORD) << 32 | one.imm & WORD
            self.at += 1
        elif one.kind == LDX and (mode == MEM or (mode == MEMSX and size < 8)):
            value = self.load(self.spot(one.src, one.off, size), size)
            if mode == MEMSX:
                value = _signed(cast("int", value), 8 * size) & LONG
            self.registers[one.dst] = value
        elif one.kind in (ST, STX) and mode == MEM:
            value = self.registers[one.src] if one.kind == STX else one.imm & LONG
            self.store(self.spot(one.dst, one.off, size), value, size)
        else:
            raise self.strange(one)

    def spot(self, register: int, off: int, size: int) -> Place:
        place = self.registers[register]
        if not isinstance(place, Place):
            raise self.unknown(f"r{register} is no pointer")
        at = place.at + off
        if not 0 <= at <= (STACK if place.area == STACKED else len(self.question)) - size:
            raise self.unknown(f"it reaches beyond the {place.area}")
        return Place(place.area, at)

    def load(self, spot: Place, size: int) -> Value:
        area, at = spot
        if area == QUESTION:
            return int.from_bytes(self.question[at : at + size], "little")
        if size == 8 and at in self.pointers:
            return self.pointers[at]
        if not self.written.issuperset(range(at, at + size)):
            raise self.unknown("it reads a part of the stack that it has not written")
        return int.from_bytes(self.stack[at : at + size], "little")

    def store(self, spot: Place, value: Value, size: int) -> None:
        area, at = spot
        if area == QUESTION:
            raise self.unknown("it writes into the question")
        for near in range(at - 7, at + size):
            self.pointers.pop(near, None)
        if isinstance(value, Place) and size == 8:
            self.written.difference_update(range(at, at + 8))
            self.pointers[at] = value
        elif isinstance(value, int):
            self.written.update(range(at, at + size))
            self.stack[at : at + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        else:
            raise self.unknown("it stores what is no number")


def allows(
    instructions: Sequence[Instruction],
    kind: str,
    major: int,
    minor: int,
    bits: int,
    thing: str = "its program",
    compared: set[int] | None = None,
) -> bool:
    """Return whether the program lets one open() or mknod() pass.

    :param bits: the accesses that are asked at once (rules.questions).
    :param thing: whose program it is, for errors.
    :raises CannotTell: it does what only the kernel can do.
    """
    return Run(instructions, kind, major, minor, bits, thing, compared).answer() != 0
