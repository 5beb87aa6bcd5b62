# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs on real cgroups of cgroup v2: ours beside others', read back, and the kernel's refusals in words."""

from __future__ import annotations

import errno
import os
import threading
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError, Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup import bpf, mounts
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.devices import of_path, of_process
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.evaluation import CannotTell
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.instructions import (
    EXIT,
    JMP,
    Instruction,
    mov,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.program import (
    compile_rules,
    mark_of,
    name_of,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.rules import parse
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.cgroup.v2 import Program
from ansible_collections.hetero.compute.tests.unit.devices.cgroup import device_programs
from ansible_collections.hetero.compute.tests.unit.devices.cgroup.real_cgroups import Foreign, new_cgroup

GPU = parse("c 195:0 rw")
ALL = [mov(0, 1), EXIT]


def lists(*rules, default=0):
    return device_programs.lxc([parse(rule) for rule in rules], default)


def test_what_is_forbidden_is_denied_by_the_kernel_and_nothing_else_is(v2, inside):
    """A GPU taken from a container would stay open, or the container would lose its terminals."""
    v2.forbid([GPU], "ledger-7")
    assert not inside.may("c 195:0 rw")
    assert not inside.may("c 195:0 r")
    assert inside.may("c 195:0 m")
    assert inside.may("c 1:3 rw")
    assert inside.may("c 195:1 rwm")
    assert v2.verdict(GPU) == "denied"
    assert v2.verdict(parse("c 195:0 rwm")) == "partly"
    assert [side.allows for side in v2.sides(GPU)] == [False]


def test_our_program_is_found_again_by_its_owner(v2):
    """A second run would add a program each time, until the cgroup takes no more."""
    first = v2.forbid([GPU], "ledger-7")
    assert v2.forbid([GPU], "ledger-7") == first
    other = v2.forbid([parse("c 195:1 rw")], "ledger-8")
    assert {program.id for program in v2.v2.direct} == {first, other}
    assert v2.v2.of("ledger-7").name == name_of("ledger-7")
    assert v2.unforbid("ledger-7")
    assert not v2.unforbid("ledger-7")
    assert [program.id for program in v2.v2.direct] == [other]


def test_a_program_that_was_added_twice_is_taken_away_twice(v2, inside):
    """Two processes at once: a device that one of them opened again would stay closed by the other's."""
    for _process in range(2):
        Foreign(v2.v2.path, compile_rules("forbid", [GPU], mark_of("ledger-7")), name_of("ledger-7"))
    assert v2.forbid([parse("c 195:1 rw")], "ledger-7")
    assert [program.own.rules for program in v2.v2.direct] == [[parse("c 195:1 rw")]]
    assert inside.may("c 195:0 rw")
    Foreign(v2.v2.path, compile_rules("forbid", [GPU], mark_of("ledger-7")), name_of("ledger-7"))
    assert v2.unforbid("ledger-7")
    assert v2.v2.direct == []


def test_a_kernel_without_device_programs(v2, monkeypatch):
    """On a hybrid host with such a kernel, v1's answer would be lost to an error."""

    def query(*_arguments):
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(bpf, "query", query)
    assert v2.may("c", 195, 0, "rw")


def test_locked_memory_is_no_limit(v2, monkeypatch):
    """Before Linux 5.11 a second program would be EPERM, as if root were missing."""
    really, limits = bpf.bpf, []

    def call(command, attributes):
        if command == bpf.PROG_LOAD and not limits:
            raise PermissionError(errno.EPERM, "Operation not permitted")
        return really(command, attributes)

    monkeypatch.setattr(bpf, "bpf", call)
    monkeypatch.setattr(bpf.resource, "setrlimit", lambda which, limit: limits.append((which, limit)))
    assert v2.forbid([GPU], "ledger-7")
    assert limits == [(bpf.resource.RLIMIT_MEMLOCK, (bpf.resource.RLIM_INFINITY,) * 2)]


def test_a_foreign_program_of_our_name_is_left_alone(v2):
    """A program that only looks like ours would be replaced."""
    foreign = Foreign(v2.v2.path, ALL, name_of("ledger-7"))
    v2.forbid([GPU], "ledger-7")
    assert foreign.id in [program.id for program in v2.v2.direct]
    assert len(v2.v2.direct) == 2
    v2.unforbid("ledger-7")
    assert [program.id for program in v2.v2.direct] == [foreign.id]
    with pytest.raises(Refused, match="not ours"):
        v2.v2.drop(v2.v2.direct[0])
    with pytest.raises(Refused, match="not ours"):
        v2.v2.rewrite(v2.v2.direct[0], [])


def test_our_programs_of_other_owners_are_left_alone(v2):
    """Names are short, and a chance meeting of two would open what another ledger entry keeps closed."""
    theirs = Foreign(v2.v2.path, compile_rules("forbid", [GPU], mark_of("ledger-8")), name_of("ledger-7"))
    renamed = Foreign(v2.v2.path, compile_rules("forbid", [GPU], mark_of("ledger-7")), "hetero_other")
    assert v2.v2.of("ledger-7") is None
    ours = v2.forbid([GPU], "ledger-7")
    v2.unforbid("ledger-7")
    assert {program.id for program in v2.v2.direct} == {theirs.id, renamed.id}
    assert ours not in (theirs.id, renamed.id)


def test_one_that_went_meanwhile_is_taken_away_and_one_that_may_not_is_said(v2, monkeypatch):
    """Two at once: the second would fail for what is done; or a device would be called open that a program denies."""
    v2.forbid([GPU], "ledger-7")
    ours = v2.v2.of("ledger-7")

    def refuse(*_arguments):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    with monkeypatch.context() as patched:
        patched.setattr(bpf, "detach", refuse)
        with pytest.raises(HeteroError):
            v2.v2.drop(ours)
    for _time in range(2):
        v2.v2.drop(ours)
        assert v2.v2.of("ledger-7") is None


def test_the_owner_of_a_foreign_program_still_finds_it(v2, inside):
    """Trap: replacing a program behind LXC's back breaks its next lxc-cgroup call, or shuts everything."""
    lxc = Foreign(v2.v2.path, lists("c 1:3 rwm", "c 195:0 rw"))
    v2.forbid([GPU], "ledger-7")
    v2.v2.only([parse("c 1:3 rwm"), parse("c 195:* rw")], "exact")
    lxc.replace(lists("c 1:3 rwm", "c 195:0 rw", "c 195:1 rw"))  # what its monitor does for the next rule
    assert lxc.id in [program.id for program in v2.v2.direct]
    assert inside.may("c 195:1 rw")
    assert not inside.may("c 195:0 rw")
    v2.unforbid("ledger-7")
    lxc.replace(lists("c 1:3 rwm", "c 195:0 rw"))
    assert inside.may("c 195:0 rw")
    assert not inside.may("c 195:1 rw")


def test_a_program_that_was_replaced_by_somebody_else_is_gone(v2):
    """Trap: what LXC sees when its program was replaced behind its back, and what we say when ours was."""
    lxc = Foreign(v2.v2.path, ALL)
    held = bpf.open_program(lxc.id)  # as its monitor holds it
    lxc.replace(lists("c 1:3 rwm"))
    with bpf.closing(held), bpf.closing(bpf.load(ALL, "next")) as program, v2.v2._directory() as cgroup:
        with pytest.raises(FileNotFoundError):
            bpf.attach(cgroup, program, replace=held)
        number = v2.forbid([GPU], "ledger-7")
        ours = v2.v2.of("ledger-7")
        with bpf.closing(bpf.open_program(number)) as mine:
            bpf.detach(cgroup, mine)
            with pytest.raises(Refused, match="went away meanwhile"):
                v2.v2.rewrite(ours, [GPU])
        assert not v2.unforbid("ledger-7")


def test_a_program_that_is_replaced_while_they_are_read_is_read_anew(v2, monkeypatch):
    """Who asks while LXC's monitor writes its next rule would get an error; or hear less than what denies."""
    lxc = Foreign(v2.v2.path, ALL)
    gone, query, asked = lxc.id, bpf.query, []
    lxc.replace(lists("c 1:3 rwm"))

    def late(cgroup, *more):
        asked.append(cgroup)
        return ([gone], 0) if len(asked) == 1 else query(cgroup, *more)

    monkeypatch.setattr(bpf, "query", late)
    assert [program.id for program in v2.v2.direct] == [lxc.id]
    assert len(asked) == 2


def test_a_program_that_may_not_be_read_is_an_error(v2, monkeypatch):
    """A program that denies a device would be left out, and the device called open."""
    Foreign(v2.v2.path, ALL)

    def refuse(_number):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(bpf, "open_program", refuse)
    with pytest.raises(HeteroError, match=v2.v2.path) as refused:
        assert v2.v2.direct
    assert "changed" not in str(refused.value), "nothing did"


def test_programs_of_ancestors_count(stack, v2, inside):
    """A container would be said to have a GPU that the slice above it denies."""
    child = of_path(stack.enter_context(new_cgroup("v2", v2.v2.path)))
    inside.enter(child.v2.path)
    Foreign(v2.v2.path, lists("c 1:3 rwm", "c 195:* rw"))
    assert child.may("c", 195, 0, "rw")
    Foreign(child.v2.path, lists("c 1:3 rwm", "c 195:0 r"))
    assert [child.may("c", 195, 0, "rw"), child.may("c", 195, 0, "r"), child.may("c", 1, 3, "rw")] == [0, 1, 1]
    assert [inside.may("c 195:0 rw"), inside.may("c 195:0 r"), inside.may("c 1:3 rw")] == [0, 1, 1]
    assert len(child.sides(GPU)) == 2
    inside.enter(mounts.mounts()["v2"][0].point)


@pytest.mark.parametrize("flags", [0, bpf.ALLOW_OVERRIDE])
def test_a_program_that_shuts_others_out_is_named(v2, flags):
    """Trap: EPERM, as if root were missing, where somebody attached without ALLOW_MULTI."""
    foreign = Foreign(v2.v2.path, ALL, flags=flags)
    with pytest.raises(Refused, match=f"program {foreign.id} .* without ALLOW_MULTI"):
        v2.forbid([GPU], "ledger-7")
    assert [program.id for program in v2.v2.direct] == [foreign.id]
    assert v2.may("c", 195, 0, "rw")


def test_an_ancestor_that_shuts_others_out_is_named(stack, v2):
    """As above, where the program is a folder higher."""
    child = of_path(stack.enter_context(new_cgroup("v2", v2.v2.path)))
    foreign = Foreign(v2.v2.path, ALL, flags=0)
    with pytest.raises(Refused, match=f"program {foreign.id} of /.* was attached without"):
        child.forbid([GPU], "ledger-7")


def test_others_cannot_attach_alone_beside_ours(v2):
    """Trap: with ALLOW_MULTI attached, flags 0 and ALLOW_OVERRIDE are EPERM; what an owner sees is documented."""
    v2.forbid([GPU], "ledger-7")
    for flags in (0, bpf.ALLOW_OVERRIDE):
        with pytest.raises(PermissionError):
            Foreign(v2.v2.path, ALL, flags=flags)


def test_a_full_cgroup_is_explained(v2):
    """'Argument list too long' tells nobody what to do."""
    for number in range(64):
        v2.forbid([GPU], f"ledger-{number}")
    with pytest.raises(Refused, match="64 programs"):
        v2.forbid([GPU], "one more")


def test_a_held_device_stays_usable_after_it_is_forbidden(v2, inside):
    """Trap, and the documented truth: a revoke closes no open file, so holders must be looked for."""
    inside.say("hold", inside.node("c", 1, 5))
    v2.forbid([parse("c 1:5 rwm")], "ledger-7")
    assert not inside.may("c 1:5 r")
    assert inside.say("read", "c1-5") == 16


def test_a_replace_under_load_never_denies(v2, inside):
    """A program in another container's GPU would see EPERM now and then while this one's rules change."""
    begun, done, opened = time.monotonic(), [], 0
    node = inside.node("c", 1, 3)

    def change():
        number = 0
        # on a busy machine as long as it takes, and no longer than a minute
        while time.monotonic() < begun + (1.5 if number > 20 else 60):
            number += 1
            v2.forbid([GPU, parse(f"c 195:{number % 200} rw")], "ledger-7")
        done.append(number)

    thread = threading.Thread(target=change)
    thread.start()
    while thread.is_alive():
        answers = inside.ask([["c", 1, 3, 6]] * 200)
        opened += len(answers)
        assert all(answers), node
    thread.join()
    assert done[0] > 20
    assert opened > 1000


def test_our_program_goes_with_its_cgroup(stack):
    """A program would stay in the kernel for each container that ever ran."""
    with new_cgroup("v2") as path:
        number = of_path(path).forbid([GPU], "ledger-7")
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            os.close(bpf.open_program(number))
        except FileNotFoundError:
            return
        time.sleep(0.05)
    raise AssertionError(f"program {number} is still loaded")


def test_blinded_constants_are_read(v2, inside, hardened):
    """On a hardened host (net.core.bpf_jit_harden=2) our programs would not be found, and others' not understood."""
    rules = [GPU, parse("c 238:* rwm"), parse("b 43:1 m")]
    with hardened():
        number = v2.forbid(rules, "ledger-7")
    program = v2.v2.direct[0]
    assert len(program.instructions) > 60
    assert program.own[:2] == ("forbid", rules)
    assert v2.forbid(rules, "ledger-7") == number
    for text in ("c 195:0 rw", "c 238:7 r", "b 43:1 m", "b 43:1 r", "c 1:3 rw"):
        rule = parse(text)
        assert v2.may(*rule) == inside.may(text), text
    assert v2.verdict(parse("c 238:* rwm")) == "denied"
    assert v2.verdict(parse("c 195:* rw")) == "partly"


def test_a_program_that_asks_the_kernel_is_not_guessed(v2):
    """A program with a helper would be called closed, or open, by chance."""
    helper = Instruction(JMP | 0x80, 0, 0, 0, 15)  # bpf_get_current_uid_gid
    foreign = Foreign(v2.v2.path, [helper, mov(0, 1), EXIT])
    with pytest.raises(CannotTell, match=rf"program {foreign.id} \(foreign\): cannot tell .* calls the kernel"):
        v2.may("c", 195, 0, "rw")
    with pytest.raises(CannotTell):
        v2.allows_everything()


def test_hidden_instructions_are_not_guessed():
    """As above, where the kernel keeps the instructions of a blinded program from us."""
    with pytest.raises(CannotTell, match=r"keeps its instructions back.*kptr_restrict"):
        Program(7, "", None).may("c", 195, 0, "rw")


@pytest.mark.parametrize(
    ("rules", "default", "open_to_all"),
    [([], 1, True), (["c 195:0 rw"], 1, False), (["a"], 0, True), (["c *:* m"], 0, False)],
)
def test_a_cgroup_that_is_open_to_everything_is_known(v2, rules, default, open_to_all):
    """A container that only the absence of nodes isolates would be called proven closed."""
    assert v2.allows_everything()
    Foreign(v2.v2.path, lists(*rules, default=default))
    assert v2.allows_everything() == open_to_all


def test_wildcards_are_judged_by_each_number_that_matters(v2):
    """'Nothing of major 195 is open' would be said of a cgroup that opens one GPU of many."""
    Foreign(v2.v2.path, lists("c 1:3 rwm", "c 195:77 rw"))
    assert v2.verdict(parse("c 195:* rw")) == "partly"
    assert v2.verdict(parse("c 238:* rwm")) == "denied"
    assert v2.verdict(parse("c 195:77 rw")) == "allowed"
    assert v2.verdict(parse("b *:* rwm")) == "denied"


def test_the_root_cgroup_is_not_limited():
    """One mistaken call would take a device from the whole machine."""
    root = of_path(mounts.mounts()["v2"][0].point)
    with pytest.raises(Refused, match="whole machine"):
        root.forbid([GPU], "ledger-7")


def test_the_cgroup_of_a_process_is_found(v2, inside):
    """A container's rules would be read from another cgroup."""
    found = of_process(inside.pid)
    assert found.v2 == v2.v2
    assert found.v1.path == mounts.mounts()["v1"][0].point
    assert found.version == "hybrid"
    v2.forbid([GPU], "ledger-7")
    assert not found.may("c", 195, 0, "rw")
    inside.end()
    with pytest.raises(HeteroError, match=f"process {inside.pid}: has no cgroup"):
        of_process(inside.pid)


@pytest.mark.parametrize("path", ["/no/such/cgroup", "/etc", "hetero-no-such"])
def test_what_is_no_cgroup_is_refused(path):
    """A typing error would end in a traceback, or in another cgroup."""
    with pytest.raises(BadInput, match=r"is no device cgroup.*/sys/fs/cgroup") as caught:
        of_path(path)
    there = mounts.mounts()
    points = [mount.point for version in mounts.OF_DEVICES for mount in there[version]]
    assert caught.value.remedy == f"name a directory below one of: {', '.join(points)}"


def test_a_cgroup_that_went_away_is_named(v2, inside):
    """A container that stopped meanwhile would end in a traceback."""
    with new_cgroup("v2") as path:
        gone = of_path(path)
    with pytest.raises(HeteroError, match=path):
        gone.may("c", 195, 0, "rw")
