# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lab node that is a whole machine with a kernel of its own: QEMU under emulation, on a disk of its own.

Takes a base that images/machine.sh made, and what is to lie over it; the namespace and its taps are lab.py's.
"""

from __future__ import annotations

import os
import re
import subprocess

MEMORY_MB = 1024
KERNEL = "console=ttyS0 net.ifnames=0 systemd.hostname={name} quiet no_timer_check"


def lay(folder, node, delta):
    """The machine's disk: a copy of its base with the files of `delta` in it; it mounts what folders it shares."""
    fstab = [f"bind{number} {bind['target']} 9p trans=virtio,ro 0 0\n" for number, bind in _shared(node)]
    with open(os.path.join(delta, "etc", "fstab"), "w", encoding="ascii") as file:
        file.writelines(fstab)
    files = {bind["target"]: bind["source"] for bind in node["binds"] if os.path.isfile(bind["source"])}
    for parent, _folders, names in os.walk(delta):
        inside = os.path.join("/", os.path.relpath(parent, delta))
        files.update({os.path.normpath(os.path.join(inside, name)): os.path.join(parent, name) for name in names})
    disk = os.path.join(folder, "disk")
    # Sparse, or it is as large as it looks.
    _run("cp", "--sparse=always", os.path.join(node["base"], "disk"), f"{disk}~")
    _write(f"{disk}~", files)
    os.replace(f"{disk}~", disk)


def argv(name, folder, node, console):
    """The command that is the machine; its power is cut when it is killed."""
    words = ["qemu-system-x86_64", "-name", name, "-machine", "pc", "-accel", "tcg,thread=multi"]
    words += ["-cpu", "qemu64,+rdrand", "-smp", "2", "-m", str(MEMORY_MB)]
    words += ["-nodefaults", "-no-user-config", "-display", "none"]
    words += ["-chardev", f"file,id=console,path={console},append=on", "-serial", "chardev:console"]
    words += ["-drive", f"file={folder}/disk,format=raw,if=virtio"]
    addresses = []
    for number, network in enumerate(node["networks"]):
        words += ["-netdev", f"tap,id=n{number},ifname={name}-{number},script=no,downscript=no"]
        words += ["-device", f"virtio-net-pci,romfile=,netdev=n{number},mac={network['mac']}"]
        addresses.append(f"lab.eth{number}={network['address']}")
    for number, bind in _shared(node):
        words += ["-virtfs", f"local,path={bind['source']},mount_tag=bind{number},security_model=none,readonly=on"]
    words += ["-kernel", os.path.join(node["base"], "kernel"), "-initrd", os.path.join(node["base"], "initrd")]
    return [*words, "-append", " ".join([KERNEL.format(name=name), *addresses])]


def _shared(node):
    return [(number, bind) for number, bind in enumerate(node["binds"]) if os.path.isdir(bind["source"])]


def _write(disk, files):
    """Write {path on the disk: file here} by debugfs(8), which needs no loop device; it ends with 0 always, so look."""
    parents = {parent for path in files for parent in _parents(path)}
    lines = [f"mkdir {parent}\n" for parent in sorted(parents)]  # one that is there stays
    lines += [f"rm {path}\nwrite {source} {path}\n" for path, source in files.items()]
    _run("debugfs", "-w", "-f", "-", disk, text="".join(lines))
    said = _run("debugfs", "-f", "-", disk, text="".join(f"stat {path}\n" for path in files))
    sizes = [int(size) for size in re.findall(r"^User: .*Size: (\d+)$", said, re.M)]
    if sizes != [os.path.getsize(source) for source in files.values()]:
        raise SystemExit(f"{', '.join(files)} could not be written to {disk}")


def _parents(path):
    """The folders that a path lies in, the root left out."""
    parent = os.path.dirname(path)
    return [*_parents(parent), parent] if parent != "/" else []


def _run(*words, text=""):
    done = subprocess.run(
        words, input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, text=True, timeout=120
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} ended with {done.returncode}: {done.stdout.strip()}")
    return done.stdout
