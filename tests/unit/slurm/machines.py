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
import threading
from pathlib import Path

from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.store import ImageStore
from ansible_collections.hetero.compute.tests.unit.images.packing import image_tar
from ansible_collections.hetero.compute.tests.unit.plays.proxies import Playbooks, Proxy
from ansible_collections.hetero.compute.tests.unit.slurm.controllers import Controller, logged

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


class Slurm(Controller):
    """Controller, proxy and boards; `up` before they are used, `down` after it."""

    def __init__(self, folder, boards=3):
        super().__init__(folder, f"hs{os.getpid()}", ADDRESS)
        self.over = threading.Event()
        (folder / "lines").mkdir()
        (folder / "lines").chmod(0o777)
        self.proxy = Proxy(folder / "p1", 1, boards=boards)
        source = image_tar(folder / "cloud.tar", **{"root/usr/bin/cloud-init": "#!/bin/sh\n"})
        ImageStore(str(self.proxy.folder / "var/lib/hetero/images")).import_image(source, "cloud")
        self.plays = Playbooks(folder, ["p1"])
        self.boards = [Board(self, number) for number in range(boards)]
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

    def set_up(self, **variables):
        """Run playbook slurm, as an operator does, and what it does not start where there is no systemd."""
        inventory = json.loads((self.folder / "inventory.json").read_text())
        # by which key, and which host key, is known to role slurm alone
        own = {"ansible_host": ADDRESS, "ansible_connection": "ssh", "ansible_user": "root"}
        theirs = {"all": {"vars": dict(inventory["all"]["vars"], **own), "hosts": inventory["all"]["hosts"]}}
        theirs["all"]["vars"].update(hetero_default_image="cloud")
        theirs["proxies"] = {"hosts": {"p1": {}}}
        inventory["slurm"] = self.its_inventory(theirs, **variables)
        (self.folder / "inventory.json").write_text(json.dumps(inventory))
        return self.plays.end(self.plays.start("slurm"), 1200)

    def up(self):
        """Start what systemd would on the controller, and on the proxy node sshd."""
        keys = self.proxy.root / "root" / ".ssh"
        keys.mkdir(exist_ok=True)
        (keys / "authorized_keys").write_text(self.public_key)
        for folder in (keys, keys.parent):
            folder.chmod(0o700)
        (self.proxy.root / "run" / "sshd").mkdir(exist_ok=True)
        key = self.folder / "host_key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        options = ["-o", f"HostKey={key}", "-o", "PidFile=none", "-o", "StrictModes=no", "-o", "UsePAM=no"]
        daemon = self.start("/usr/sbin/sshd", "-D", "-e", *options, at=self.proxy.root)
        self.until(lambda: self._logs_in(daemon), 60)
        self.start_all()

    def _logs_in(self, daemon):
        assert daemon.poll() is None, (self.folder / "sshd.log").read_text()
        rc, said = self.logs_in(ADDRESS)
        assert rc == 0 or "refused" in said, said
        return rc == 0

    def down(self):
        self.over.set()
        self.watch.join(30)
        super().down()
        for board in self.boards:
            board.off()
        self.proxy.remove()
        for name in [*(f"{self.name}-{board.number}" for board in self.boards), self.name]:
            subprocess.run(["ip", "netns", "del", name], check=False)
