# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an instance is called, by the CI job that asks for it. Two jobs never have one name, and a job that is run again
has its own.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket

#: The longest name of an instance.
LONGEST = 63
#: When a process began of which that cannot be told (`began`).
UNKNOWN = "?"
#: A leg of a matrix has the run's id and the job's name of all others, and the runner for itself.
GITHUB = ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID", "GITHUB_JOB", "RUNNER_NAME")
#: Branches of one build that run side by side are on different agents, and each agent counts its executors from 0.
JENKINS = ("JENKINS_URL", "JOB_NAME", "BUILD_NUMBER", "NODE_NAME", "EXECUTOR_NUMBER")
#: What tells one job from all others, by CI: the prefix of its names, the variables, and which of them people know.
JOBS = (
    ("gitlab", ("CI_SERVER_HOST", "CI_JOB_ID"), "CI_JOB_ID"),
    ("github", GITHUB, "GITHUB_RUN_ID"),
    ("jenkins", JENKINS, "BUILD_NUMBER"),
    ("buildkite", ("BUILDKITE_ORGANIZATION_SLUG", "BUILDKITE_JOB_ID"), "BUILDKITE_JOB_ID"),
)


def name_of(environ, part="", only=""):
    """Return the name of the instance of the CI job with this environment.

    Outside of a CI it is this shell's, or where a part is named, the part's of this user on this machine; "" where no
    shell tells this caller from others.

    :param part: tells several boards of one job apart.
    :param only: the CI that is meant, whatever variables of another one a job has set; any where it is empty.
    """
    for prefix, keys, known in JOBS:
        if environ.get(known) and only in ("", prefix):
            return job_name(prefix, environ[known], [environ.get(key, "") for key in keys], part)
    user, machine = str(os.getuid()), socket.gethostname()
    if part:
        return job_name("local", environ.get("USER") or user, [machine, user], part)
    if environ.get("INVOCATION_ID") and environ.get("SYSTEMD_EXEC_PID") == str(os.getpid()):  # systemd.exec(5)
        return job_name("service", environ["INVOCATION_ID"][:8], [machine, environ["INVOCATION_ID"]])
    shell = os.getppid()
    since = began(shell) if _is_shell(shell) else ""
    return "" if since in ("", UNKNOWN) else job_name("shell", str(shell), [machine, str(shell), since])


def name_of_process():
    """Return the name of an instance that this process alone has, takes and gives back."""
    own = str(os.getpid())
    return job_name("process", own, [socket.gethostname(), own, began(own)])


def _is_shell(parent):
    """Return whether the parent of this process is one that a single caller has: the services that pid 1 starts have it
    in common, as those of a user's systemd, the windows of a terminal and `docker exec` have theirs. They begin a
    session for each. Pid 1 also gets whose shell has ended.
    """
    session = os.getsid(0)
    try:
        return parent > 0 and session != os.getpid() and (parent != 1 or os.getsid(1) == session)
    except OSError:
        return False


def job_name(prefix, known, parts, part=""):
    """Return a name that is one job's, and shows people which.

    :param known: what people know the job by.
    :param parts: texts that together are this job's alone.
    """
    texts = "\0".join([prefix, *parts, part]).encode(errors="surrogateescape")  # a variable may have any bytes
    own = hashlib.sha256(texts).hexdigest()[:8]
    shown = re.sub("[^a-z0-9]+", "-", f"{prefix}-{known}".lower())[: LONGEST - 9].strip("-")
    return f"{shown}-{own}"


def began(pid):
    """Return when a process began, in the kernel's ticks, as ids of processes are given again; "" if it has ended,
    UNKNOWN where that cannot be told.
    """
    try:
        state, *others = _stated(pid) or "X"
    except OSError:
        return UNKNOWN
    return "" if state in "ZX" else others[18]  # proc(5): 3 is the state, 22 the start


def goes_on(pid, since):
    """Return whether a process that began then has not ended; True also where that cannot be told.

    :param since: what `began` said of it.
    """
    now = began(pid)
    return bool(since and now) and (now == since or UNKNOWN in (since, now))


def spent(session):
    """Return how long the processor has worked for the processes of a session, in the kernel's ticks; None where that
    cannot be told.
    """
    try:
        stated = [_stated(pid) for pid in os.listdir("/proc") if pid.isdecimal()]
    except OSError:
        return None
    own = [one for one in stated if one[3:4] == [str(session)]]  # proc(5): 6 is the session
    return sum(int(one[11]) + int(one[12]) for one in own)  # 14 and 15 are the user's and the system's


def _stated(pid):
    """Return what /proc/PID/stat has from its third value on; [] where there is no such process.

    :raises OSError: it cannot be told: /proc is not mounted, or the machine has no memory or files left to read it.
    """
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        if os.path.exists("/proc/self/stat"):
            return []
        raise
