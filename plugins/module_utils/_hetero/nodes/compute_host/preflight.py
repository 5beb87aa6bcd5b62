# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps a machine from giving GPUs to LXC containers, all of it in one look, by trying where that can be tried.

Looks and changes nothing. How the set-up then stands is selftest.py's.
"""

from __future__ import annotations

import errno
import os
import re
import tempfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...claims.host.config import file_system_gb
from ...compute_host import gpu_nodes, network
from ...core.command import command
from ...core.errors import BadInput, HeteroError, Refused
from ...core.findings import Findings, system
from ...core.machine import missing_packages, mount_of
from ...devices.cgroup import bpf, mounts
from ...devices.cgroup.program import compile_rules, mark_of
from ...devices.gpus import discovery
from ...devices.gpus.paths import HERE, text_of
from ...files.loop import attached, own_nodes
from ...files.paths import existing
from ...hypervisors.lxc import identity, kernel
from ...hypervisors.lxc.disks import FILE as DISK
from . import id_maps

if TYPE_CHECKING:
    from ...devices.gpus.paths import Paths

#: The first liblxc that limits devices on cgroup v2 (its release notes).
LIBLXC = (4, 0)


@dataclass
class Plan:
    """What the role is about to set up; the fields are the options of module host_check_info."""

    lxcpath: str = "/var/lib/lxc"
    state_folder: str = "/var/lib/hetero"
    bridge: str = "hetero0"
    make_bridge: bool = True
    network: str = "10.0.80.0/24"
    gateway: str = ""
    addresses: list[str] = field(default_factory=list)
    local_gb: int | None = None
    unprivileged: bool = True
    gpu_overrides: dict[str, Any] = field(default_factory=dict)
    packages: list[str] = field(default_factory=list)
    kind: str = "lxc"
    nat: bool = True
    open_ports: list[str] = field(default_factory=list)
    closed_networks: list[str] = field(default_factory=list)
    open_networks: list[str] = field(default_factory=list)


def look(plan: Plan, paths: Paths = HERE) -> Findings:
    """Return everything that there is to say about `plan` on this machine."""
    found = Findings()
    if not system(found):
        return found
    device_cgroup(found, paths.proc)
    found.facts["missing_packages"] = missing_packages([*plan.packages, *profiles(paths.sys)])
    # Its unit says ConditionVirtualization=!lxc; what starts containers waits 30 s for its bridge all the same.
    found.facts["lxc_net"] = command(["systemd-detect-virt", "--container"], ok=(0, 1)).strip() != "lxc"
    liblxc(found)
    if plan.unprivileged:
        unprivileged(found, paths.proc)
    found.facts["id_maps"] = id_maps.wanted(found) if plan.unprivileged else {}
    found.facts["network"] = facts = network.look(plan, found)
    found.facts["bridge_stands"] = bool(facts) and network.stands(plan.bridge, facts["gateway"])
    folders(plan, found)
    disks(plan, found)
    earlier(plan, found)
    gpus(plan, found, paths)
    return found


def device_cgroup(found: Findings, proc: str = "/proc") -> None:
    """Look for what limits which devices a container opens: cgroup v1's controller, or BPF programs on cgroup v2."""
    there = mounts.mounts(proc)
    version = "hybrid" if there[mounts.V1] and there[mounts.V2] else "v1" if there[mounts.V1] else "v2"
    found.facts["cgroup"] = version
    if not there[mounts.V1] and not there[mounts.V2]:
        what = "neither cgroup v1's controller `devices` nor cgroup v2 is mounted: each container could open each GPU"
        found.defect("device cgroup", what, "boot with cgroup v2 (systemd.unified_cgroup_hierarchy=1)")
    if there[mounts.V1]:
        rules = os.path.join(there[mounts.V1][0].point, "devices.deny")
        # where it is the root of the hierarchy it cannot be read, and need not be
        if os.path.exists(rules) and not _writable(there[mounts.V1][0].point):
            what = "is mounted read-only, so that nothing can be given to or taken from a container"
            found.defect(there[mounts.V1][0].point, what, "a container needs lxc.mount.auto = cgroup:rw")
    elif there[mounts.V2]:
        bpf_programs(found)


def bpf_programs(found: Findings) -> None:
    """Try whether a program that limits devices can be loaded. It is let go at once."""
    try:
        os.close(bpf.load(compile_rules("forbid", [], mark_of("preflight")), "hetero_try"))
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.EINVAL):
            what = f"this kernel takes no device programs ({error.strerror}), and there is no cgroup v1 beside"
            remedy = "use a kernel with CONFIG_CGROUP_BPF (Linux 4.15), or boot with systemd.unified_cgroup_hierarchy=0"
        else:
            what = f"bpf(2) is refused ({error.strerror})"
            remedy = "run on the machine itself, or give the container CAP_BPF, CAP_NET_ADMIN and CAP_SYS_ADMIN"
        found.defect("device cgroup", what, remedy)


def liblxc(found: Findings) -> None:
    """Look at the version that is installed, or would be. If apt knows none, installing it says so."""
    said = command(["apt-cache", "policy", "liblxc1"], "liblxc1", "run apt-get update")
    versions = dict(re.findall(r"^  (Installed|Candidate): (\S+)$", said, re.MULTILINE))
    version = versions.get("Installed", "(none)")
    version = versions.get("Candidate", "(none)") if version == "(none)" else version
    number = re.match(r"(?:\d+:)?(\d+)\.(\d+)", version)
    if number and (int(number.group(1)), int(number.group(2))) < LIBLXC:
        what = f"{version} does not limit devices on cgroup v2 (4.0 does)"
        found.defect("liblxc1", what, "use Debian 11, Ubuntu 20.04, or newer")


def profiles(sys: str = "/sys") -> list[str]:
    """Return the packages that LXC needs on a kernel with AppArmor: no container starts without a profile, which
    somebody must load.
    """
    enabled = text_of(sys, "module", "apparmor", "parameters", "enabled") == "Y"
    return ["apparmor"] if enabled else []


def unprivileged(found: Findings, proc: str = "/proc") -> None:
    """Look for what unprivileged containers need of the kernel: user namespaces, and mounts by descriptor for their
    devices.
    """
    most = text_of(proc, "sys", "user", "max_user_namespaces")
    if most is None or most == "0":
        what = "this kernel has none, or allows none (user.max_user_namespaces is 0)"
        remedy = "allow some by sysctl, or set gpu_lxc_unprivileged: false"
        found.defect("user namespaces", what, remedy)
    try:
        os.close(kernel.clone_mount("/dev/null"))
    except OSError as error:
        why = f"({error.strerror}): no device gets into an unprivileged container"
        what = f"open_tree(2) or mount_setattr(2) does not work here {why}"
        remedy = "use Linux 5.12 or newer, or set gpu_lxc_unprivileged: false"
        if error.errno != errno.ENOSYS:
            remedy = "run on the machine itself, or give the container CAP_SYS_ADMIN; or gpu_lxc_unprivileged: false"
        found.defect(f"Linux {os.uname().release}", what, remedy)


def folders(plan: Plan, found: Findings) -> None:
    """Look at the file systems with containers and the database."""
    for folder in (plan.lxcpath, plan.state_folder):
        point, fstype = mount_of(existing(folder))
        if fstype == "overlay":
            what = f"lies on an overlay ({point}), which cannot hold the containers' overlays"
            found.defect(folder, what, "mount ext4 or XFS there")
        if os.statvfs(existing(folder)).f_flag & os.ST_NODEV:
            found.defect(folder, f"{point} is mounted nodev: no device below it opens", "mount it with option dev")


def disks(plan: Plan, found: Findings) -> None:
    """Try whether a container can have a file system of its own in a file."""
    with tempfile.NamedTemporaryFile(prefix="hetero-preflight-") as file:
        file.truncate(1 << 20)
        try:
            with own_nodes(), attached(file.name):
                pass
        except HeteroError as error:
            found.defect("containers' disks", error.what, error.remedy)
    there = file_system_gb(plan.lxcpath)
    if plan.local_gb and plan.local_gb > there:
        what = f"{plan.local_gb} GiB are offered to instances, and its file system has {there}"
        remedy = "where all use what they have, writes fail: set gpu_lxc_local_gb lower to offer what there is"
        found.note(plan.lxcpath, what, remedy)


def earlier(plan: Plan, found: Findings) -> None:
    """Note the containers of an earlier release, which have neither ids nor a disk of their own."""
    for name in sorted(os.listdir(plan.lxcpath)) if os.path.isdir(plan.lxcpath) else []:
        folder = os.path.join(plan.lxcpath, name)
        try:
            ours = identity.written(os.path.join(folder, "config"))
        except Refused as error:
            found.note(error.thing, error.what, error.remedy)
            continue
        if ours and not os.path.exists(os.path.join(folder, DISK)):
            what = "was made by an earlier release: its disk has no limit, and its ids are those of others made then"
            found.note(f"container {name}", what, "rebuild it when its owner can spare what is in it")


def gpus(plan: Plan, found: Findings, paths: Paths = HERE) -> None:
    """Look at the GPUs. A machine without any is set up all the same, because its driver may come later."""
    found.facts.update(gpus=[], absent_nodes=[])
    try:
        seen = discovery.find(plan.gpu_overrides, paths)
    except BadInput as error:
        found.defect("gpu_lxc_overrides", str(error), "correct it in the inventory")
        return
    nvidia = [gpu for gpu in seen.gpus if gpu.vendor == "nvidia"]
    if seen.driver_version is None:
        what = "has NVIDIA GPUs, and their driver is not loaded" if nvidia else "has no NVIDIA GPU"
        found.note("this machine", what, "install the driver; there is nothing to give before")
    if seen.unsupported:
        found.note("GPUs", seen.unsupported, "they are not given to containers")
    for gpu in nvidia:
        if gpu.unsupported and seen.driver_version:
            found.note(gpu.address, gpu.unsupported, "it is not given to containers")
        if gpu.why_unhealthy:
            found.note(gpu.address, gpu.why_unhealthy, "it is not given to containers")
        if gpu.note:
            found.note(gpu.address, gpu.note, "it is given by address until then")
    for name in seen.unused_overrides:
        found.note(f"gpu_lxc_overrides, {name}", "no GPU here has that name", "correct it, or remove it")
    found.facts["gpus"] = [dict(address=gpu.address, uuid=gpu.uuid, arch=gpu.arch, model=gpu.model) for gpu in nvidia]
    found.facts["absent_nodes"] = [node.path for node, _why in gpu_nodes.wrong(paths)]


def _writable(folder: str) -> bool:
    return not os.statvfs(folder).f_flag & os.ST_RDONLY
