# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real controller of Slurm, in a root and a network of its own: an overlay over this machine that role slurm sets up.

What runs the boards is left to who has one: played ones (machines.py), or those of a lab (tests/e2e).
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from ansible_collections.hetero.compute.tests.unit.plays.proxies import PROJECT, Proxy
from ansible_collections.hetero.compute.tests.unit.slurm.accounts import account

#: The playbook's own look at slurmctld, which on a real machine has its network.
SCONTROL = """#!/bin/sh
[ "$(id -u)" = 0 ] || exec /usr/bin/scontrol "$@"
exec nsenter --net="/proc/$(cat /run/slurmctld.pid)/ns/net" /usr/bin/scontrol "$@"
"""


def logged(argv, path):
    """Start a program of a session of its own, with its output in a file."""
    with open(path, "ab") as log:
        environment = {"PATH": os.environ["PATH"]}
        return subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=environment
        )


class Machine(Proxy):
    """A root over this machine's, and nothing on it."""

    def _write(self, number, pdu, boards):
        """Write nothing: role slurm does."""

        # slurmd wants a cgroup file system there, also where it uses none
        self._mount("--rbind", "/sys", at="sys")
        self._mount("--make-rslave", at="sys")

    def path(self, name):
        return self.root / name


class Controller:
    """The machine, in the network namespace `name`; `down` after it was used.

    :param address: its address there, at which nodes find it.
    """

    def __init__(self, folder, name, address):
        folder.chmod(0o755)
        self.folder, self.name, self.address, self.started = folder, name, address, []
        self.machine = Machine(folder / "ctl", 2)
        scontrol = self.machine.path("usr/local/bin/scontrol")
        scontrol.write_text(SCONTROL)
        scontrol.chmod(0o755)

    def its_inventory(self, site, **variables):
        """Write the site's inventory that its own plays have, and munge's key; returns its entry for playbook slurm."""
        (self.machine.folder / "etc" / "hetero" / "inventory.json").write_text(json.dumps(site))
        munge = self.machine.path("etc/munge/munge.key")
        if not munge.exists():
            munge.write_bytes(os.urandom(128))
        ours = dict(slurm_address=self.address, slurm_packages=False, slurm_services=False, **variables)
        ours.update(slurm_ansible_playbook=str(Path(sys.executable).parent / "ansible-playbook"))
        ours.update(slurm_inventory="/etc/hetero/inventory.json")
        paths = {"ANSIBLE_CONFIG": str(PROJECT / "ansible.cfg"), "ANSIBLE_COLLECTIONS_PATH": str(PROJECT / "build")}
        paths.update(ANSIBLE_REMOTE_TMP="/tmp/hetero-plays")
        ours.update(slurm_environment=paths)
        return {"hosts": {"ctl": ours}}

    @property
    def public_key(self):
        """The key that nodes let in."""
        return self.machine.path("var/lib/hetero-slurm/.ssh/id_ed25519.pub").read_text()

    def logs_in(self, address):
        """Log in to a node as Slurm's user, once by hand for its host key; (exit code, output)."""
        new = ["-o", "StrictHostKeyChecking=accept-new", "-o", "BatchMode=yes"]
        return self.run("/usr/local/lib/hetero-slurm/ssh", *new, f"root@{address}", "true", user="slurm")

    def start_all(self):
        """Start what systemd would: munge, slurmdbd where there is accounting, slurmctld."""
        run = self.machine.path("run/munge")
        run.mkdir(exist_ok=True)
        for path in (run, self.machine.path("etc/munge/munge.key"), self.machine.path("var/log/munge")):
            subprocess.run(["chown", "-R", "munge:munge", path], check=True)
        self.machine.path("etc/munge/munge.key").chmod(0o400)
        self.start("munged", "--foreground", "--force", user="munge")
        if self.machine.path("etc/slurm/slurmdbd.conf").exists():
            account(self)
        self.start_controller()

    def person(self, name, keys=None, number=None):
        """Have a user with an ssh key, which is among the site's where `keys` is their folder, and perhaps this uid."""
        free = f"getent passwd {number} | cut -d: -f1 | xargs --no-run-if-empty userdel" if number else ":"
        numbered = f"--uid {number}" if number else ""
        script = f"""{free}
useradd --create-home {numbered} {name}
mkdir -p /home/{name}/.ssh
ssh-keygen -q -t ed25519 -N '' -f /home/{name}/.ssh/id_ed25519
chown -R {name} /home/{name}"""
        rc, output = self.run("sh", "-ec", script)
        assert rc == 0, output
        if keys:
            keys.mkdir(exist_ok=True)
            (keys / f"{name}.pub").write_text(self.machine.path(f"home/{name}/.ssh/id_ed25519.pub").read_text())

    def inside(self, *words, user=None):
        """The words of a command on the controller."""
        as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
        apart = ["nsenter", f"--net=/run/netns/{self.name}", "chroot", str(self.machine.root)]
        return [*apart, *as_user, *map(str, words)]

    def start(self, *words, user=None, at=None):
        """Start a daemon on the controller, or in another root."""
        argv = self.inside(*words, user=user)
        if at:
            argv[3] = str(at)
        self.started.append(logged(argv, self.folder / f"{Path(str(words[0])).name}.log"))
        return self.started[-1]

    def run(self, *words, user=None, timeout=300):
        """Run a command on the controller; (exit code, output)."""
        done = subprocess.run(
            self.inside(*words, user=user), check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=timeout, env={"PATH": os.environ["PATH"], "HOME": "/root"},
        )  # fmt: skip
        return done.returncode, done.stdout

    def start_controller(self):
        self.controller = self.start("slurmctld", "-D", user="slurm")
        self.machine.path("run/slurmctld.pid").write_text(str(self.controller.pid))
        self.until(lambda: self.run("scontrol", "ping")[0] == 0, 60)

    def submit(self, command, *words, user=None):
        """Submit a batch job; its number."""
        rc, output = self.run("sbatch", "--parsable", "-o", "/dev/null", *words, "--wrap", command, user=user)
        assert rc == 0, output
        return output.strip()

    def sync(self):
        """Compare once, as the timer has it; (exit code, output)."""
        return self.run("/usr/local/lib/hetero-slurm/sync", user="slurm", timeout=900)

    def programs(self):
        """{process: its words} of what Slurm has begun on the controller, with the plays of that."""
        found = {}
        for pid in self.machine.processes():
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if "hetero-slurm/programs" in words or "hetero.compute." in words:
                    found[pid] = words
        return found

    def saved(self, **of):
        """Have slurmctld save what it knows of its jobs or nodes; it does so some seconds after one of them changed."""
        folder = self.machine.path("var/lib/slurm/slurmctld")
        files = [folder / {"jobid": "job_state", "nodename": "node_state"}[key] for key in of]
        before = {path: path.stat().st_mtime_ns for path in files}
        for key, one in of.items():
            rc, output = self.run("scontrol", "update", f"{key}={one}", "comment=save")
            assert rc == 0, output
        self.until(lambda: all(path.stat().st_mtime_ns > was for path, was in before.items()), 60)

    def kill_all(self):
        """Kill slurmctld, and all that it has begun on the controller."""
        self.controller.kill()
        self.controller.wait()
        until = time.monotonic() + 60
        while self.programs() and time.monotonic() < until:
            for pid in self.programs():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    @staticmethod
    def until(true, seconds):
        """Wait until something is true; the last look says it."""
        until = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < until, f"not within {seconds} s"
            time.sleep(0.2)

    def node(self, name):
        return self.run("scontrol", "--oneliner", "show", "node", name)[1]

    def words(self):
        """All logs, for a test that failed."""
        logs = [*self.folder.glob("*.log"), *self.machine.root.glob("var/log/hetero-slurm/*.log")]
        logs += self.machine.root.glob("var/log/slurm/*.log")
        return "\n".join(f"---- {path.name}\n{path.read_text(errors='replace')[-3000:]}" for path in logs)

    def down(self):
        for process in reversed(self.started):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.machine.remove()
