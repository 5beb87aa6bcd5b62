# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's parts on this machine: images, network namespace, PDU processes, nodes as LXC containers or QEMU machines.

`lab.py LAB.json PART up|down`; each call makes what is missing (or removes what is there) and prints what it changed
as JSON. `lab.py LAB.json closed` prints the nodes into which no more files can be mounted, as JSON.
`lab.py LAB.json leftovers` lists whatever of the lab still exists and ends with 1 where there is any.
What the parts are called and where they lie is in LAB.json, written by role lab.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time

import machine
from container import Container
from network import Network
from processes import Process, run, wait


class Images:
    """What nodes and boards start from, built once and kept in the user's cache folder."""

    def __init__(self, lab):
        self.lab = lab
        self.images = lab["images"]

    def up(self):
        if not self._missing():
            return []
        # Labs that are brought up at one time need the same images: one builds, the others wait for it.
        seconds = self.lab["building"]
        with open(os.path.join(os.path.dirname(self.images[0]["path"]), "images.lock"), "w", encoding="utf-8") as file:
            wait(lambda: self._locked(file), seconds, f"another lab still builds images: {file.name} is held")
            return self._built()

    def _missing(self):
        return [image for image in self.images if not os.path.exists(image["path"])]

    @staticmethod
    def _locked(file):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _built(self):
        missing = self._missing()
        # First those that others are made from. Each keeps one core busy for about half a minute: side by side.
        self._build([image for image in missing if not image.get("derived")])
        self._build([image for image in missing if image.get("derived")])
        return [image["path"] for image in missing]

    def _build(self, images):
        builds = [subprocess.Popen(image["argv"], stdin=subprocess.DEVNULL, stdout=sys.stderr) for image in images]
        failed = [image["path"] for image, build in zip(images, builds) if build.wait(timeout=self.lab["building"])]
        if failed:
            raise SystemExit(f"could not build {', '.join(failed)}: see the messages above")

    def down(self):
        return []  # kept for the next lab

    def leftovers(self):
        return []


class Pdus:
    """One emulator process a PDU, started inside the namespace; it is the parent of the boards that it feeds."""

    def __init__(self, lab):
        self.lab = lab
        self.network = Network(lab)

    def up(self):
        changed = []
        for disk in self.lab["disks"]:
            if not os.path.exists(disk["file"]):
                os.makedirs(os.path.dirname(disk["file"]), mode=0o700, exist_ok=True)
                with open(disk["file"], "xb") as file:
                    file.truncate(disk["size_mb"] << 20)
                changed.append(f"disk {os.path.basename(disk['file'])}")
        for name, pdu in self.lab["pdus"].items():
            process = Process(self.lab, name)
            if process.pid is None:
                emulator = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pdu.py")
                log = os.path.join(self.lab["folder"], "logs", name + ".log")
                process.start(
                    ["nsenter", f"--net={self.network.path}", sys.executable, emulator, self.lab["file"], name], log
                )
                changed.append(f"{name} at {pdu['address']}")
            wait(lambda pdu=pdu: self._listens(pdu), 10, f"{name} does not listen: see logs/{name}.log")
        return changed

    def _listens(self, pdu):
        listening = self.network.inside("ss", "-Hltn", f"src {pdu['address']}:{pdu['port']}").stdout
        return bool(listening.strip())

    def down(self):
        return [f"{name} off" for name in self.lab["pdus"] if Process(self.lab, name).stop()]

    def leftovers(self):
        return [
            f"process {Process(self.lab, name).pid} of {name}"
            for name in self.lab["pdus"]
            if Process(self.lab, name).pid
        ]


class Machine:
    """A node as a QEMU machine with a kernel and a disk of its own."""

    def __init__(self, lab, name, node):
        self.lab, self.name, self.node = lab, name, node
        self.process = Process(lab, name)

    def running(self):
        return self.process.pid is not None

    def closed(self):
        return os.path.exists(os.path.join(self.lab["folder"], "nodes", self.name, "disk"))

    def start(self, folder, delta):
        if not os.path.exists(os.path.join(folder, "disk")):
            machine.lay(folder, self.node, delta)
        logs = os.path.join(self.lab["folder"], "logs", self.name)
        argv = machine.argv(self.name, folder, self.node, f"{logs}.console.log")
        self.process.start(["nsenter", f"--net={Network(self.lab).path}", *argv], f"{logs}.log")

    def stop(self):
        self.process.stop()


class Nodes:
    """Machines or containers, with the lab's keys in them; what has started once keeps what is in it."""

    KINDS = {"container": Container, "machine": Machine}  # noqa: RUF012

    def __init__(self, lab):
        self.lab = lab
        self.network = Network(lab)
        self.nodes = {name: self.KINDS[node["kind"]](lab, name, node) for name, node in lab["nodes"].items()}

    def up(self):
        changed = []
        for name, node in self.nodes.items():
            first = self.lab["nodes"][name]["networks"][0]["address"]
            if not node.running():
                folder = os.path.join(self.lab["folder"], "nodes", name)
                node.start(folder, self._keys(name, os.path.join(folder, "delta")))
                changed.append(f"{name} at {first}")
            address = first.split("/")[0]
            patience = self.lab["nodes"][name]["patience"]
            wait(
                lambda address=address: self._answers(address),
                patience,
                f"{name} does not answer ssh: see logs/{name}.log",
            )
        return changed

    def _answers(self, address):
        looked = self.network.inside("nc", "-w", "1", "-d", address, "22", check=False)
        return looked.stdout.startswith("SSH-")

    def _keys(self, name, delta):
        """What lies over the base of a node: its name, its user's key and its own; what else is there is kept. The base
        has the name of the machine on which it was built, and messages say on which node a command is to be typed.
        """
        os.makedirs(os.path.join(delta, "root", ".ssh"), mode=0o700, exist_ok=True)
        os.makedirs(os.path.join(delta, "etc", "ssh"), exist_ok=True)
        for part, mode in (("", 0o755), ("etc", 0o755), ("etc/ssh", 0o755), ("root", 0o700), ("root/.ssh", 0o700)):
            os.chmod(os.path.join(delta, part), mode)
        with open(os.path.join(delta, "etc", "hostname"), "w", encoding="ascii") as file:
            file.write(f"{name}\n")
        shutil.copy(
            os.path.join(self.lab["folder"], "ssh", "id_ed25519.pub"),
            os.path.join(delta, "root", ".ssh", "authorized_keys"),
        )
        for suffix, mode in (("", 0o600), (".pub", 0o644)):
            target = os.path.join(delta, "etc", "ssh", "ssh_host_ed25519_key" + suffix)
            shutil.copy(os.path.join(self.lab["folder"], "ssh", f"{name}_host_key" + suffix), target)
            os.chmod(target, mode)
        return delta

    def down(self):
        changed = []
        for name in self.nodes:
            for node in self._running(name):
                node.stop()
                changed.append(f"{name} stopped")
            folder = os.path.join(self.lab["folder"], "nodes", name)
            if os.path.exists(folder):
                # Folders of tenants may be deeper than Python's rmtree gets.
                run("rm", "-rf", "--one-file-system", folder)
                changed.append(f"{name} removed")
        return changed

    def closed(self):
        """The nodes that take no more files of this machine: containers that run, machines that have their disk."""
        return [name for name, node in self.nodes.items() if node.closed()]

    def leftovers(self):
        return [f"node {name}" for name in self.nodes if self._running(name)]

    def _running(self, name):
        """The node as all that runs of it: it may have been started as another kind than the file says now."""
        both = [kind(self.lab, name, self.lab["nodes"][name]) for kind in self.KINDS.values()]
        return [node for node in both if node.running()]


def mounts(lab):
    """Mounts below the lab's folder."""
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        return [f"mount {line.split()[4]}" for line in file if line.split()[4].startswith(lab["folder"] + "/")]


#: What the lab's file has, as lab_up writes it.
HAS = {"folder": str, "namespace": str, "images": list, "nodes": dict, "pdus": dict}
DAMAGED = (
    "{path} is damaged ({error}), and it alone says what the lab consists of: move it away, bring the lab up once more "
    "with the options that it had, which writes the file anew and leaves what runs, and then go on (lab_up, lab_down)"
)
ANOTHERS = (
    "{path} is the file of the lab in {folder}, copied or moved: nothing is done to that one from here. End that lab "
    "with -e lab_folder={folder}, then remove this file"
)


def read(path):
    """Return what the lab consists of, by its file; exit with a sentence if that has something else."""
    try:
        with open(path, encoding="utf-8") as file:
            lab = json.load(file)
    except ValueError as error:
        raise SystemExit(DAMAGED.format(path=path, error=error)) from None
    lacks = [key for key, kind in HAS.items() if not isinstance(lab, dict) or not isinstance(lab.get(key), kind)]
    lacks = lacks or [name for name, node in lab["nodes"].items() if not _is_node(node)]
    if lacks:
        raise SystemExit(DAMAGED.format(path=path, error=f"{lacks[0]} is none in it"))
    if os.path.realpath(lab["folder"]) != os.path.realpath(os.path.dirname(path)):
        raise SystemExit(ANOTHERS.format(path=path, folder=lab["folder"]))
    return dict(lab, file=os.path.abspath(path))


def _is_node(node):
    return isinstance(node, dict) and node.get("kind") in ("container", "machine")


PARTS = {"images": Images, "network": Network, "pdus": Pdus, "nodes": Nodes}


def main(argv):
    lab = read(argv[1])
    if argv[2] == "leftovers":
        found = [text for part in PARTS.values() for text in part(lab).leftovers()] + mounts(lab)
        print("\n".join(found))
        return 1 if found else 0
    if argv[2] == "closed":
        print(json.dumps(Nodes(lab).closed()))
        return 0
    start = time.monotonic()
    changed = getattr(PARTS[argv[2]](lab), argv[3])()
    print(json.dumps({"changed": changed, "seconds": time.monotonic() - start}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
