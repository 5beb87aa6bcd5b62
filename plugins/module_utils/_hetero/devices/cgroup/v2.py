# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The device programs of a cgroup of cgroup v2: what they answer together, and the collection's own beside them.

A program that this collection did not load is read and never replaced or detached: its owner would lose track of it, or
deny everything when it adds the next one. So changes here can only make rules stricter.
"""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Iterable, Iterator, List, NamedTuple, Sequence, cast

from ...core.errors import HeteroError, Refused, naming
from . import bpf
from .evaluation import CannotTell, allows
from .instructions import Instruction
from .program import compile_rules, mark_of, name_of, read_rules
from .rules import questions

if TYPE_CHECKING:
    from .program import Own
    from .rules import Rule

#: Number of times that a list of programs is read again if one of them went away meanwhile.
AGAIN = 20
#: Errors of a kernel without device programs (CONFIG_CGROUP_BPF, CONFIG_BPF_SYSCALL): then no cgroup has any.
NONE_HERE = (errno.EINVAL, errno.ENOSYS)


class Program(NamedTuple):
    """A loaded program."""

    id: int
    name: str
    instructions: List[Instruction] | None

    @property
    def own(self) -> Own | None:
        """Its contents, if this collection loaded it, else None."""
        return read_rules(self.instructions) if self.instructions else None

    def may(self, kind: str, major: int, minor: int, access: str, compared: set[int] | None = None) -> bool:
        if self.instructions is None:
            what = "the kernel keeps its instructions back"
            raise CannotTell(what, str(self), "set kernel.kptr_restrict to 1 or net.core.bpf_jit_harden to 1")
        asked = questions(access)
        return all(allows(self.instructions, kind, major, minor, bits, str(self), compared) for bits in asked)

    def __str__(self) -> str:
        return f"program {self.id} ({self.name or 'no name'})"


class V2(NamedTuple):
    """One cgroup, by its folder in the unified hierarchy."""

    path: str

    @property
    def effective(self) -> list[Program]:
        """The programs that count for it, with those of its ancestors."""
        return self._programs(True)

    @property
    def direct(self) -> list[Program]:
        """The programs attached to the cgroup itself."""
        return self._programs(False)

    def may(self, kind: str, major: int, minor: int, access: str) -> bool:
        return all(program.may(kind, major, minor, access) for program in self.effective)

    @property
    def limitable(self) -> bool:
        """Return whether a program that is attached to this cgroup concerns only part of the machine.

        The root cgroup, which has no file cgroup.type, is that of the whole machine.
        """
        return os.path.exists(os.path.join(self.path, "cgroup.type"))

    def forbid(self, rules: Iterable[Rule], owner: str) -> int:
        """Attach a program that only denies these rules, beside the others; return its id.

        :param owner: any text. A program of the same owner is replaced, in one step.
        """
        return self._put("forbid", rules, owner)

    def only(self, rules: Iterable[Rule], owner: str) -> int:
        """Attach a program that allows only these rules; what others deny stays denied. Return its id."""
        return self._put("allow", rules, owner)

    def of(self, owner: str) -> Program | None:
        """Return the program of this owner, known by its name and its mark, or None."""
        return next(iter(self._all_of(owner)), None)

    def _all_of(self, owner: str) -> list[Program]:
        """Return all programs of this owner. There are several only if two processes added one at the same time."""
        named = [program for program in self.direct if program.name == name_of(owner)]
        return [program for program in named if program.own and program.own.mark == mark_of(owner)]

    def unforbid(self, owner: str) -> bool:
        """Remove the programs of this owner; return whether there were any."""
        there = self._all_of(owner)
        for program in there:
            self.drop(program)
        return bool(there)

    def drop(self, program: Program) -> None:
        """Detach a program of this collection; raise Refused for another's."""
        if program.own is None:
            raise Refused("is not ours to take away", f"{program} of {self.path}", "ask whoever loaded it")
        try:
            with self._directory() as cgroup, bpf.closing(bpf.open_program(program.id)) as loaded:
                bpf.detach(cgroup, loaded)
        except OSError as error:
            if error.errno != errno.ENOENT:  # gone meanwhile
                raise self._explained(error) from error

    def rewrite(self, program: Program, rules: Iterable[Rule]) -> int:
        """Put these rules into a program of this collection, in one step; return its new id. Kind and owner stay."""
        own = program.own
        if own is None:
            raise Refused("is not ours to replace", f"{program} of {self.path}", "ask whoever loaded it")
        return self._attach(compile_rules(own.kind, rules, own.mark), program.name, program)

    def _put(self, kind: str, rules: Iterable[Rule], owner: str) -> int:
        wanted = compile_rules(kind, rules, mark_of(owner))
        there = self._all_of(owner)
        if there and there[0].own == read_rules(wanted):
            number = there[0].id
        else:
            number = self._attach(wanted, name_of(owner), there[0] if there else None)
        for program in there[1:]:
            self.drop(program)
        return number

    def _attach(self, instructions: Sequence[Instruction], name: str, there: Program | None) -> int:
        try:
            with self._directory() as cgroup, bpf.closing(bpf.load(instructions, name)) as loaded:
                number = bpf.info(loaded)[0]
                if there is None:
                    bpf.attach(cgroup, loaded)
                else:
                    with bpf.closing(bpf.open_program(there.id)) as old:
                        bpf.attach(cgroup, loaded, replace=old)
        except OSError as error:
            raise self._explained(error) from error
        if number not in [program.id for program in self.effective]:
            thing = f"program {number} of {self.path}"
            raise HeteroError("was attached, and is not in effect", thing, "see who else acts there")
        return number

    def _explained(self, error: OSError) -> Refused:
        what, remedy = f"bpf(2) says: {error.strerror}", "run as root with CAP_BPF, CAP_NET_ADMIN and CAP_SYS_ADMIN"
        if error.errno == errno.EPERM:
            alone = self.alone()
            if alone:
                what = f"{alone} was attached without ALLOW_MULTI, so none can be added beside it"
                remedy = "let its owner deny, or attach with ALLOW_MULTI"
        elif error.errno in NONE_HERE:
            what, remedy = "this kernel has no device programs", "use one with CONFIG_CGROUP_BPF"
        elif error.errno == errno.ENOENT:
            what, remedy = "our program there went away meanwhile", "run again"
        elif error.errno == errno.E2BIG:
            what, remedy = "it has 64 programs, and takes no more", "see who attaches them"
        return Refused(what, self.path, remedy)

    def alone(self) -> str | None:
        """Return in words which program, of it or of its nearest ancestor with one, excludes others, or None."""
        path = os.path.realpath(self.path)
        while os.path.exists(os.path.join(path, "cgroup.procs")):
            with V2(path)._directory() as cgroup:
                ids, flags = bpf.query(cgroup)
            if ids:
                return None if flags & bpf.ALLOW_MULTI else f"program {ids[0]} of {path}"
            path = os.path.dirname(path)
        return None

    @contextmanager
    def _directory(self) -> Iterator[int]:
        with naming(self.path):
            fd = os.open(self.path, os.O_DIRECTORY)
        with bpf.closing(fd):
            yield fd

    def _programs(self, effective: bool) -> list[Program]:
        try:
            for _attempt in range(AGAIN):
                with self._directory() as cgroup:
                    ids = self._ids(cgroup, effective)
                found = [self._program(number) for number in ids]
                if None not in found:
                    return cast("List[Program]", found)
        except OSError as error:
            raise self._explained(error) from error
        raise HeteroError(f"its programs changed {AGAIN} times while they were read", self.path, "run again")

    @staticmethod
    def _ids(cgroup: int, effective: bool) -> list[int]:
        try:
            return bpf.query(cgroup, effective)[0]
        except OSError as error:
            if error.errno in NONE_HERE:
                return []
            raise

    @staticmethod
    def _program(number: int) -> Program | None:
        try:
            with bpf.closing(bpf.open_program(number)) as loaded:
                return Program(*bpf.info(loaded))
        except OSError as error:
            if error.errno == errno.ENOENT:  # replaced after it was listed
                return None
            raise
