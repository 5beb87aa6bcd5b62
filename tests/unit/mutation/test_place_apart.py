# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where faulty code is run, as root. If these fail, a mutant can end processes, close devices or delete files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[2]

#: What a fault can do, each tried; what did not end with an error, and what is seen, comes back.
HARM = """
import json, os, signal, socket, sys
from pathlib import Path
from mutants.apart import apart

def tried():
    assert os.getpid() == 1
    done = []
    for path in json.loads(sys.argv[2]):
        try:
            Path(path).write_text("")
            done.append(path)
        except OSError:
            pass
    for point in json.loads(sys.argv[3]):
        os.mkdir(f"{point}/hetero-made-by-a-mutant")
    seen = [name for point in json.loads(sys.argv[3]) for name in os.listdir(point) if name.startswith("hetero-")]
    # an unprivileged container mounts a /proc of its own
    if os.system("unshare --user --map-root-user --pid --fork --mount-proc true"):
        done.append("no /proc of its own")
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        pass
    Path(sys.argv[1]).write_text(json.dumps([done, seen, [name for _number, name in socket.if_nameindex()]]))

apart(tried)
"""


#: Controllers of cgroup v1 that liblxc limits containers with: else no test of a container is asked.
LIMITED = ("cpu", "devices", "memory", "pids")


def cgroups():
    lines = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [words[4] for words in lines if "cgroup2" in words or os.path.basename(words[4]) in LIMITED]


@pytest.mark.skipif(os.geteuid() != 0, reason="who is not root can do no harm")
def test_a_fault_reaches_nothing_of_this_machine(tmp_path):
    """A mutant once denied a device to the whole machine: its fault was the check for that."""
    harmful = ["/etc/hetero-mutant", "/root/hetero-mutant", "/usr/hetero-mutant", "/var/lib/hetero-mutant"]
    harmful += [str(TESTS / "hetero-mutant"), "/proc/sys/kernel/printk"]
    argv = [sys.executable, "-c", HARM, tmp_path / "said", json.dumps(harmful), json.dumps(cgroups())]
    with subprocess.Popen(argv, env=dict(os.environ, PYTHONPATH=str(TESTS))) as process:
        assert process.wait() == 0
    done, seen, networks = json.loads((tmp_path / "said").read_text())
    assert done == []
    # its root is an empty cgroup, and what it made there is not in the machine's, nor is its own left
    assert seen == ["hetero-made-by-a-mutant"] * len(cgroups())
    assert networks == ["lo"]
    left = [name for point in cgroups() for name in os.listdir(point)]
    assert not {"hetero-made-by-a-mutant", f"hetero-mutants-{process.pid}"} & set(left)
    assert not [path for path in harmful[:-1] if os.path.exists(path)]
