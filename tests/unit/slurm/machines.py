# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real controller of Slurm in a root and a network of its own, and played boards on which a real slurmd runs.

The controller is an overlay over this machine that role slurm sets up. It logs in by ssh to a proxy node that is a
folder (tests/unit/plays/proxies.py). When one of its boards has power and a root, what role slurm wrote for cloud-init
runs as on a board: with an address, a host name, and a boot of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.store import ImageStore
from ansible_collections.hetero.compute.tests.unit.images.packing import image_tar
from ansible_collections.hetero.compute.tests.unit.plays.proxies import PROJECT, Playbooks, Proxy
from ansible_collections.hetero.compute.tests.unit.slurm.accounts import account

#: The network of the proxy's boards (10.0.1.1 …), which controller and proxy share an address of.
ADDRESS = "10.0.1.254"
SEED = "var/lib/cloud/seed/nocloud/user-data"
#: What a board has to itself, beside network, host name, processes and time of boot.
OWN = ["run", "var/log", "var/spool", "var/lib/munge", "etc/munge", "etc/slurm", "etc/default", "home"]
#: Where jobs write what a test reads in folder `lines`.
LINES = "/mnt/lines"
#: Users that role slurm makes on a board are in the board's own /etc.
BOOT = """
set -e
mount -t tmpfs own /mnt
mkdir /mnt/etc /mnt/work {lines}
mount --bind {folder}/lines {lines}
mount -t overlay -o lowerdir=/etc,upperdir=/mnt/etc,workdir=/mnt/work own /etc
for folder in {own}; do mkdir -p /$folder; mount -t tmpfs -o mode=755 own /$folder; done
ip link set lo up
hostname {name}
"""
#: What runs on a board that runs slurmd, and on another one, of which a job's user gets a login.
NODE = "sh {seed}; exec sleep infinity"
LOGIN = """
mkdir -p /run/sshd
mount --bind {root}/root /root
exec /usr/sbin/sshd -D -e -h {root}/etc/ssh/ssh_host_ed25519_key -o StrictModes=no -o UsePAM=no -o PidFile=none
"""
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


class Board:
    """A played board of the proxy, by what its driver plays: whatever has power and a root runs its user_data."""

    def __init__(self, slurm, number):
        self.slurm, self.number, self.process, self.boots = slurm, number, None, 0
        self.name, self.dead = "", False

    def look(self):
        """Boot where power came since the last look, and end where it went."""
        path = self.slurm.proxy.folder / "run" / "hetero" / "fake-boots" / f"board{self.number}"
        with contextlib.suppress(OSError, ValueError):
            boot = json.loads(path.read_text())
            if boot["on"] is None or boot["boots"] != self.boots:
                self.off()
            root = self.slurm.proxy.root / "var/lib/hetero/board-roots" / f"fs_{self.number}" / "root"
            if self.dead and boot["boots"] == self.boots:
                return
            if boot["on"] is not None and self.process is None and (root / "etc/hostname").exists() and not self.stalls:
                self.boots, self.dead = boot["boots"], False
                self._boot(root)

    @property
    def stalls(self):
        """Whether its wiring has it stall before it has a root."""
        config = json.loads((self.slurm.proxy.folder / "etc" / "hetero" / "proxy.json").read_text())
        return "stall" in config["boards"][str(self.number)]["fake"]

    def _boot(self, root):
        self.name = name = (root / "etc" / "hostname").read_text().strip()
        seed = self.slurm.folder / f"seed-{self.number}-{self.boots}"
        runs = NODE if (root / SEED).exists() else LOGIN
        if runs is NODE:
            seed.write_text((root / SEED).read_text())
        uptime = int(float(Path("/proc/uptime").read_text().split()[0]))
        of = dict(own=" ".join(OWN), name=name, seed=seed, root=root, lines=LINES, folder=self.slurm.folder)
        script = (BOOT + runs).format(**of)
        apart = ["unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "--time"]
        argv = ["nsenter", f"--net=/run/netns/{self.slurm.name}-{self.number}", *apart, f"--boottime=-{uptime}"]
        self.process = logged([*argv, "sh", "-c", script], self.slurm.folder / f"board{self.number}.log")

    def die(self):
        """Fall silent, with power on: it boots when its outlet was off."""
        self.dead = True
        self.off()

    def off(self):
        if self.process:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None


class Slurm:
    """Controller, proxy and boards; `up` before they are used, `down` after it."""

    def __init__(self, folder, boards=3):
        folder.chmod(0o755)
        self.folder, self.name, self.over = folder, f"hs{os.getpid()}", threading.Event()
        (folder / "lines").mkdir()
        (folder / "lines").chmod(0o777)
        self.proxy, self.machine = Proxy(folder / "p1", 1, boards=boards), Machine(folder / "ctl", 2)
        source = image_tar(folder / "cloud.tar", **{"root/usr/bin/cloud-init": "#!/bin/sh\n"})
        ImageStore(str(self.proxy.folder / "var/lib/hetero/images")).import_image(source, "cloud")
        scontrol = self.machine.path("usr/local/bin/scontrol")
        scontrol.write_text(SCONTROL)
        scontrol.chmod(0o755)
        self.plays = Playbooks(folder, ["p1"])
        self.boards = [Board(self, number) for number in range(boards)]
        self.started = []
        self._networks()
        self.watch = threading.Thread(target=self._watch, daemon=True)
        self.watch.start()

    def _networks(self):
        def ip(*words):
            subprocess.run(["ip", *words], check=True)

        ip("netns", "add", self.name)
        ip("-n", self.name, "link", "set", "lo", "up")
        ip("-n", self.name, "link", "add", "boards", "type", "bridge")
        ip("-n", self.name, "addr", "add", f"{ADDRESS}/24", "dev", "boards")
        ip("-n", self.name, "link", "set", "boards", "up")
        for board in self.boards:
            own, tap = f"{self.name}-{board.number}", f"b{board.number}"
            ip("netns", "add", own)
            ip("-n", self.name, "link", "add", tap, "type", "veth", "peer", "name", "eth0", "netns", own)
            ip("-n", self.name, "link", "set", tap, "master", "boards", "up")
            ip("-n", own, "addr", "add", f"10.0.1.{board.number + 1}/24", "dev", "eth0")
            ip("-n", own, "link", "set", "eth0", "up")

    def _watch(self):
        while not self.over.wait(0.1):
            for board in self.boards:
                board.look()

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

    def set_up(self, **variables):
        """Run playbook slurm, as an operator does, and what it does not start where there is no systemd."""
        inventory = json.loads((self.folder / "inventory.json").read_text())
        ours = dict(slurm_address=ADDRESS, slurm_packages=False, slurm_services=False, **variables)
        ours.update(slurm_ansible_playbook=str(Path(sys.executable).parent / "ansible-playbook"))
        ours.update(slurm_inventory="/etc/hetero/inventory.json")
        paths = {"ANSIBLE_CONFIG": str(PROJECT / "ansible.cfg"), "ANSIBLE_COLLECTIONS_PATH": str(PROJECT / "build")}
        paths.update(ANSIBLE_REMOTE_TMP="/tmp/hetero-plays")
        ours.update(slurm_environment=paths)
        inventory["slurm"] = {"hosts": {"ctl": ours}}
        (self.folder / "inventory.json").write_text(json.dumps(inventory))
        # by which key, and which host key, is known to role slurm alone
        own = {"ansible_host": ADDRESS, "ansible_connection": "ssh", "ansible_user": "root"}
        theirs = {"all": {"vars": dict(inventory["all"]["vars"], **own), "hosts": inventory["all"]["hosts"]}}
        theirs["all"]["vars"].update(hetero_default_image="cloud")
        theirs["proxies"] = {"hosts": {"p1": {}}}
        etc = self.machine.folder / "etc" / "hetero"
        (etc / "inventory.json").write_text(json.dumps(theirs))
        munge = self.machine.path("etc/munge/munge.key")
        if not munge.exists():
            munge.write_bytes(os.urandom(128))
        return self.plays.end(self.plays.start("slurm"), 1200)

    def up(self):
        """Start what systemd would: munge, slurmctld, and on the proxy node sshd."""
        keys = self.proxy.root / "root" / ".ssh"
        keys.mkdir(exist_ok=True)
        public = self.machine.path("var/lib/hetero-slurm/.ssh/id_ed25519.pub").read_text()
        (keys / "authorized_keys").write_text(public)
        for folder in (keys, keys.parent):
            folder.chmod(0o700)
        (self.proxy.root / "run" / "sshd").mkdir(exist_ok=True)
        key = self.folder / "host_key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        options = ["-o", f"HostKey={key}", "-o", "PidFile=none", "-o", "StrictModes=no", "-o", "UsePAM=no"]
        daemon = self.start("/usr/sbin/sshd", "-D", "-e", *options, at=self.proxy.root)
        self.until(lambda: self._logs_in(daemon), 60)
        run = self.machine.path("run/munge")
        run.mkdir(exist_ok=True)
        for path in (run, self.machine.path("etc/munge/munge.key"), self.machine.path("var/log/munge")):
            subprocess.run(["chown", "-R", "munge:munge", path], check=True)
        self.machine.path("etc/munge/munge.key").chmod(0o400)
        self.start("munged", "--foreground", "--force", user="munge")
        if self.machine.path("etc/slurm/slurmdbd.conf").exists():
            account(self)
        self.start_controller()

    def _logs_in(self, daemon):
        """Log in to the proxy node as Slurm's user, once by hand for its host key; return whether that worked."""
        assert daemon.poll() is None, (self.folder / "sshd.log").read_text()
        new = ["-o", "StrictHostKeyChecking=accept-new", "-o", "BatchMode=yes"]
        rc, said = self.run("/usr/local/lib/hetero-slurm/ssh", *new, f"root@{ADDRESS}", "true", user="slurm")
        assert rc == 0 or "refused" in said, said
        return rc == 0

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
        self.over.set()
        self.watch.join(30)
        for process in reversed(self.started):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for board in self.boards:
            board.off()
        for machine in (self.machine, self.proxy):
            machine.remove()
        for name in [*(f"{self.name}-{board.number}" for board in self.boards), self.name]:
            subprocess.run(["ip", "netns", "del", name], check=False)
