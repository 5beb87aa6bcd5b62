# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`hetero gpu-nodes`: without it, a host that was started again gives no GPU, or another driver's device instead."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import gpu_nodes


def numbers(machine):
    """{name: (major, minor, mode)} of what is in the machine's /dev."""
    found = {}
    for name in os.listdir(machine.root / "dev"):
        seen = os.lstat(machine.root / "dev" / name)
        if stat.S_ISCHR(seen.st_mode):
            found[name] = (os.major(seen.st_rdev), os.minor(seen.st_rdev), stat.S_IMODE(seen.st_mode))
    return found


def empty_dev(machine):
    shutil.rmtree(machine.root / "dev")
    (machine.root / "dev").mkdir()


def make(machine, tool="/nowhere/nvidia-modprobe", loader="/nowhere/modprobe"):
    said = []
    errors = gpu_nodes.make(said.append, machine.paths, tool, loader)
    return said, [str(error) for error in errors]


ALL = {
    **{f"nvidia{minor}": (195, minor, 0o666) for minor in range(4)},
    "nvidiactl": (195, 255, 0o666),
    "nvidia-modeset": (195, 254, 0o666),
    "nvidia-uvm": (238, 0, 0o666),
    "nvidia-uvm-tools": (238, 1, 0o666),
}


@pytest.fixture
def script(tmp_path):
    """Makes a program in the place of nvidia-modprobe or modprobe, which keeps its words and does `body`."""

    def program(name, body):
        path = tmp_path / name
        path.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/{name}.words\n{body}\n')
        path.chmod(0o755)
        return str(path)

    return program


def test_all_nodes_after_a_start(four):
    empty_dev(four)
    said, errors = make(four)
    assert numbers(four) == ALL
    assert errors == []
    assert "/dev/nvidia-uvm made, c 238:0" in said
    assert make(four) == ([], [])


def test_a_node_of_another_driver_is_replaced(four):
    """After a kernel's restart 238 may be anybody's: whoever opens the old node opens another driver's device."""
    four.write_majors(nvidia_uvm=241, other=238)
    said, errors = make(four)
    assert (said, errors) == (["/dev/nvidia-uvm made, c 241:0", "/dev/nvidia-uvm-tools made, c 241:1"], [])
    assert numbers(four)["nvidia-uvm"] == (241, 0, 0o666)
    assert [name for name in os.listdir(four.root / "dev") if name.endswith(".new")] == []


def test_the_operators_owner_and_mode(four):
    (four.nvidia / "params").write_text(
        "ModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 44\nDeviceFileMode: 432\n"
    )
    empty_dev(four)
    assert make(four)[1] == []
    seen = os.stat(four.root / "dev" / "nvidia0")
    assert (seen.st_gid, stat.S_IMODE(seen.st_mode)) == (44, 0o660)


def test_an_operator_who_makes_nodes_himself_is_told(four):
    (four.nvidia / "params").write_text("ModifyDeviceFiles: 0\n")
    empty_dev(four)
    said, errors = make(four)
    assert (said, len(errors), numbers(four)) == ([], 8, {})
    assert "ModifyDeviceFiles is 0" in errors[0]


def test_what_is_in_the_way_is_not_removed(four):
    (four.root / "dev" / "nvidia0").unlink()
    (four.root / "dev" / "nvidia0").write_text("somebody's core dump")
    assert make(four) == ([], ["/dev/nvidia0: is no device, and in the way of one: move it away"])
    assert (four.root / "dev" / "nvidia0").read_text() == "somebody's core dump"


def test_nvidia_modprobe_where_there_is_one(four, script):
    """NVIDIA's own program knows more than we do; what it leaves out is made all the same."""
    empty_dev(four)
    tool = script("nvidia-modprobe", f"mknod -m 666 {four.root}/dev/nvidia2 c 195 2")
    said, errors = make(four, tool)
    assert errors == []
    assert f"/dev/nvidia2 made by {tool}" in said
    assert "/dev/nvidia0 made, c 195:0" in said
    assert Path(f"{tool}.words").read_text() == "-c 2 -c 0 -c 3 -c 1 -u\n"


def test_a_driver_that_is_not_loaded_is(four, script):
    """Nothing loads nvidia-uvm by itself, and no CUDA program runs without it."""
    four.write_majors(nvidia_uvm=None)
    (four.root / "dev" / "nvidia-uvm").unlink()
    (four.root / "dev" / "nvidia-uvm-tools").unlink()
    loader = script("modprobe", f"sed -i 's/^  1 mem/  1 mem\\n239 nvidia-uvm/' {four.root}/proc/devices")
    said, errors = make(four, loader=loader)
    assert (said, errors) == (["/dev/nvidia-uvm made, c 239:0", "/dev/nvidia-uvm-tools made, c 239:1"], [])
    assert Path(f"{loader}.words").read_text() == "-a nvidia nvidia-uvm\n"


def test_a_driver_that_cannot_be_loaded_is_an_error_and_the_rest_is_made(four, script):
    four.write_majors(nvidia_uvm=None)
    empty_dev(four)
    _said, errors = make(four, loader=script("modprobe", "echo 'Module nvidia-uvm not found' >&2; exit 1"))
    assert "Module nvidia-uvm not found" in errors[0]
    assert [error.split(":")[0] for error in errors[1:]] == ["/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"]
    assert set(numbers(four)) == {name for name in ALL if "uvm" not in name}


def test_a_machine_without_gpus_has_nothing_to_do(bare, script):
    loader = script("modprobe", "exit 1")
    assert make(bare, loader=loader) == ([], [])
    assert not os.path.exists(f"{loader}.words")
