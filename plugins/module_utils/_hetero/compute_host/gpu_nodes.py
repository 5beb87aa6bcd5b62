# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`hetero gpu-nodes`: the device nodes of NVIDIA GPUs on this host, with the numbers that their drivers have now.

The driver makes no nodes itself: nvidia-modprobe does on first use, and it loads nvidia-uvm. Where nvidia-modprobe is
not installed, this command makes the same nodes. devices/gpus/discovery.py tells which nodes there should be; the role
gpu_lxc runs the command at boot.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import stat
import sys
from typing import TYPE_CHECKING, Callable, Sequence

from ..core.command import command
from ..core.errors import HeteroError, naming
from ..devices.gpus import discovery
from ..devices.gpus.paths import HERE, text_of

if TYPE_CHECKING:
    from ..devices.gpus.discovery import Found
    from ..devices.gpus.nodes import DeviceNode
    from ..devices.gpus.paths import Paths

VERB = "gpu-nodes"
DOES = "Make the device nodes of NVIDIA GPUs, with the numbers that their drivers have now."
#: Defaults of the driver's parameters (nv.c of NVIDIA's kernel module).
OWNER = {"ModifyDeviceFiles": 1, "DeviceFileUID": 0, "DeviceFileGID": 0, "DeviceFileMode": 0o666}
TOOL = "nvidia-modprobe"
DRIVERS = ("nvidia", "nvidia-uvm")
SEE = "see dmesg, lines of NVRM"


def wrong(paths: Paths = HERE) -> list[tuple[DeviceNode, str]]:
    """Return [(node, why)] of the nodes that NVIDIA's driver has and this host lacks or has with other numbers."""
    return _wrong(discovery.find(paths=paths))


def make(
    say: Callable[[str], object], paths: Paths = HERE, tool: str = TOOL, loader: str = "modprobe"
) -> list[HeteroError]:
    """Load the drivers that are not loaded and make what is missing. Return the errors of what could not be made.

    :param say: is called with a text for each node that was made.
    """
    found = discovery.find(paths=paths)
    before = _wrong(found)
    errors: list[HeteroError] = []
    idle = found.driver_version is None and any(gpu.vendor == "nvidia" for gpu in found.gpus)
    try:
        if shutil.which(tool) and (before or idle):
            minors = [str(gpu.minor) for gpu in found.gpus if gpu.minor is not None] or ["0"]
            command([tool, *(word for minor in minors for word in ("-c", minor)), "-u"], tool, SEE)
        elif idle or any(node.major is None for node, _why in before):
            command([loader, "-a", *DRIVERS], " and ".join(DRIVERS), SEE)
    except HeteroError as error:
        errors.append(error)
    left = wrong(paths)
    for node, _why in before:
        if node.path not in {other.path for other, _why in left}:
            say(f"{node.path} made by {tool}")
    for node, why in left:
        try:
            _make(node, why, paths)
        except HeteroError as error:
            errors.append(error)
        else:
            say(f"{node.path} made, {node.kind} {node.major}:{node.minor}")
    return errors


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command's arguments."""
    return argparse.ArgumentParser(prog=f"hetero {VERB}", description=DOES)


def main(arguments: Sequence[str]) -> int:
    parser().parse_args(arguments)
    errors = make(lambda text: sys.stdout.write(f"{text}\n"))
    for error in errors:
        sys.stderr.write(f"{error}\n")
    return 1 if errors else 0


def _wrong(found: Found) -> list[tuple[DeviceNode, str]]:
    if found.driver_version is None:
        return []
    own = [node for gpu in found.gpus if gpu.vendor == "nvidia" for node in gpu.nodes]
    return [(node, node.why_absent) for node in [*own, *found.shared] if node.why_absent is not None]


def parameters(paths: Paths = HERE) -> dict[str, int]:
    """Return who is to own the nodes and with which mode, by the driver's parameters."""
    said = dict(re.findall(r"^(\w+): (\d+)$", text_of(paths.proc, "driver", "nvidia", "params") or "", re.MULTILINE))
    return {name: int(said.get(name, value)) for name, value in OWNER.items()}


def _make(node: DeviceNode, why: str, paths: Paths) -> None:
    """Make a node under another name and rename it, so that a program that opens it gets the old or the whole new one.

    :param why: why it is not there.
    """
    if node.major is None:
        raise HeteroError(why, node.path, f"load the driver, or install {TOOL}")
    wanted = parameters(paths)
    if not wanted["ModifyDeviceFiles"]:
        what = f"{why}; and the driver's ModifyDeviceFiles is 0: its nodes are the operator's own"
        raise HeteroError(what, node.path, "make it, or let the driver make it")
    path = os.path.join(paths.dev, os.path.relpath(node.path, "/dev"))
    if os.path.lexists(path) and not stat.S_ISCHR(os.lstat(path).st_mode):
        raise HeteroError("is no device, and in the way of one", node.path, "move it away")
    scratch = f"{path}.new"
    with naming(path):
        if os.path.lexists(scratch):
            os.unlink(scratch)
        os.mknod(scratch, stat.S_IFCHR | 0o600, os.makedev(node.major, node.minor))
        os.chown(scratch, wanted["DeviceFileUID"], wanted["DeviceFileGID"])
        os.chmod(scratch, wanted["DeviceFileMode"])
        os.rename(scratch, path)
