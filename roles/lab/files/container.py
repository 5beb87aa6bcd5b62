# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lab node that is an LXC system container. Its namespace and links are network.py's, what GPUs show gpus.py's."""

from __future__ import annotations

import os
import uuid

import gpus
from network import Network

#: The seccomp profile of LXC forbids open_by_handle_at, which an NFS server lives on; a node therefore gets none.
#: A phys interface is a veth end made beforehand: LXC looks for bridges in the host's sysfs, not in a namespace's.
CONTAINER = """\
lxc.include = /usr/share/lxc/config/common.conf
{more}lxc.arch = linux64
lxc.uts.name = {name}
lxc.rootfs.path = overlayfs:{base}:{folder}/delta
lxc.init.cmd = /sbin/init {cgroup}
lxc.apparmor.profile = unconfined
lxc.seccomp.profile =
"""
#: What tells systemd (kernel-command-line(7)) which control groups to make of those that this machine has.
CGROUP = {
    "v1": "systemd.unified_cgroup_hierarchy=0 systemd.legacy_systemd_cgroup_controller=1",
    "hybrid": "systemd.unified_cgroup_hierarchy=0",
    "v2": "systemd.unified_cgroup_hierarchy=1",
}
#: A file system in a file, for a proxy's roots.
LOOP = """\
lxc.cgroup.devices.allow = b 7:* rwm
lxc.cgroup.devices.allow = c 10:237 rwm
lxc.cgroup2.devices.allow = b 7:* rwm
lxc.cgroup2.devices.allow = c 10:237 rwm
"""
#: Containers within: cgroups of their own to make, and all devices to give.
NESTING = """\
lxc.include = /usr/share/lxc/config/nesting.conf
lxc.mount.auto =
lxc.mount.auto = cgroup:rw proc:mixed sys:mixed
lxc.cgroup.devices.allow = a
lxc.cgroup2.devices.allow = a
"""
#: systemd joins cpu and cpuacct, which a kernel that has them apart refuses; it leaves links to an empty folder, over
#: which LXC stumbles ("Not a directory - Failed to open cpuacct").
CGROUPS = """\
[Unit]
DefaultDependencies=no
Before=sysinit.target
ConditionPathIsSymbolicLink=/sys/fs/cgroup/cpuacct
[Service]
Type=oneshot
ExecStart=/bin/sh -ec 'cd /sys/fs/cgroup; mount -o remount,rw .; for name in cpu cpuacct; do rm $name; mkdir $name; \
 mount -t cgroup -o $name cgroup $name; done; mount -o remount,ro .'
"""
UNITS = "etc/systemd/system"


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

    def closed(self):
        return self.running()

    def start(self, folder, delta):
        self._configure(folder)
        if self.node["gpus"]:
            self._mend_cgroups(os.path.join(delta, UNITS))
        log = os.path.join(self.lab["folder"], "logs", self.name + ".log")
        self._lxc("start", "--daemon", "-o", log, "-l", "WARN")

    def stop(self):
        self._lxc("stop", "-k")

    @staticmethod
    def _boot_id(folder):
        """A machine that was started again has another one; a container has its host's."""
        path = os.path.join(folder, "boot_id")
        with open(path, "w", encoding="ascii") as file:
            file.write(f"{uuid.uuid4()}\n")
        return path

    @staticmethod
    def _mend_cgroups(units):
        wants = os.path.join(units, "sysinit.target.wants")
        os.makedirs(wants, exist_ok=True)
        with open(os.path.join(units, "lab-cgroups.service"), "w", encoding="ascii") as file:
            file.write(CGROUPS)
        if not os.path.lexists(os.path.join(wants, "lab-cgroups.service")):
            os.symlink("../lab-cgroups.service", os.path.join(wants, "lab-cgroups.service"))

    def _configure(self, folder):
        more = NESTING if self.node["gpus"] else LOOP
        cgroup = CGROUP[self.node["cgroup"]]
        lines = [CONTAINER.format(name=self.name, base=self.node["base"], folder=folder, cgroup=cgroup, more=more)]
        for number, network in enumerate(self.node["networks"]):
            lines.append(
                f"lxc.net.{number}.type = phys\nlxc.net.{number}.link = {self.name}-{number}i\n"
                f"lxc.net.{number}.name = eth{number}\n"
                f"lxc.net.{number}.flags = up\nlxc.net.{number}.ipv4.address = {network['address']}\n"
            )
        for source, target, kind in self._binds(folder):
            if os.path.exists(source):
                lines.append(f"lxc.mount.entry = {source} {target} none bind,create={kind} 0 0\n")
        with open(os.path.join(folder, "config"), "w", encoding="utf-8") as file:
            file.writelines(lines)

    def _binds(self, folder):
        """What is to be bound into the container, as (source, target, kind)."""
        # By it the kernel makes loop devices, as many as are asked for; who asks makes their nodes.
        binds = [("/dev/loop-control", "dev/loop-control", "file")]
        if self.node["gpus"]:
            binds += gpus.lay(os.path.join(folder, "gpus"), self.node["gpus"])
            binds.append((self._boot_id(folder), "proc/sys/kernel/random/boot_id", "file"))
        else:
            loops = [f"/dev/loop{n}" for n in range(8)]
            binds += [(device, device.lstrip("/"), "file") for device in loops]
        for path in self.node["folders"]:  # an overlay's upper layer cannot lie on an overlay: these are plain folders
            own = os.path.join(folder, "data", path.strip("/").replace("/", "-"))
            os.makedirs(own, exist_ok=True)
            binds.append((own, path.strip("/"), "dir"))
        for bind in self.node["binds"]:
            kind = "dir" if os.path.isdir(bind["source"]) else "file"
            binds.append((bind["source"], bind["target"].strip("/"), kind))
        return binds
