# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that has no threads, processes or open files left. If these fail, an operator reads a traceback where a limit
has to be raised, and does not learn at which node.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, naming_limits

SMALL = """
import resource, sys
from concurrent.futures import ThreadPoolExecutor
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import job, module

class Played:
    params, check_mode = {}, False
    def fail_json(self, **result):
        import json
        print(json.dumps(result))
        sys.exit(1)

def threads(*_):
    resource.setrlimit(resource.RLIMIT_AS, (1, 1))
    with ThreadPoolExecutor(4) as pool:
        return dict(said=list(pool.map(str, range(4))))

def files(*_):
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
    return dict(said=open("/dev/null").read())

def prepare():
    return sys.argv[2], dict(limit=5)

def processes():
    import errno, os
    def none_left():
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    os.fork = none_left
    job.in_background(Played(), prepare, lambda: dict(changed=False))

if sys.argv[1] == "processes":
    processes()
module.run(Played(), dict(threads=threads, files=files)[sys.argv[1]])
"""


@pytest.mark.parametrize(
    ("least", "what", "limit"),
    [
        ("threads", "processes or threads", "pids.max"),
        ("processes", "processes or threads", "ulimit -u"),
        ("files", "open files for one process", "ulimit -n"),
    ],
)
def test_what_there_is_no_more_of_is_said_with_the_node_and_the_limit(least, what, limit, tmp_path):
    argv = [sys.executable, "-c", SMALL, least, str(tmp_path)]
    # what records which lines ran has no file to do so either, and says that
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    said = json.loads(done.stdout)["msg"]
    assert f"node {os.uname().nodename}: has no {what} left" in said
    assert limit in said


def test_memory_that_is_used_up_is_said():
    with pytest.raises(HeteroError, match="node p1: has no memory left") as error, naming_limits("node p1"):
        raise MemoryError
    assert "memory.max" in error.value.remedy


@pytest.mark.parametrize("fault", [RuntimeError("a fault"), OSError(errno.EIO, "a disk"), ValueError("a fault")])
def test_other_faults_stay_what_they_are(fault):
    with pytest.raises(type(fault)) as error, naming_limits("node p1"):
        raise fault
    assert error.value is fault
