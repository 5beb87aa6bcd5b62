# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Proxies that are folders with a root of their own (an overlay over this machine's), and the playbooks on them.

Modules, action plugins and playbooks run as they do on a proxy; PDUs, boots and the NFS server are played. No lab.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import re
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.store import ImageStore
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.own_copy import keep_copy
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.tools import FOLDER
from ansible_collections.hetero.compute.plugins.plugin_utils.node_copy import packed
from ansible_collections.hetero.compute.tests.builds import shared
from ansible_collections.hetero.compute.tests.unit.devices.gpus.conftest import FOUR, uuid_of
from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.conftest import CAPABILITIES, NETWORK
from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.virsh import program
from ansible_collections.hetero.compute.tests.unit.images.nfs_server import put_busctl
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY, image_tar
from ansible_collections.hetero.compute.tests.warm.plays import Play, write_names

HERE = Path(__file__).parent
PROJECT = Path(__file__).resolve().parents[3]
CPU = '{"vendor":"tilera","model":"TILEmpower","arch":"TILEPro64","features":["8x8Grid"],"topology":{"cores":"64"}}'
FLAVOR = "tp64.8x8"
#: Of an image that runs on this machine.
IMAGE_JSON = json.dumps({"arch": platform.machine()})
#: What `systemctl show UNIT…` says of units that do not run and are not enabled.
SYSTEMCTL = """#!/bin/sh
shift 2
for unit; do
    printf 'Id=%s\\nLoadState=loaded\\nActiveState=inactive\\nUnitFileState=disabled\\nNeedDaemonReload=no\\n' "$unit"
    printf 'ActiveEnterTimestampMonotonic=0\\n\\n'
done
"""
#: The machine that the roots begin as: this one, unless tests/versions says another.
BELOW = os.environ.get("HETERO_NODE", "/")
#: Where a node that was set up keeps copies of the collection.
LIB = FOLDER[1:]
#: What a proxy writes lies on this machine's own file system: an overlay cannot be the upper layer of another.
OWN = ("var/lib/hetero", "etc/hetero", "tftpboot", "run/hetero")


def mount(*words):
    subprocess.run(["mount", *map(str, words)], check=True)


def kept_copy():
    """The folder that a set-up node has copies of the collection in, made once in a test run (tests/builds.py).

    It lies in a root of its own, where it is called as on a node (tests/warm/node_server.py).
    """
    root = Path(os.environ["HETERO_BUILDS"]) / "node"
    with open(f"{root}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not root.exists():
            scratch, archive = root.with_name("node~"), root.with_name("code.tar")
            (scratch / LIB).mkdir(parents=True)
            archive.write_bytes(packed())
            copy = keep_copy(str(scratch / LIB), str(archive), Change())
            # on a node the first call of each module does that; isolated, as that is, or its code lies elsewhere
            # (PYTHONPYCACHEPREFIX), and is compiled again
            subprocess.run(["/usr/bin/python3", "-I", "-m", "compileall", "-q", copy], check=True)
            write_names(f"{root}.names", copy)
            # what was once not found by it is sought nowhere else by glibc, in no root (ld.so(8))
            (scratch / "etc").mkdir()
            shutil.copy("/etc/ld.so.cache", scratch / "etc")
            scratch.rename(root)
    return root / LIB


def served_copies():
    """kept_copy() where nodes are of this machine's Python, and so their calls can be served (tests/warm)."""
    return kept_copy() if BELOW == "/" else None


class Proxy:
    """One proxy: `root` is what it sees as /."""

    def __init__(self, folder, number, pdu=None, boards=2, copy=True):
        self.folder, self.root, self.mounts = folder, folder / "root", []
        for name in ("root", "upper", "work", *OWN):
            (folder / name).mkdir(parents=True)
        bin_folder = folder / "upper" / "usr" / "local" / "bin"
        bin_folder.mkdir(parents=True)
        put_busctl(bin_folder, "/var/lib/hetero/ganesha.json")
        self._mount("-t", "overlay", "-o", f"lowerdir={BELOW},upperdir={folder}/upper,workdir={folder}/work", "proxy")
        for name in OWN:
            (self.root / name).mkdir(parents=True, exist_ok=True)
            self._mount("--bind", folder / name, at=name)
        self._mount("-t", "proc", "proc", at="proc")
        self._mount("--rbind", "/dev", at="dev")
        self._mount("--make-rslave", at="dev")
        if copy and shared():
            self.put_folder(kept_copy(), LIB)
        # containers of other tests run there, and this one sees the machine's processes
        self._mount("-t", "tmpfs", "own", at="var/tmp")
        self._write(number, pdu, boards)

    def put_folder(self, folder, at):
        """Have a folder of this machine in the root as well."""
        (self.root / at).mkdir(exist_ok=True)
        self._mount("--bind", folder, at=at)

    def _mount(self, *words, at=""):
        mount(*words, self.root / at)
        self.mounts.append(self.root / at)

    def _write(self, number, pdu, boards):
        quick = {"tftp": 0.0, "nfs": 0.0, "running": 0.0}
        settings, secrets = pdu or ({"driver": "fake", "path": "/etc/hetero/pdu.json"}, {})
        wiring = {
            str(n): {"pdu": "pdu-a", "outlet": str(n + 1), "driver": "fake", "fake": quick} for n in range(boards)
        }
        # Flavors promise more than a test machine has.
        config = dict(server="10.0.2.254", pdus={"pdu-a": settings}, boards=wiring, roots_overcommit=10000)
        rows = [
            f"{n} 10.0.{number}.{n + 1} 00:1a:ca:00:{number:02x}:{n:02x} 10 16384 917 500 1 tilera_hv 1 {CPU}"
            for n in range(boards)
        ]
        (self.folder / "tftpboot" / "tilera_boards").write_text("\n".join(rows) + "\n")
        etc = self.folder / "etc" / "hetero"
        (etc / "proxy.json").write_text(json.dumps(config))
        (etc / "pdu.json").write_text(json.dumps({"outlets": {str(n + 1): "off" for n in range(boards)}}))
        (etc / "credentials.json").write_text(json.dumps({"pdu-a": secrets}))
        (etc / "credentials.json").chmod(0o600)
        state = self.folder / "var" / "lib" / "hetero"
        (state / "ganesha.json").write_text("{}")
        store = ImageStore(str(state / "images"))
        store.import_image(image_tar(self.folder / "debian.tar"), "debian")

    @property
    def state_db(self):
        return str(self.folder / "var" / "lib" / "hetero" / "state.db")

    def processes(self):
        """Ids of the processes that run in it: its root is theirs."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    root = os.readlink(entry / "root").removesuffix(" (deleted)")
                    if f"{root}/".startswith(f"{self.root}/"):
                        found.append(int(entry.name))
        return found

    def end_processes(self):
        """End what still runs in it, such as a job's follower, and wait; what they have started meanwhile, too."""
        for _round in range(10):
            left = self.processes()
            if not left:
                return
            handles = []
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    handles.append(os.pidfd_open(pid))
                    # the id may have been given to another process before it was opened
                    if pid in self.processes():
                        signal.pidfd_send_signal(handles[-1], signal.SIGKILL)
            for handle in handles:
                select.select([handle], [], [], 60)
                os.close(handle)
        raise RuntimeError(f"{self.folder.name}: {self.processes()} do not end")

    def remove(self):
        """End what runs on this proxy, and unmount all that it, and what ran on it, has mounted."""
        self.end_processes()
        points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        for point in reversed([point for point in points if point.startswith(f"{self.folder}/")]):
            subprocess.run(["umount", "--lazy", point], check=False)


class GpuHost(Proxy):
    """A compute host, a folder as well: four GPUs by what a kernel shows of them; no container is started."""

    def _write(self, number, pdu, boards):
        driver = self.root / "proc" / "driver"
        self._mount("-t", "tmpfs", "gpus", at="proc/driver")
        self._mount("-t", "tmpfs", "devices", at="sys")
        (driver / "nvidia").mkdir()
        (driver / "nvidia" / "version").write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  390.157  Wed\n")
        for minor, (address, device, _minor, _numa) in enumerate(FOUR):
            gpu = driver / "nvidia" / "gpus" / address
            gpu.mkdir(parents=True)
            gpu.joinpath("information").write_text(
                f"Model: \t\t Tesla M2090\nGPU UUID: \t {uuid_of(minor)}\nDevice Minor: \t {minor}\n"
            )
            pci = self.root / "sys" / "bus" / "pci" / "devices" / address
            pci.mkdir(parents=True)
            for name, text in (("vendor", "0x10de"), ("device", f"{device:#06x}"), ("class", "0x030200")):
                (pci / name).write_text(f"{text}\n")
            (pci / "driver").symlink_to("../../../../bus/pci/drivers/nvidia")
        config = dict(name=self.folder.name, memory_mb=65536, vcpus=32, local_gb=640)
        config.update(default_image="container")
        source = image_tar(self.folder / "container.tar", **{"image.json": IMAGE_JSON})
        store = ImageStore(str(self.folder / "var" / "lib" / "hetero" / "images"), kernels=False)
        store.import_image(source, "container")
        config.update(gateway="10.0.81.1", addresses=["10.0.81.10", "10.0.81.20"])
        (self.folder / "etc" / "hetero" / "host.json").write_text(json.dumps(config))

    @property
    def state_db(self):
        return str(self.folder / "var" / "lib" / "hetero" / "host.db")


class GuestHost(Proxy):
    """A host of guests, a folder as well: its libvirt is virsh.py, and a guest that runs an sshd at its address."""

    addresses = tuple(f"{NETWORK}.{number}" for number in (10, 12))

    def _write(self, number, pdu, boards):
        self._mount("-t", "tmpfs", "devices", at="sys")
        virsh = self.folder / "upper" / "usr" / "local" / "bin" / "virsh"
        virsh.write_text(program("/", os.getpid(), "/usr/bin/python3"))
        virsh.chmod(0o755)
        # the pins are tried by tests/unit/hypervisors/pinning
        for name, text in (("systemctl", SYSTEMCTL), ("nft", "#!/bin/sh\n")):
            virsh.with_name(name).write_text(text)
            virsh.with_name(name).chmod(0o755)
        (self.root / "capabilities").write_text(CAPABILITIES.format(more=""))
        image = self.folder / "guest"
        for name in ("etc/ssh", "root", "bin"):
            (image / "root" / name).mkdir(parents=True)
        (image / "kernel").write_bytes(b"kernel")
        (image / "image.json").write_text(IMAGE_JSON)
        store = ImageStore(str(self.folder / "var" / "lib" / "hetero" / "images"), kernels=False)
        store.import_image(str(image), "guest")
        guests = dict(name=self.folder.name, memory_mb=2048, vcpus=4, local_gb=10, addresses=self.addresses)
        guests.update(default_image="guest", guests_folder="/var/lib/hetero/guests")
        (self.folder / "etc" / "hetero" / "host.json").write_text(json.dumps({"kvm": guests}))

    @property
    def state_db(self):
        return str(self.folder / "var" / "lib" / "hetero" / "host.db")

    def remove(self):
        for pid in self.root.glob("guests/*/pid"):
            os.kill(int(pid.read_text()), signal.SIGKILL)
        super().remove()


class Playbooks:
    """The playbooks, as a user runs them against these proxies and hosts."""

    def __init__(self, folder, names, gpu_hosts=(), kvm_hosts=()):
        self.folder = folder
        hosts = {name: {} for name in names}
        own = {"ansible_connection": "folder", "ansible_python_interpreter": "/usr/bin/python3"}
        own.update(hetero_default_image="debian", hetero_ssh_public_key=KEY, hetero_boot_timeout=20)
        own.update(ansible_remote_tmp="/tmp/hetero-plays")
        local = {"localhost": {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}}
        inventory = {"all": {"vars": own, "hosts": local}, "proxies": {"hosts": hosts}}
        inventory["hypervisor_lxc"] = {"hosts": {name: {} for name in gpu_hosts}}
        inventory["hypervisor_kvm"] = {"hosts": {name: {} for name in kvm_hosts}}
        (folder / "inventory.json").write_text(json.dumps(inventory))
        foreign = ("ANSIBLE_", "PYTHON")
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        self.env.update(
            ANSIBLE_CONFIG=str(PROJECT / "ansible.cfg"),
            ANSIBLE_COLLECTIONS_PATH=str(PROJECT / "build"),
            ANSIBLE_CONNECTION_PLUGINS=str(HERE / "connection"),
            ANSIBLE_LOCALHOST_WARNING="false",
            PROXY_ROOTS=str(folder),
            **shared(),
            # else its lines come late through a pipe
            PYTHONUNBUFFERED="1",
            USER="jo",
        )

    def alone(self):
        """From now on each play makes all that it needs anew, as a user's does, and so takes as long."""
        for name in shared():
            del self.env[name]

    def start(self, playbook, *flags, order=None, **extra):
        inventory = self.folder / "inventory.json"
        if order:
            text = json.loads(inventory.read_text())
            text["proxies"]["hosts"] = {name: {} for name in order}
            inventory = self.folder / f"inventory-{'-'.join(order)}.json"
            inventory.write_text(json.dumps(text))
        more = [word for name, value in extra.items() for word in ("-e", f"{name}={value}")]
        return self.start_file(f"hetero.compute.{playbook}", *flags, *more, inventory=inventory)

    def start_file(self, playbook, *flags, inventory=None):
        """A playbook that is no part of the collection."""
        inventory = inventory or self.folder / "inventory.json"
        return Play(
            [str(Path(sys.executable).parent / "ansible-playbook"), "-i", str(inventory), *flags, playbook],
            copies=served_copies,
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    @staticmethod
    def kill(process):
        """Kill a play with its workers: one that is left writes for ever into a pipe that it alone has open."""
        process.send_signal(signal.SIGSTOP)  # so that it starts no further one
        workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for pid in (*map(int, workers), process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    @staticmethod
    def end(process, limit=3000):
        """(exit code, output)."""
        try:
            output, _nothing = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return process.returncode, output

    def play(self, playbook, *flags, **extra):
        return self.end(self.start(playbook, *flags, **extra))


def changed(output):
    """How many tasks changed something."""
    return sum(map(int, re.findall(r" changed=(\d+) ", output)))
