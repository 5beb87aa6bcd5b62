# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Work in a forked child. A change of its root directory, namespaces or credentials ends with it; a hang is killed."""

from __future__ import annotations

import ctypes
import errno
import json
import locale
import os
import signal
import struct
import threading
from contextlib import suppress
from typing import Any, Callable, NoReturn

from .deadline import Deadline
from .errors import HeteroError, TimedOut
from .output import MOST
from .readiness import readable

#: Seconds to wait until a killed child is gone; a child that waits for a device inside the kernel may outlive us.
END_TIME = 1.0
#: Seconds to wait for a thread that is ending.
ENDING_TIME = 0.01
#: clone3(2), the same number on every architecture; <linux/sched.h>. Its cgroup came with Linux 5.7.
CLONE3, CLONE_INTO_CGROUP = 435, 0x200000000
NO_CLONE3 = (errno.ENOSYS, errno.E2BIG, errno.EINVAL, errno.EPERM)
#: Held from when a pipe is there until our own end for writing is closed. A child of another thread would inherit that
#: end, and the answer would be waited for until that other child has ended, too.
_FORKING = threading.Lock()
#: The error of clone3 into a cgroup whose pids.max is reached. A process that is moved there later is not counted.
FULL = errno.EAGAIN


def in_child(
    work: Callable[[], Any],
    deadline: Deadline,
    thing: str,
    remedy: str,
    cgroup: int | None = None,
    closes: bool = False,
) -> Any:
    """Run `work()` in a child process; its answer is of JSON's types.

    :param cgroup: descriptor of the folder of a cgroup (version 2) that the child is to be in.
    :param closes: whether the child closes this process's files first: one that a tenant's file system never answers
        cannot be ended, and would have our locks for ever.
    :raises HeteroError: what the work raised (its OSErrors too), or that it ended without an answer.
    :raises TimedOut: it was killed at the deadline.
    """
    return Child(work, cgroup, closes).answer(deadline, thing, remedy)


class Child:
    """A child process that works until its answer is asked for; fileno() becomes readable once there is an answer.

    :param work: as in in_child.
    :param cgroup: as in in_child.
    :param closes: as in in_child.
    """

    def __init__(self, work: Callable[[], Any], cgroup: int | None = None, closes: bool = False) -> None:
        with _FORKING:
            self._reader, writer = os.pipe()
            try:
                self._pid = os.fork() if cgroup is None else _fork_into(cgroup)
            except OSError:  # no more processes (pids.max, RLIMIT_NPROC)
                os.close(self._reader)
                os.close(writer)
                raise
            if self._pid == 0:
                _FORKING.release()  # for children of its own
                os.close(self._reader)
                if closes:
                    _close_all_but(writer)
                _child(work, writer)
            os.close(writer)

    def fileno(self) -> int:
        return self._reader

    def answer(self, deadline: Deadline, thing: str, remedy: str) -> Any:
        """Return what the work returned; parameters and errors are those of in_child."""
        try:
            answer = _collect(self._reader, thing, deadline)
        except BaseException:
            os.kill(self._pid, signal.SIGKILL)
            _reap(self._pid)
            raise
        finally:
            os.close(self._reader)
        os.waitpid(self._pid, 0)  # it has closed its files: it ends
        if not answer:
            raise HeteroError("work inside it ended without an answer", thing, remedy)
        value = json.loads(answer.decode())
        if "failed" in value:
            what = value["failed"]
            what = what[len(thing) + 2 :] if what.startswith(f"{thing}: ") else what
            raise HeteroError(what, thing, remedy if value["bare"] else None)
        return value["done"]


def _fork_into(cgroup: int) -> int:
    """Fork with the child in another cgroup; return as os.fork.

    To move the child there after a fork takes the kernel 10 ms on an idle machine: it waits until no process of the
    system is being forked or is ending (cgroup_threadgroup_rwsem).
    """
    child = _clone_into(cgroup) if _alone() else None
    if child is None:
        child = os.fork()
        if child == 0:
            procs = os.open("cgroup.procs", os.O_WRONLY, dir_fd=cgroup)
            os.write(procs, b"0")
            os.close(procs)
    return child


def _clone_into(cgroup: int) -> int | None:
    """Fork into a cgroup by clone3(2); return as os.fork; None where the kernel lacks that or the cgroup is full."""
    # struct clone_args; PyDLL keeps the interpreter's lock, as os.fork does
    arguments = struct.pack("=11Q", CLONE_INTO_CGROUP, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, cgroup)
    syscall = ctypes.PyDLL(None, use_errno=True).syscall
    syscall.restype = ctypes.c_long
    child = syscall(ctypes.c_long(CLONE3), arguments, ctypes.c_size_t(len(arguments)))
    if child < 0 and ctypes.get_errno() not in (*NO_CLONE3, FULL):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "clone3")
    return child if child >= 0 else None


def _alone() -> bool:
    """Return whether this process has no other thread; wait up to ENDING_TIME for threads that are ending.

    A lock of the C library that another thread holds would stay locked in the child of a bare clone3; fork(2) frees it.
    """
    end = Deadline(ENDING_TIME)
    while len(os.listdir("/proc/self/task")) > 1:
        if end.passed:
            return False
        end.nap(0.0005)
    return True


def _close_all_but(kept: int) -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) != kept:
            with suppress(OSError):  # that of the list itself
                os.close(int(name))


def _child(work: Callable[[], Any], writer: int) -> NoReturn:
    """Run the work, write its answer and end the process, whatever happens: the caller's code must not go on twice."""
    try:
        # The child's root directory may be a tenant's by the time an error is put into words. The C library would look
        # there for its messages in the user's language, and for a program that converts their character set.
        locale.setlocale(locale.LC_ALL, "C")
        try:
            answer = {"done": work()}
        except OSError as error:
            answer = {"failed": f"{error.filename or 'its files'}: {error.strerror or error}", "bare": True}
        except HeteroError as error:
            answer = {"failed": str(error), "bare": False}
        data = json.dumps(answer).encode()
        while data:
            data = data[os.write(writer, data) :]
    except BaseException as error:
        os.write(2, _where(error).encode())  # the caller learns only that there was no answer
        raise
    finally:
        os._exit(0)


def _where(error: BaseException) -> str:
    """Return a traceback without the lines of the source: files are not read, for the root may be a tenant's by now."""
    calls, text = error.__traceback__, f"{type(error).__name__}: {error}\n"
    while calls:
        code = calls.tb_frame.f_code
        text += f"  in {code.co_name}, line {calls.tb_lineno} of {code.co_filename}\n"
        calls = calls.tb_next
    return text


def _collect(reader: int, thing: str, deadline: Deadline) -> bytes:
    answer = bytearray()
    while True:
        if not readable([reader], deadline.left):
            raise TimedOut(f"work inside it took longer than {deadline.seconds:g} s", thing, "see dmesg")
        chunk = os.read(reader, 65536)
        if not chunk:
            return bytes(answer)
        answer += chunk
        if len(answer) > MOST:
            raise HeteroError(f"work inside it answered more than {MOST >> 20} MiB", thing, "see what is in it")


def _reap(child: int) -> None:
    end = Deadline(END_TIME)
    while os.waitpid(child, os.WNOHANG)[0] == 0 and not end.passed:
        end.nap(0.001)
