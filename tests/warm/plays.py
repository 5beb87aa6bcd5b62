# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ansible-playbook, and what it calls of played nodes, forked by programs that have imported what these import.

Only where HETERO_BUILDS says that plays share what they would make anew (tests/builds.py). Ansible reads its settings
as it is imported, so each environment has servers of its own. Its first plays are the command itself, as a sample in
each process of tests; and so are all in an environment that has few. What is imported is so by each such process anew.
"""

from __future__ import annotations

import inspect
import os
import platform
import socket
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path

from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.tools import CALL, FOLDER
from ansible_collections.hetero.compute.tests.warm.ansible_server import CLONE
from ansible_collections.hetero.compute.tests.warm.forking import ask

HERE = Path(__file__).parent
#: Variables of the tests' own plugins, of a shell and of pytest: plays that differ in these share their servers.
OWN = {"PROXY_ROOTS", "PROXY_LATENCY", "PROXY_COMMANDS", "PWD", "PYTEST_CURRENT_TEST"}
#: The servers of so many environments are kept, 100 MB each; those that were asked least lately go.
MOST = 3
#: So many plays of an environment are the command itself before it has servers.
FEW = 2
PARAMETERS = list(inspect.signature(subprocess.Popen._execute_child).parameters)[1:]
#: Environments: how many plays they have had, and the servers of some, those that were asked last at the end.
PLAYS, SERVERS = Counter(), {}
#: Says what modules import that does not lie in the copy that they do.
BESIDE = """
import importlib, os, pkgutil, sys
sys.path.insert(0, sys.argv[1])
for found in pkgutil.iter_modules([os.path.join(sys.argv[1], "hetero", "modules")]):
    importlib.import_module(f"hetero.modules.{found.name}")
print(*(name for name in sys.modules if name.partition(".")[0] not in ("ansible", "hetero")))
"""


def write_names(path, copy):
    """Write which modules of Python a copy of the collection needs, for node_server.py."""
    with open(path, "w", encoding="utf-8") as names:
        subprocess.run(["/usr/bin/python3", "-I", "-c", BESIDE, copy], check=True, stdout=names)


class Servers:
    """The two programs of an environment. They end once this process closes its ends of their channels.

    :param copies: what nodes have as FOLDER, in a root of its own; None where their calls are not to be served.
    """

    def __init__(self, env, cwd, copies):
        self._cwd = cwd
        self.folder = tempfile.TemporaryDirectory(dir=env["HETERO_BUILDS"])
        self.processes, self.channels, self.more = [], [], {}
        self._lock = threading.Lock()
        if copies:
            self.more["HETERO_NODE_CALLS"] = self._serve_nodes(env, copies)
        self._plays = self._begin(env, [sys.executable, HERE / "ansible_server.py"])

    def _serve_nodes(self, env, copies):
        """The address of what serves calls of modules."""
        address = f"{self.folder.name}/node"
        (copy,) = copies.iterdir()
        words = [str(copies).removesuffix(FOLDER), f"{FOLDER}/{copy.name}", CALL]
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(address)
            listener.listen(100)
            self._begin(env, ["/usr/bin/python3", "-I", HERE / "node_server.py"], [listener.fileno()], words)
        return address

    def _begin(self, env, program, files=(), words=()):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            given = [theirs.fileno(), *files]
            argv = [*program, *map(str, given), *words]
            how = dict(env=env, cwd=self._cwd, stdin=subprocess.DEVNULL, pass_fds=given)
            self.processes.append(subprocess.Popen(argv, **how))
        self.channels.append(ours)
        return ours

    def play(self, argv, env, cwd, files):
        """The id of a play, which is a child of this process.

        :param files: descriptors of its standard input, output and error.
        """
        request = dict(argv=list(map(os.fspath, argv)), env=dict(env, **self.more), cwd=os.fspath(cwd))
        with self._lock:
            ask(self._plays, request, files)
            return int(self._plays.recv(100))

    def close(self):
        for channel in self.channels:
            channel.close()
        for process in self.processes:
            process.wait(60)
        self.folder.cleanup()


def servers_for(env, cwd, copies):
    """The servers for this environment; None for its first plays.

    :param cwd: where the play begins: the place of its settings, if they are there.

    :param copies: makes what Servers take.
    """
    if not (env.get("HETERO_BUILDS") and platform.machine() in CLONE):
        return None
    # they are children of this process, and are where it is now
    here = [os.getpid(), *(os.stat(f"/proc/thread-self/ns/{kind}").st_ino for kind in ("mnt", "net"))]
    place = os.fspath(cwd) if os.path.exists(os.path.join(cwd, "ansible.cfg")) else "/"
    same = (*here, place, frozenset((name, value) for name, value in env.items() if name not in OWN))
    PLAYS[same] += 1
    if PLAYS[same] <= FEW:
        return None
    SERVERS[same] = SERVERS.pop(same, None) or Servers(env, place, copies())
    if len(SERVERS) > MOST:
        SERVERS.pop(next(iter(SERVERS))).close()
    return SERVERS[same]


def close_servers():
    PLAYS.clear()
    while SERVERS:
        SERVERS.popitem()[1].close()


class Play(subprocess.Popen):
    """`ansible-playbook` whose `cwd`, `env` and three standard files are given.

    :param copies: makes what nodes have of the collection (Servers).
    """

    def __init__(self, argv, copies=lambda: None, **how):
        self._copies = copies
        super().__init__(argv, **how)

    def _execute_child(self, *given):
        how = dict(zip(PARAMETERS, given))
        servers = servers_for(how["env"], how["cwd"], self._copies)
        if servers is None:
            super()._execute_child(*given)
            return
        files = [how["p2cread"], how["c2pwrite"], how["errwrite"]]
        self.pid = servers.play(how["args"], how["env"], how["cwd"], files)
        self._child_created = True
        pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(how[name] for name in pipes))


def run(argv, cwd, env, limit):
    """(exit code, standard output, standard error) of a play whose nodes are none of ours."""
    pipes = dict(stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with Play(argv, cwd=cwd, env=env, text=True, **pipes) as play:
        try:
            said = play.communicate(timeout=limit)
        except BaseException:
            play.kill()
            raise
    return (play.returncode, *said)
