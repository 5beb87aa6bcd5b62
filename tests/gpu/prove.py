# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proof on a machine with a real NVIDIA GPU: a CUDA program in an LXC container fails, works once the GPU is given
to the container, and fails once it is taken back.

Run by `make test-gpu`, or by `python3 tests/run gpu` where nothing is installed and no network is: all it needs is
root, Python 3.8, the GPU's driver with libcuda, and LXC. For a machine without LXC (Ubuntu 24.04 will do) carry its
packages along, which are unpacked and not installed. On a Debian 12, in this clone:

    mkdir -p tests/gpu/packages && cd tests/gpu/packages && apt-get download lxc liblxc1 liblxc-common

Where something is missing it says what in one line, and ends with 0.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PACKAGES = HERE / "packages"
UNPACKED = "HETERO_GPU_PROOF_LXC"
#: Seconds for giving and for taking back.
LIMIT = 60


class Missing(Exception):
    """What this machine lacks for the proof."""


def loads(library):
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def with_lxc(folder):
    """Start this program again with LXC's packages unpacked into `folder`, where LXC is not installed."""
    if loads("liblxc.so.1") and shutil.which("lxc-start"):
        return
    packages = sorted(PACKAGES.glob("*.deb"))
    if not packages or UNPACKED in os.environ:
        raise Missing(f"LXC: install it, or put its packages into {PACKAGES.relative_to(ROOT)} (prove.py says how)")
    for package in packages:
        subprocess.run(["dpkg", "-x", str(package), folder], check=True)
    libraries = {str(path.parent) for path in Path(folder).rglob("liblxc.so.1")}
    paths = [f"{folder}/usr/bin", f"{folder}/usr/sbin", os.environ["PATH"]]
    env = dict(os.environ, PATH=":".join(paths), LD_LIBRARY_PATH=":".join(libraries))
    env[UNPACKED] = folder
    sys.exit(subprocess.run([sys.executable, __file__], env=env, check=False).returncode)


def collection(folder):
    """Make the collection importable, as Ansible's loader would."""
    package = Path(folder) / "ansible_collections" / "hetero"
    package.mkdir(parents=True)
    (package / "compute").symlink_to(ROOT)
    sys.path[:0] = [folder, str(HERE)]


def a_gpu(found):
    """The first GPU that can be given to a container."""
    if found.driver_version is None:
        raise Missing("an NVIDIA GPU with its driver (/proc/driver/nvidia/version is not there)")
    why = {}
    for gpu in found.gpus:
        absent = [f"{node.path} {node.why_absent}" for node in gpu.nodes if not node.present]
        why[gpu.address] = gpu.unsupported or gpu.why_unhealthy or "; ".join(absent)
        if not why[gpu.address]:
            return gpu
    raise Missing(f"a GPU that can be given to a container ({why or 'there is none'})")


def prove(folder):
    collection(folder)
    from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.gpus import discovery

    found = discovery.find()
    gpu = a_gpu(found)
    if os.geteuid() != 0:
        raise Missing("root")
    if not loads("libcuda.so.1"):
        raise Missing("libcuda.so.1, which comes with NVIDIA's driver")
    if not os.access("/sys/fs/cgroup", os.W_OK) or os.statvfs("/sys/fs/cgroup").f_flag & os.ST_RDONLY:
        raise Missing("cgroups that can be written (this machine is a container itself)")
    with_lxc(tempfile.mkdtemp(prefix="lxc-", dir=folder))
    return given_and_taken_back(folder, found, gpu)


def given_and_taken_back(folder, found, gpu):
    from container import Proof

    from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.allocation import GpuRequest
    from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.host.store import Store
    from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
    from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
    from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import attachment
    from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus.site import Site

    print(f"{gpu.address} {gpu.model} ({gpu.arch}), driver {found.driver_version}")
    with Store(os.path.join(folder, "host.db"), "proof") as store, Proof(folder) as proof:
        site = Site(store, found, (proof.lxcpath,), os.path.join(folder, "run"))
        expect(proof, gpu, False, "before")
        given = Change()
        wanted = GpuRequest(gpus=(gpu.address,))
        result = attachment.attach(site, proof.container, wanted, given, Deadline(LIMIT), persistent=False)
        print(f"given:      {', '.join(node['path'] for node in result['nodes'])}; {given.seconds}")
        expect(proof, gpu, True, "with it")
        again = Change()
        attachment.attach(site, proof.container, wanted, again, Deadline(LIMIT), persistent=False)
        if again.changed:
            sys.exit(f"FAILED: given again, it changed {again.diff}")
        taken = Change()
        attachment.detach(site, proof.container, [gpu.address], taken, Deadline(LIMIT))
        print(f"taken back: {taken.seconds}")
        expect(proof, gpu, False, "after")
    return f"{gpu.model}: fails before, works with it, fails after"


def expect(proof, gpu, wanted, when):
    """Run the program inside, and open the GPU there by its number alone; end with 1 where one is not as it should."""
    from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import open_trial

    (number,) = open_trial.reaches(proof.container, [gpu.nodes[0].number]).values()
    works, said = proof.run()
    opened = errno.errorcode.get(number, "opens")
    print(f"{when + ':':11} {'works' if works else 'fails'}: {said}; by number: {opened}")
    # only the device cgroup says EPERM
    if works != wanted or (number != errno.EPERM) != wanted:
        sys.exit(f"FAILED: the CUDA program must {'work' if wanted else 'fail, and the GPU be closed,'} {when}")


def main():
    with tempfile.TemporaryDirectory(prefix="hetero-gpu-") as folder:
        try:
            print(prove(folder))
        except Missing as missing:
            print(f"skipped: this machine lacks {missing}")


if __name__ == "__main__":
    main()
