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

    Outside of a CI it is this shell's, or where a part is named, the part's of this user on this machine.

    :param part: tells several boards of one job apart.
    :param only: the CI that is meant, whatever variables of another one a job has set; any where it is empty.
    """
    for prefix, keys, known in JOBS:
        if environ.get(known) and only in ("", prefix):
            return job_name(prefix, environ[known], [environ.get(key, "") for key in keys], part)
    user, machine, shell = str(os.getuid()), socket.gethostname(), os.getppid()
    if part:
        return job_name("local", environ.get("USER") or user, [machine, user], part)
    return job_name("shell", str(shell), [machine, str(shell), began(shell)])


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
    """Return when a process began, in the kernel's ticks, as ids of processes are given again; "" if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            state, *others = file.read().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state in "ZX" else others[18]  # proc(5): 3 is the state, 22 the start
