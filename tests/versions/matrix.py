# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every ansible-core that the collection supports, on every Python it runs on, with nodes of every Python it manages.

Without arguments all of them, `2.16 2.21` those two. A pair that a machine can be made for is run, or this fails; for
the rest the table says that there was no machine. Each ansible-core runs every module with one of its pairs at least,
and so does each node's Python; the other pairs run a module of each of the collection's parts. With one of its pairs
each ansible-core shows all pages, and finds all that a module imports.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import cores
import machines

LOGS = machines.PROJECT / "build" / "logs" / "versions"
#: What Python 3.8 came for; older nodes are not managed (README.md).
OLDEST_NODE = "3.8"
#: Besides ansible-core: what a controller needs (requirements.txt) and what its tests are written with.
PACKAGES = ("netaddr", "pexpect", "pytest", "hypothesis")
#: As /hetero/project/tests has it. Of the inventory's tests those whose outcome ansible-core has a part in.
ON_CONTROLLERS = (
    "versions/checks/test_controller.py::test_controller_reads_every_plugin",
    "versions/checks/test_controller.py::test_controller_reads_every_playbook",
    "versions/checks/test_controller.py::test_controller_is_what_was_asked_for",
    "unit/inventory/test_nodes.py::test_the_sample_as_hosts_groups_and_variables",
    "unit/inventory/test_nodes.py::test_proxies_states_compute_hosts_and_the_users_own_groups",
    "unit/inventory/test_nodes.py::test_words_from_outside_are_never_templates",
    "unit/inventory/test_nodes.py::test_words_from_outside_say_not_what_stands_for_braces",
)
#: What hangs on ansible-core alone.
ONCE_A_CORE = (
    "versions/checks/test_controller.py::test_controller_has_a_page_of_every_plugin",
    "versions/checks/test_modules_on_a_node.py::test_node_that_is_not_set_up_is_sent_modules",
)
EVERY_MODULE = "versions/checks/test_modules_on_a_node.py::test_node_runs_every_module"
SOME_MODULES = "versions/checks/test_modules_on_a_node.py::test_node_runs_a_module_of_each_part"
#: Cases of every day (tests/turns.py): one that is left out counts as lost.
EVERY_DAY = ["-m", "long or not long"]


class Pair(NamedTuple):
    """ansible-core on a controller's Python, with nodes of Python `node`."""

    core: cores.Core
    controller: str
    node: str

    @property
    def name(self):
        return f"{self.core.minor}-python{self.controller}-node{self.node}"


class Outcome(NamedTuple):
    passed: int
    count: int
    seconds: float

    def __str__(self):
        return f"{self.passed}/{self.count} {self.seconds:.0f} s"


def pairs(core):
    """Each controller with nodes like itself, and the other Pythons of nodes with the oldest of the controllers."""
    controllers = [python for python in core.controllers if python in machines.RELEASES]
    nodes = [python for python in core.targets if python in machines.RELEASES and python not in controllers]
    return [Pair(core, one, one) for one in controllers] + [Pair(core, controllers[0], one) for one in nodes]


def in_full(todo):
    """The pairs that run every module: what no newer ansible-core was run with, and one of each ansible-core.

    What a module does hangs on the node's Python, and how it gets there on ansible-core: seldom on both.
    """
    full, met = set(), set()
    for core in reversed(list(dict.fromkeys(pair.core for pair in todo))):
        its = [pair for pair in todo if pair.core == core]
        full.update([pair for pair in its if pair.node not in met] or its[:1])
        met.update(pair.node for pair in its)
    return full


def tests(pair, every_module):
    """Names of the tests of this pair, as pytest takes them in the project's folder."""
    names = [EVERY_MODULE if every_module else SOME_MODULES]
    if pair.controller == pair.node:
        names += ON_CONTROLLERS
    if pair == pairs(pair.core)[0]:
        names += ONCE_A_CORE
    return [f"tests/{name}" for name in names]


def no_machine(core):
    """Pythons of this core that nothing was run on."""
    known = [python for python in core.targets if cores.number(python) >= cores.number(OLDEST_NODE)]
    return [python for python in known if python not in machines.RELEASES]


def environment(pair):
    """The folder of a virtual environment as pip makes it for a user today; made when it is not there."""
    key = hashlib.sha1("\0".join([pair.core.version, *PACKAGES]).encode()).hexdigest()
    folder = machines.cache() / "versions" / f"python-{pair.controller}-{key}"
    with locked(folder.name):
        if (folder / "ready").exists():
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        place = "/hetero/environment"
        pip = f"{place}/bin/pip install --no-compile --no-cache-dir"
        words = f"python3 -m venv {place} && {pip} ansible-core=={pair.core.version} {' '.join(PACKAGES)}"
        with (LOGS / f"{pair.core.minor}-python{pair.controller}-pip.log").open("w") as log:
            argv, env = machines.inside(machines.root(pair.controller, log), folder, ["sh", "-c", words], online=True)
            subprocess.run(argv, env=env, check=True, stdout=log, stderr=log, stdin=subprocess.DEVNULL, timeout=1800)
        (folder / "ready").touch()
    return folder


@contextlib.contextmanager
def locked(name):
    """Two runs at a time may want the same thing made."""
    with (machines.cache() / "versions" / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run(pair, every_module):
    """The Outcome of all checks of this pair."""
    folder = environment(pair)
    with (LOGS / f"{pair.name}.log").open("w") as log:
        controller = machines.root(pair.controller, log)
        node = machines.root(pair.node, log)
        same = pair.controller == pair.node
        pytest = ["/hetero/environment/bin/python", "-m", "pytest", "-p", "no:cacheprovider"]
        argv, env = machines.inside(
            controller,
            folder,
            ["env", "--chdir=/hetero/project", *pytest, *EVERY_DAY, "--durations=10", *tests(pair, every_module)],
            node=None if same else node,
            HETERO_NODE="/" if same else "/hetero/node",
            HETERO_NODE_PYTHON=pair.node,
            PYTHONPATH="/hetero/project/build",
        )
        began = time.monotonic()
        try:
            subprocess.run(argv, env=env, check=False, stdout=log, stderr=log, stdin=subprocess.DEVNULL, timeout=3000)
        except subprocess.TimeoutExpired:
            print("ran longer than 3000 s", file=log)
    output = (LOGS / f"{pair.name}.log").read_text(errors="replace")
    last = re.findall(r"^=+ (.*) in [0-9.]+s.* =+$", output, re.MULTILINE)
    counts = {word: int(number) for number, word in re.findall(r"([0-9]+) (\w+)", last[-1] if last else "")}
    passed = counts.get("passed", 0)
    # a skipped test is a test lost, and a run without a last line was cut off
    count = sum(counts.values()) if last else 1
    outcome = Outcome(passed, count, time.monotonic() - began)
    print(f"{pair.name:<28} {outcome}", flush=True)
    return outcome


def table(outcomes):
    """Lines for people: one a core and Python of its controller, its nodes' Pythons behind it."""
    lines = [f"{'ansible-core':<13} {'controller':<24} {'nodes: tests passed of all, seconds'}"]
    for core in dict.fromkeys(pair.core for pair in outcomes):
        for python in [one for one in core.controllers if one in machines.RELEASES]:
            row = [
                f"{pair.node}: {outcome}"
                for pair, outcome in outcomes.items()
                if (pair.core, pair.controller) == (core, python)
            ]
            name = f"{python} {machines.RELEASES[python][0]}"
            lines.append(f"{core.version:<13} {name:<24} {', '.join(row)}")
        if no_machine(core):
            lines.append(f"{core.version:<13} no machine, so nothing was run: Python {', '.join(no_machine(core))}")
    return lines


def main(minors):
    LOGS.mkdir(parents=True, exist_ok=True)
    (machines.cache() / "versions").mkdir(exist_ok=True)
    found = cores.released(machines.cache() / "versions")
    wanted = [core for core in found if not minors or core.minor in minors]
    if not wanted:
        sys.exit(f"no such ansible-core: {' '.join(minors)}; there are: {' '.join(core.minor for core in found)}")
    todo = [pair for core in wanted for pair in pairs(core)]
    with (LOGS / "machines.log").open("w") as log:
        # one after the other: Ubuntu's need the keys that another one has
        for python in sorted({pair.node for pair in todo}, key=cores.number):
            machines.root(python, log)
    full = in_full(todo)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = dict(zip(todo, pool.map(lambda pair: run(pair, pair in full), todo)))
    lines = table(outcomes)
    (LOGS / "table.txt").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    passed = [pair for pair, outcome in outcomes.items() if 0 < outcome.count == outcome.passed]
    print(f"{len(passed)} of {len(todo)} pairs passed, {len(wanted)} releases of ansible-core, {len(full)} in full")
    return 0 if len(passed) == len(todo) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
