# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The evaluator beside the kernel: random rule sets and programs, and for each what a process inside can open and make.

How many were compared is in build/logs/cgroup-parity.log.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup import bpf
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.instructions import (
    ALU64,
    EXIT,
    Instruction,
    X,
    mov,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.program import compile_rules
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.rules import Rule, letters
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.v1 import V1
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.v2 import V2
from ansible_collections.hetero.compute.tests.unit.devices.cgroup import device_programs
from ansible_collections.hetero.compute.tests.unit.devices.cgroup.real_cgroups import new_cgroup

LOG = Path(__file__).resolve().parents[4] / "build" / "logs" / "cgroup-parity.log"
# numbers without a driver, of a GPU's kind, and two devices that can really be opened
CHARACTER = [(195, 0), (195, 1), (195, 254), (195, 255), (238, 0), (238, 1), (241, 0), (1, 3), (1, 5)]
BLOCK = [(43, 0), (43, 1), (240, 0)]
DEVICES = [("c", *numbers) for numbers in CHARACTER] + [("b", *numbers) for numbers in BLOCK]
QUESTIONS = [[*device, bits] for device in DEVICES for bits in (2, 4, 6, 1)]


def random_rules(chance):
    rules = []
    for _rule in range(chance.randint(0, 9)):
        kind, major, minor = chance.choice(DEVICES)
        major = None if chance.random() < 0.1 else major
        minor = None if chance.random() < 0.25 else minor
        rules.append(Rule(kind, major, minor, letters(chance.randint(1, 7))))
    if chance.random() < 0.05:
        rules.append(Rule("a", None, None, "rwm"))
    return rules


def has_newest():
    """Whether this kernel knows the instructions of Linux 6.6."""
    try:
        os.close(bpf.load([mov(0, 1), Instruction(ALU64 | X | 0xB0, 0, 0, 8, 0), mov(0, 1), EXIT], "probe"))
    except OSError:
        return False
    return True


def random_program(chance, newest):
    """(who would write it, instructions)."""
    rules = random_rules(chance)
    mark = chance.getrandbits(64).to_bytes(8, "little")
    return chance.choice(
        [
            ("own allow", lambda: compile_rules("allow", rules, mark)),
            ("own forbid", lambda: compile_rules("forbid", rules, mark)),
            ("LXC allow list", lambda: device_programs.lxc(rules, 0)),
            ("LXC deny list", lambda: device_programs.lxc(rules, 1)),
            ("systemd", lambda: device_programs.systemd(rules)),
            ("runc", lambda: device_programs.runc(rules, chance.randint(0, 1))),
            ("random", lambda: device_programs.scrambled(chance, chance.randint(5, 40), newest)),
            ("random", lambda: device_programs.scrambled(chance, chance.randint(5, 40), newest)),
        ]
    )


class Slot:
    """A cgroup's place for one program, which the next one replaces."""

    def __init__(self, path):
        self.path, self.old = path, 0

    def put(self, instructions):
        program, cgroup = bpf.load(instructions, "foreign"), os.open(self.path, os.O_RDONLY)
        bpf.attach(cgroup, program, replace=self.old)
        os.close(cgroup)
        if self.old:
            os.close(self.old)
        self.old = program

    def clear(self):
        if self.old:
            cgroup = os.open(self.path, os.O_RDONLY)
            bpf.detach(cgroup, self.old)
            os.close(cgroup)
            os.close(self.old)
            self.old = 0


def compared(stack, inside, seed, sets, each=24):
    """(questions, allowed ones, disagreements, programs by writer) of so many rule sets on a cgroup and its parent."""
    chance, newest = random.Random(seed), has_newest()
    parent = stack.enter_context(new_cgroup("v2"))
    child = stack.enter_context(new_cgroup("v2", parent))
    stack.callback(inside.end)
    inside.enter(child)
    slots = [Slot(child), Slot(parent)]
    asked, allowed, wrong, written = 0, 0, [], {}
    for number in range(sets):
        names = []
        for slot in slots:
            if slot is slots[1] and chance.random() < 0.5:
                slot.clear()
                continue
            name, build = random_program(chance, newest)
            slot.put(build())
            names.append(name)
            written[name] = written.get(name, 0) + 1
        programs = V2(child).effective
        assert len(programs) == len(names)
        questions = chance.sample(QUESTIONS, each)
        kernel = inside.ask(questions)
        for question, answer in zip(questions, kernel):
            kind, major, minor, bits = question
            if all(program.may(kind, major, minor, letters(bits)) for program in programs) != answer:
                wrong.append(f"set {number} of seed {seed} ({', '.join(names)}): {question}: the kernel says {answer}")
        asked += len(kernel)
        allowed += sum(kernel)
    for slot in slots:
        slot.clear()
    return asked, allowed, wrong, written


def report(line):
    LOG.parent.mkdir(parents=True, exist_ok=True)
    with open(LOG, "a", encoding="utf-8") as log:
        log.write(f"{time.strftime('%F %T')} {line}\n")
    print(line)


def test_the_evaluator_agrees_with_the_kernel(stack, inside):
    """A GPU that is said to be closed would be open, or the other way round."""
    sets, start = 300, time.monotonic()
    asked, allowed, wrong, written = compared(stack, inside, random.SystemRandom().getrandbits(32), sets)
    by = ", ".join(f"{count} {name}" for name, count in sorted(written.items()))
    report(
        f"v2: {sets} random rule sets ({by}), {asked} opens and mknods ({allowed} allowed): "
        f"{len(wrong)} disagreements between evaluator and kernel, {time.monotonic() - start:.1f} s"
    )
    assert wrong == []
    assert 0.1 * asked < allowed < 0.9 * asked


def test_the_evaluator_agrees_on_blinded_programs(stack, inside, hardened):
    """On a hardened host each answer would be another one, or none."""
    sets = 100
    with hardened():
        asked, _allowed, wrong, _written = compared(stack, inside, random.SystemRandom().getrandbits(32), sets)
    report(f"v2, constants blinded: {sets} random rule sets, {asked} opens and mknods: {len(wrong)} disagreements")
    assert wrong == []


@pytest.mark.long
def test_the_evaluator_agrees_with_the_kernel_at_large(stack, inside):
    """As above, in the rarer corners of instructions."""
    sets, seed = 20000, random.SystemRandom().getrandbits(32)
    asked, _allowed, wrong, _written = compared(stack, inside, seed, sets, len(QUESTIONS))
    report(f"v2: {sets} random rule sets, {asked} opens and mknods: {len(wrong)} disagreements")
    assert wrong == []


def test_lists_of_cgroup_v1_agree_with_the_kernel(stack, inside):
    """A container on a host with cgroup v1 would be given or denied what its list does not say."""
    chance, sets, asked, wrong = random.Random(), 150, 0, []
    path = stack.enter_context(new_cgroup("v1"))
    stack.callback(inside.end)
    inside.enter(path)
    for _set in range(sets):
        side = V1(path)
        default = chance.random() < 0.2
        for rule in ["a"] if default else []:
            side._write("devices.allow", Rule(rule, None, None, "rwm"))
        if not default:
            side._write("devices.deny", Rule("a", None, None, "rwm"))
        for rule in random_rules(chance):
            if rule.kind != "a":
                side._write("devices.deny" if default else "devices.allow", rule)
        few = chance.sample(QUESTIONS, 3) if default else QUESTIONS
        for question, answer in zip(few, inside.ask(few)):
            asked += 1
            kind, major, minor, bits = question
            if side.may(kind, major, minor, letters(bits)) != answer:
                wrong.append((list(map(str, side.rules)), question, answer))
    report(f"v1: {sets} random lists, {asked} opens and mknods: {len(wrong)} disagreements with the kernel")
    assert wrong == []


def test_each_instruction_was_asked():
    """The random programs would prove nothing of an instruction that they never use."""
    chance = random.Random(7)
    seen = set()
    for _program in range(300):
        seen.update(one.code for one in device_programs.scrambled(chance, 40, True))
    wide = {
        kind | source | op for kind, source in itertools.product((4, 7), (0, 8)) for op in device_programs.OPERATIONS
    }
    jumps = {kind | source | op for kind, source in itertools.product((5, 6), (0, 8)) for op in device_programs.JUMPS}
    memory = {mode | size for mode in (0x61, 0x62, 0x63) for size in device_programs.SIZES} | {0x81, 0x89, 0x91}
    others = {0xD4, 0xDC, 0xD7, 0x84, 0x87, 0xB4, 0xB7, 0xBC, 0xBF, 0x05, 0x06, 0x18, 0x95}
    assert (wide | jumps | memory | others) - seen == set()
