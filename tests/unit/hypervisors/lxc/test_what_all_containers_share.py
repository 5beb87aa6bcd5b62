# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Root in a container takes all that the kernel counts for it and for the host's root together: a namespace of users
stands for the host, one in it for a container, and the kernel is this one.

Lost without: all other containers, which start no more, and the host's own services, to one tenant's loop.

Tests roles/gpu_lxc/templates/hetero-gpu-restore.service.j2.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

#: One that every account may run.
PYTHON = "/usr/bin/python3"
UNIT = Path(__file__).parents[4] / "roles" / "gpu_lxc" / "templates" / "hetero-gpu-restore.service.j2"
#: What the host has of each at first, and what its container takes.
HOST, MANY = 20, 30
#: Verb `host` sets the bounds, runs a line of shell, begins a container, and says what it still gets itself.
PROGRAM = """
import ctypes, os, subprocess, sys

libc, USER = ctypes.CDLL(None), "/proc/sys/user/max_"
KINDS = dict(inotify_instances=lambda: libc.inotify_init1(0) >= 0, uts_namespaces=lambda: libc.unshare(0x04000000) == 0)


def takes():
    held = [os.open("/proc/self/ns/uts", os.O_RDONLY)] if KINDS["uts_namespaces"]() else []
    return held, KINDS["inotify_instances"]()


if sys.argv[1] == "host":
    for kind in KINDS:
        with open(USER + kind, "w") as bound:
            bound.write(sys.argv[2])
    subprocess.run(["/bin/sh", "-c", sys.argv[4]], stderr=subprocess.DEVNULL)
    words = ["unshare", "--user", "--map-root-user", sys.executable, "-c", sys.argv[5], "container", sys.argv[3]]
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with subprocess.Popen(words, **pipes) as container:
        container.stdout.readline()
        print(*(name for name, gets in KINDS.items() if not gets()))
        container.stdin.close()
else:
    took = [takes() for _one in range(int(sys.argv[2]))]
    print("took it", flush=True)
    sys.stdin.read()
"""


def lacks(line):
    """What a host does not get any more whose container takes MANY of each. An account of its own is root there."""
    words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "unshare", "--user", "--net"]
    words += ["--map-root-user", PYTHON, "-c", PROGRAM, "host", str(HOST), str(MANY), line, PROGRAM]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, cwd="/", check=False)
    if "unshare failed" in done.stderr:
        pytest.skip("no namespaces of users for accounts here")
    assert not done.returncode, done.stderr
    return done.stdout.split()


@pytest.mark.skipif(os.geteuid() != 0, reason="another account needs root: run as root")
def test_one_container_takes_nothing_that_the_host_and_others_need():
    text = UNIT.read_text(encoding="utf-8").replace("\\\n", "")
    (line,) = re.findall(r"^ExecStartPre=-/bin/sh -c '([^']*)'$", text, re.MULTILINE)
    assert lacks("") == ["inotify_instances", "uts_namespaces"], "without it, its container has it all"
    assert lacks(line.replace("$$", "$")) == []
