# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one exception tree. Everything under module_utils raises these; `module.run` turns them into fail_json."""

from __future__ import annotations

import errno
from contextlib import contextmanager
from typing import Any, Iterator

from .printable import brief, brief_words, printable

#: The kernel's errors where a file system is full, or a user's quota of it.
FULL = (errno.ENOSPC, errno.EDQUOT)
#: What a node has run out of, and what sets how much there is: fork(2), pthread_create(3), open(2), mmap(2).
EXHAUSTED = {
    errno.EAGAIN: ("processes or threads", "pids.max of the cgroups that this runs in, and ulimit -u"),
    errno.EMFILE: ("open files for one process", "ulimit -n"),
    errno.ENFILE: ("open files", "sysctl fs.file-max"),
    errno.ENOMEM: ("memory", "memory.max of the cgroups that this runs in, and free"),
}


class HeteroError(Exception):
    """An error for a person: which thing, what is wrong with it, and what to do next.

    Text of others that the error quotes is cut off at printable.MOST characters.

    :param what: what is wrong, in one clause ("still on 10 s after 'off'").
    :param thing: the name of the board, outlet, PDU, file or device ("outlet 8 of pdu-a").
    :param remedy: what to do next ("check its relay, or raise timeout").
    :param facts: evidence for programs and people (screen, phase, console tail); never a secret.
    :cvar is_of_request: what is asked for is at fault, and no hardware: the same request is refused again. `failure`
        says so as `refused`.
    """

    is_of_request = False

    def __init__(self, what: str, thing: str | None = None, remedy: str | None = None, **facts: Any) -> None:
        self.what = what
        self.thing = thing
        self.remedy = remedy
        self.facts = facts
        super().__init__(str(self))

    def __str__(self) -> str:
        """Return the error as one line for people; control characters in text of others are escaped."""
        parts = (brief(str(self.thing)) if self.thing else None, self.what, self.remedy)
        return printable(": ".join(brief_words(str(part)) for part in parts if part))

    @property
    def failure(self) -> dict[str, Any]:
        """The error as the `failure` field of a module's result."""
        said = dict(what=self.what, thing=self.thing, remedy=self.remedy)
        refused = dict(refused=True) if self.is_of_request else {}
        return dict(
            self.facts,
            **refused,
            **{key: brief_words(text) if isinstance(text, str) else text for key, text in said.items()},
        )


def told(error: Exception, thing: str) -> str:
    """Return any error in words, for a caller that goes on with other work; an unforeseen error also with its type."""
    if isinstance(error, HeteroError):
        return str(error)
    return printable(f"{thing}: cannot be looked at ({type(error).__name__}: {brief(str(error))})")


def is_full(error: HeteroError) -> bool:
    """Return whether an error is that of a full file system, as `naming` tells it."""
    return isinstance(error.__cause__, OSError) and error.__cause__.errno in FULL


class BadInput(HeteroError):
    """The user's argument, file or archive is wrong; nothing was changed."""

    is_of_request = True


class Refused(HeteroError):
    """The request is understood and must not be done (another owner's name, a quarantined board)."""

    is_of_request = True


class NoneFree(HeteroError):
    """No node can serve the request; `facts['rejected']` says why for each."""


class TimedOut(HeteroError):
    """A deadline passed; the evidence seen last is in `facts`."""


class StepFailed(HeteroError):
    """A step that only one boot driver has did not succeed on a board.

    :param phase: the step, as events name it.
    """

    def __init__(
        self, phase: str, what: str, thing: str | None = None, remedy: str | None = None, **facts: Any
    ) -> None:
        super().__init__(what, thing, remedy, **facts)
        self.phase = phase


class Busy(HeteroError):
    """The PDU's only session is taken, or it is not ready for one; the call can be tried again."""


class Lost(HeteroError):
    """The PDU stopped answering or dropped the session; whether it carried out the last command is not known.

    :param ended: True where the connection ended, False where it is only silent.
    """

    def __init__(
        self, what: str, thing: str | None = None, remedy: str | None = None, ended: bool = False, **facts: Any
    ) -> None:
        super().__init__(what, thing, remedy, **facts)
        self.ended = ended


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Turn the block's OSErrors into HeteroErrors that name the file: the one that the system names, else `path`."""
    try:
        yield
    except OSError as error:
        thing = error.filename if isinstance(error.filename, str) else path
        if error.errno in FULL:
            # an error of a copy or rename names two files; the second one is written
            thing = error.filename2 if isinstance(error.filename2, str) else thing
            remedy = "free space on its file system, then run this again"
            raise HeteroError(f"cannot be written ({error.strerror})", thing, remedy) from error
        remedy = "check space and permissions there, or run the set-up playbook"
        raise HeteroError(f"cannot be read or written ({error.strerror or error})", thing, remedy) from error


@contextmanager
def naming_limits(node: str) -> Iterator[None]:
    """Turn errors of a limit that is reached into HeteroErrors: a file system that is full or read-only, and EXHAUSTED.

    Other errors stay what they are.

    :param node: whose processes, files and memory these are; names a file where the system names none.
    """
    try:
        yield
    except (OSError, MemoryError, RuntimeError) as error:
        number = _number(error)
        if number in EXHAUSTED:
            what, limit = EXHAUSTED[number]
            remedy = f"run this again once less runs there, or see {limit}"
            raise HeteroError(f"has no {what} left ({brief(str(error))})", node, remedy) from error
        if number not in (*FULL, errno.EROFS):
            raise
        with naming(node):
            raise


def _number(error: OSError | MemoryError | RuntimeError) -> int | None:
    """Return the kernel's number of an error, None where it has none."""
    if isinstance(error, MemoryError):
        return errno.ENOMEM
    if isinstance(error, OSError):
        return error.errno
    # Python says no more than this of pthread_create(3), which fails with EAGAIN
    return errno.EAGAIN if "can't start new thread" in str(error) else None
