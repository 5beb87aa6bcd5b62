# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lab as a user has it: its playbooks, its instances, and looks at it from outside."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from builds import shared

from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.call import BEGUN
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.tools import CALL, FOLDER

ROOT = Path(__file__).resolve().parents[1]
ANSIBLE = Path(sys.executable).parent
FLAVOR = "tp64.8x8"


@dataclass
class Played:
    """A play that ended: its exit code, what it printed, how many tasks changed something."""

    rc: int
    output: str

    @property
    def changed(self):
        return sum(map(int, re.findall(r" changed=(\d+) ", self.output)))

    def phases(self, instance):
        """The progress lines of an instance, phase → text."""
        return dict(re.findall(rf"^{instance} +board\d+ +(\w+) +(.*?)(?: +[\d.]+ s)?$", self.output, re.M))

    def board(self, instance):
        return int(re.search(rf"^{instance} is running on board(\d+)", self.output, re.M)[1])


class Lab:
    """Playbooks and looks from outside on one lab."""

    def __init__(self, folder):
        self.folder = folder
        self.env = dict(
            os.environ,
            ANSIBLE_COLLECTIONS_PATH=str(ROOT / "build"),
            ANSIBLE_CONFIG=str(ROOT / "ansible.cfg"),
            # Ansible leaves flushing to the system, which through a pipe keeps lines back until there are 8 KB of them.
            PYTHONUNBUFFERED="1",
            **shared(),
        )
        self.env.pop("ANSIBLE_INVENTORY", None)
        self._plays = []

    def argv(self, name, flags=(), **extra):
        """The words of a play. Text goes as a user types it, anything else (lists, dicts) as JSON."""
        words = ["-e", f"lab_folder={self.folder}"]
        for key, value in extra.items():
            words += ["-e", f"{key}={value}" if not isinstance(value, (list, dict)) else json.dumps({key: value})]
        return [ANSIBLE / "ansible-playbook", "-i", self.folder / "inventory", f"hetero.compute.{name}", *flags, *words]

    def start(self, name, **extra):
        play = subprocess.Popen(
            self.argv(name, **extra),
            cwd=ROOT,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._plays.append(play)
        return play

    def end(self, process, timeout=1800):
        try:
            output, _nothing = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return Played(process.returncode, output)

    def play(self, name, expect=0, **extra):
        played = self.down(**extra) if name == "lab_down" else self.end(self.start(name, **extra))
        assert expect is None or played.rc == expect, played.output
        return played

    def down(self, timeout=1800, **extra):
        """Take the lab down. An interrupted tests/run waits while that says anything: it is written where it looks.

        Plays that still run, of a test that was interrupted, are ended first: lab_up would go on beside this.
        """
        for play in self._plays:
            if play.poll() is None:
                os.killpg(play.pid, signal.SIGKILL)
                play.wait()
        self._plays.clear()
        path = os.environ.get("HETERO_TIDYING")
        with open(path, "a+b") if path else tempfile.TemporaryFile() as said:
            began = said.seek(0, os.SEEK_END)
            argv = self.argv("lab_down", **extra)
            rc = subprocess.call(
                argv, cwd=ROOT, env=self.env, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT,
                start_new_session=True, timeout=timeout,
            )  # fmt: skip
            said.seek(began)
            return Played(rc, said.read().decode(errors="replace"))

    def provision(self, instance, expect=0, **extra):
        return self.play("provision_instance", expect, instance=instance, flavor=FLAVOR, **extra)

    def terminate(self, instance):
        return self.play("terminate_instance", instance=instance, force="true")

    def ssh(self, instance, command, timeout=300, stdin=b""):
        argv = ["ssh", "-F", self.folder / "ssh" / instance, instance, command]
        return subprocess.run(argv, check=True, input=stdin, stdout=subprocess.PIPE, timeout=timeout).stdout.decode()

    @property
    def description(self):
        return json.loads((self.folder / "lab.json").read_text())

    def inside(self, *argv, check=True, timeout=600, **more):
        """A command in the lab's network namespace."""
        namespace = f"/run/netns/{self.description['namespace']}"
        return subprocess.run(
            ["nsenter", f"--net={namespace}", *argv],
            check=check,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            **more,
        )

    def on_proxy(self, command):
        """A command on the proxy node, by the way in that its inventory entry names."""
        return self.on_node("proxy1", command).stdout

    def try_on_proxy(self, command):
        """The same on a node that may be down; None where it is."""
        done = self.on_node("proxy1", command, check=False)
        return None if done.returncode else done.stdout

    def forget_failures(self):
        """Let all boards be chosen in their order again, whatever a test made of them."""
        sql = "DELETE FROM health; UPDATE boards SET score = 100"
        code = f"import sqlite3; sqlite3.connect('/var/lib/hetero/state.db').executescript('{sql}')"
        # before a first claim there is none
        self.on_proxy(f'test ! -e /var/lib/hetero/state.db || python3 -c "{code}"')

    def on_node(self, name, command, check=True, timeout=600, **more):
        """A command on a node, as root; a CompletedProcess."""
        address = self.description["nodes"][name]["networks"][0]["address"].partition("/")[0]
        key = ["-i", self.folder / "ssh" / "id_ed25519", "-o", f"UserKnownHostsFile={self.folder}/ssh/known_hosts"]
        argv = ["ssh", *key, "-o", "ConnectTimeout=5", f"root@{address}", command]
        return self.inside(*argv, check=check, timeout=timeout, **more)

    def machine(self, board):
        """Process id of the machine that plays this board, None while its outlet is off."""
        for pdu, settings in self.description["pdus"].items():
            for outlet, fed in settings["outlets"].items():
                if fed["name"] == f"board{board}":
                    return json.loads((self.folder / "run" / f"{pdu}.json").read_text())["outlets"][outlet].get("pid")
        raise LookupError(board)

    def module(self, name, /, node="proxy1", **arguments):
        """One module, run from its node's copy of the collection, as plays do it; its result."""
        request = dict(module=name, arguments=json.dumps(dict(ANSIBLE_MODULE_ARGS=arguments)), profile="legacy")
        command = f"/usr/bin/python3 -I {FOLDER}/*/{CALL}"
        done = self.on_node(node, command, check=False, timeout=1200, input=json.dumps(request))
        said = done.stdout
        assert done.returncode == 0, said
        return json.loads(said.partition(f"{BEGUN}\n")[2])

    def boot_ids(self, instances):
        return {name: self.ssh(name, "cat /proc/sys/kernel/random/boot_id") for name in instances}

    def start_proxy(self):
        """Start the proxy node that was stopped, where it is, and wait for its ssh, as the lab does."""
        script = ROOT / "roles" / "lab" / "files" / "lab.py"
        subprocess.run([sys.executable, script, self.folder / "lab.json", "nodes", "up"], check=True, timeout=3300)
