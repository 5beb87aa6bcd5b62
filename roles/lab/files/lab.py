# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's parts on this machine: images, network namespace, PDU processes, nodes as LXC containers or QEMU machines.

`lab.py LAB.json PART up|down`; each call makes what is missing (or removes what is there) and prints what it changed
as JSON. `lab.py LAB.json leftovers` lists whatever of the lab still exists and ends with 1 where there is any.
What the parts are called and where they lie is in LAB.json, written by role lab.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import machine

#: The seccomp profile of LXC forbids open_by_handle_at, which an NFS server lives on; a node therefore gets none.
#: A phys interface is a veth end made beforehand: LXC looks for bridges in the host's sysfs, not in a namespace's.
CONTAINER = """\
lxc.include = /usr/share/lxc/config/common.conf
lxc.arch = linux64
lxc.uts.name = {name}
lxc.rootfs.path = overlayfs:{base}:{folder}/delta
lxc.init.cmd = /sbin/init systemd.unified_cgroup_hierarchy=0
lxc.apparmor.profile = unconfined
lxc.seccomp.profile =
lxc.cgroup.devices.allow = b 7:* rwm
lxc.cgroup.devices.allow = c 10:237 rwm
lxc.cgroup2.devices.allow = b 7:* rwm
lxc.cgroup2.devices.allow = c 10:237 rwm
"""


def run(*argv, check=True):
    done = subprocess.run(
        argv,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    if check and done.returncode:
        raise SystemExit(f"{' '.join(argv)} ended with {done.returncode}: {done.stdout.strip()}")
    return done


class Process:
    """A background process of the lab, remembered by pid and start time so that a reused pid is never taken for it."""

    def __init__(self, lab, name):
        self.file = os.path.join(lab["folder"], "run", name + ".pid")

    @staticmethod
    def _started(pid):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            return None
        return None if fields[0] == "Z" else fields[19]  # proc(5): field 22, starttime

    @property
    def pid(self):
        try:
            with open(self.file, encoding="ascii") as file:
                pid, started = file.read().split()
        except (OSError, ValueError):
            return None
        return int(pid) if self._started(pid) == started else None

    def start(self, argv, log):
        with open(log, "ab") as output:
            child = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        with open(self.file, "w", encoding="ascii") as file:
            file.write(f"{child.pid} {self._started(child.pid)}\n")

    def stop(self):
        pid = self.pid
        if pid is not None:
            os.kill(pid, signal.SIGTERM)
            wait(lambda: self.pid is None, 10, f"process {pid} does not end on SIGTERM")
        if os.path.exists(self.file):
            os.unlink(self.file)
        return pid is not None


def wait(condition, seconds, complaint):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"after {seconds} s: {complaint}")
        time.sleep(0.02)


class Images:
    """What nodes and boards start from, built once and kept in the user's cache folder."""

    def __init__(self, lab):
        self.images = lab["images"]

    def up(self):
        missing = [image for image in self.images if not os.path.exists(image["path"])]
        # First those that others are made from. Each keeps one core busy for about half a minute: side by side.
        self._build([image for image in missing if not image.get("derived")])
        self._build([image for image in missing if image.get("derived")])
        return [image["path"] for image in missing]

    @staticmethod
    def _build(images):
        builds = [subprocess.Popen(image["argv"], stdin=subprocess.DEVNULL, stdout=sys.stderr) for image in images]
        failed = [image["path"] for image, build in zip(images, builds) if build.wait(timeout=1800)]
        if failed:
            raise SystemExit(f"could not build {', '.join(failed)}: see the messages above")

    def down(self):
        return []  # kept for the next lab

    def leftovers(self):
        return []


class Network:
    """The namespace, its bridges with their addresses, a tap for each board, a veth pair for each node's network."""

    def __init__(self, lab):
        self.lab = lab
        self.path = f"/run/netns/{lab['namespace']}"

    @property
    def exists(self):
        return os.path.exists(self.path)

    def inside(self, *argv, check=True):
        return run("nsenter", f"--net={self.path}", *argv, check=check)

    def links(self):
        return {link["ifname"] for link in json.loads(self.inside("ip", "-j", "link").stdout or "[]")}

    def up(self):
        lab, changed = self.lab, []
        if not self.exists:
            run("ip", "netns", "add", lab["namespace"])
            self.inside("ip", "link", "set", "lo", "up")
            changed.append(f"namespace {lab['namespace']}")
        links, lines = self.links(), []
        for bridge in lab["bridges"]:
            if bridge["name"] not in links:
                lines += [f"link add {bridge['name']} type bridge stp_state 0 forward_delay 0"]
                lines += [f"addr add {address} dev {bridge['name']}" for address in bridge["addresses"]]
                lines += [f"link set {bridge['name']} up"]
                changed.append(f"bridge {bridge['name']}")
        for board in lab["boards"]:
            if board["tap"] not in links:
                lines += [
                    f"tuntap add {board['tap']} mode tap",
                    f"link set {board['tap']} master {lab['bridges'][0]['name']} up",
                ]
                changed.append(f"tap {board['tap']}")
        for name, node in lab["nodes"].items():
            for number, network in enumerate(node["networks"]):
                outer = f"{name}-{number}"
                if outer not in links:
                    made = f"tuntap add {outer} mode tap"
                    if node["kind"] == "container":
                        made = f"link add {outer} type veth peer name {outer}i"
                    lines += [made, f"link set {outer} master {network['bridge']} up"]
                    changed.append(f"link {outer}")
        if lines:
            batch = os.path.join(lab["folder"], "run", "network.batch")
            with open(batch, "w", encoding="ascii") as file:
                file.write("\n".join(lines) + "\n")
            self.inside("ip", "-batch", batch)
        return changed

    def down(self):
        if not self.exists:
            return []
        run("ip", "netns", "del", self.lab["namespace"])
        return [f"namespace {self.lab['namespace']}"]

    def leftovers(self):
        return [f"namespace {self.lab['namespace']}"] if self.exists else []


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


class Container:
    """A node as an LXC system container over a shared read-only base; what it writes is its own folder's."""

    def __init__(self, lab, name, node):
        self.lab, self.name, self.node = lab, name, node
        self.network = Network(lab)

    def _lxc(self, verb, *argv, check=True):
        # The command socket is abstract and therefore per network namespace: every lxc command runs inside it.
        path = os.path.join(self.lab["folder"], "nodes")
        return self.network.inside(f"lxc-{verb}", "-P", path, "-n", self.name, *argv, check=check)

    def running(self):
        return self.network.exists and "RUNNING" in self._lxc("info", "-s", check=False).stdout

    def start(self, folder, _delta):
        self._configure(folder)
        log = os.path.join(self.lab["folder"], "logs", self.name + ".log")
        self._lxc("start", "--daemon", "-o", log, "-l", "WARN")

    def stop(self):
        self._lxc("stop", "-k")

    def _configure(self, folder):
        lines = [CONTAINER.format(name=self.name, base=self.node["base"], folder=folder)]
        for number, network in enumerate(self.node["networks"]):
            lines.append(
                f"lxc.net.{number}.type = phys\nlxc.net.{number}.link = {self.name}-{number}i\n"
                f"lxc.net.{number}.name = eth{number}\n"
                f"lxc.net.{number}.flags = up\nlxc.net.{number}.ipv4.address = {network['address']}\n"
            )
        binds = [
            (device, device.lstrip("/"), "file")
            for device in ["/dev/loop-control", *(f"/dev/loop{n}" for n in range(8))]
        ]
        for path in self.node["folders"]:  # an overlay's upper layer cannot lie on an overlay: these are plain folders
            own = os.path.join(folder, "data", path.strip("/").replace("/", "-"))
            os.makedirs(own, exist_ok=True)
            binds.append((own, path.strip("/"), "dir"))
        for bind in self.node["binds"]:
            binds.append(
                (bind["source"], bind["target"].strip("/"), "dir" if os.path.isdir(bind["source"]) else "file")
            )
        for source, target, kind in binds:
            if os.path.exists(source):
                lines.append(f"lxc.mount.entry = {source} {target} none bind,create={kind} 0 0\n")
        with open(os.path.join(folder, "config"), "w", encoding="utf-8") as file:
            file.writelines(lines)


class Machine:
    """A node as a QEMU machine with a kernel and a disk of its own."""

    def __init__(self, lab, name, node):
        self.lab, self.name, self.node = lab, name, node
        self.process = Process(lab, name)

    def running(self):
        return self.process.pid is not None

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
        """What lies over the base of a node: its user's key and its own; what else is there is kept."""
        os.makedirs(os.path.join(delta, "root", ".ssh"), mode=0o700, exist_ok=True)
        os.makedirs(os.path.join(delta, "etc", "ssh"), exist_ok=True)
        for part, mode in (("", 0o755), ("etc", 0o755), ("etc/ssh", 0o755), ("root", 0o700), ("root/.ssh", 0o700)):
            os.chmod(os.path.join(delta, part), mode)
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
        for name, node in self.nodes.items():
            if node.running():
                node.stop()
                changed.append(f"{name} stopped")
            folder = os.path.join(self.lab["folder"], "nodes", name)
            if os.path.exists(folder):
                shutil.rmtree(folder)
                changed.append(f"{name} removed")
        return changed

    def leftovers(self):
        return [f"node {name}" for name, node in self.nodes.items() if node.running()]


def mounts(lab):
    """Mounts below the lab's folder."""
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        return [f"mount {line.split()[4]}" for line in file if line.split()[4].startswith(lab["folder"] + "/")]


PARTS = {"images": Images, "network": Network, "pdus": Pdus, "nodes": Nodes}


def main(argv):
    with open(argv[1], encoding="utf-8") as file:
        lab = dict(json.load(file), file=os.path.abspath(argv[1]))
    if argv[2] == "leftovers":
        found = [text for part in PARTS.values() for text in part(lab).leftovers()] + mounts(lab)
        print("\n".join(found))
        return 1 if found else 0
    start = time.monotonic()
    changed = getattr(PARTS[argv[2]](lab), argv[3])()
    print(json.dumps({"changed": changed, "seconds": time.monotonic() - start}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
