# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's libraries in a container's root against its host's driver, with roots as distributions make them."""

from __future__ import annotations

import fcntl

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused, TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.gpus import libraries
from ansible_collections.hetero.compute.plugins.module_utils._hetero.devices.gpus.libraries import check, look
from ansible_collections.hetero.compute.tests.unit.devices.gpus import own_file_system

DRIVER = "535.129.03"


class Root:
    def __init__(self, folder):
        self.folder = folder

    def file(self, path, text=""):
        full = self.folder / path.lstrip("/")
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_text(text)

    def link(self, path, target):
        full = self.folder / path.lstrip("/")
        full.parent.mkdir(parents=True, exist_ok=True)
        full.symlink_to(target)

    def library(self, name, version, folder="/usr/lib/x86_64-linux-gnu"):
        """As NVIDIA's installer and ldconfig leave it."""
        self.file(f"{folder}/{name}.so.{version}")
        self.link(f"{folder}/{name}.so.1", f"{name}.so.{version}")

    def seen(self):
        return {library.path: library.version for library in look(str(self.folder))}


@pytest.fixture
def root(tmp_path):
    (tmp_path / "root").mkdir()
    return Root(tmp_path / "root")


def test_libraries_of_the_drivers_version_pass(root):
    """What a container was made for must start."""
    for name in ("libcuda", "libnvidia-ml", "libnvidia-ptxjitcompiler"):
        root.library(name, DRIVER)
    found = check(str(root.folder), DRIVER)
    assert [(library.name, library.version) for library in found] == [
        ("libcuda.so.1", DRIVER),
        ("libnvidia-ml.so.1", DRIVER),
        ("libnvidia-ptxjitcompiler.so.1", DRIVER),
    ]


def test_libraries_of_another_version_are_refused(root):
    """The tenant would get "Driver/library version mismatch" from the first program, hours after the hand-over."""
    root.library("libcuda", DRIVER)
    root.library("libnvidia-ml", "550.54.15", "/usr/lib64")
    with pytest.raises(Refused) as raised:
        check(str(root.folder), DRIVER, "container ml-7")
    assert str(raised.value) == (
        "container ml-7: NVIDIA's libraries inside do not fit the host's driver 535.129.03: "
        "/usr/lib64/libnvidia-ml.so.550.54.15 is 550.54.15: "
        "install version 535.129.03 of them inside, or bind the host's libraries in their place"
    )


def test_a_container_without_libraries_passes(root):
    """Tenants may bring their own later; there is nothing yet that could not fit."""
    (root.folder / "usr" / "lib").mkdir(parents=True)
    root.link("/usr/lib64/libcuda.so.1", "libcuda.so.535.129.03")  # a link to what is not there
    assert check(str(root.folder), DRIVER) == []


def test_a_host_without_a_driver_has_nothing_to_compare(root):
    """The refusal then is the GPU's: it has no driver."""
    root.library("libcuda", "550.54.15")
    assert len(check(str(root.folder), None)) == 1


def test_links_lead_to_where_the_container_sees_them(root, tmp_path):
    """Debian's alternatives are absolute links; followed from outside they would show the host's own libraries."""
    root.file("/usr/lib/x86_64-linux-gnu/nvidia/tesla-470/libcuda.so.470.57.02")
    root.link("/etc/alternatives/libcuda", "/usr/lib/x86_64-linux-gnu/nvidia/tesla-470/libcuda.so.470.57.02")
    root.link("/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/etc/alternatives/libcuda")
    outside = Root(tmp_path)
    outside.file("/libnvidia-ml.so.535.129.03")
    root.link("/usr/lib64/libnvidia-ml.so.1", str(tmp_path / "libnvidia-ml.so.535.129.03"))
    root.link("/usr/lib64/libcuda.so.1", "../../../../../../../../.." + str(tmp_path / "libnvidia-ml.so.535.129.03"))
    assert root.seen() == {"/usr/lib/x86_64-linux-gnu/nvidia/tesla-470/libcuda.so.470.57.02": "470.57.02"}


def test_folders_that_the_linker_is_told_of_are_looked_at(root):
    """CUDA images put the libraries where only ld.so.conf.d names them; the compatibility package is another matter."""
    root.file("/etc/ld.so.conf.d/nvidia.conf", "# NVIDIA\n/opt/nvidia/lib # here\ninclude x\n/usr/local/cuda/compat\n")
    root.library("libcuda", DRIVER, "/opt/nvidia/lib")
    root.library("libcuda", "550.54.15", "/usr/local/cuda/compat")
    assert root.seen() == {f"/opt/nvidia/lib/libcuda.so.{DRIVER}": DRIVER}


@pytest.mark.parametrize(
    "folder",
    [
        *("/usr/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu/nvidia/current", "/usr/lib/nvidia-535"),
        *("/usr/lib64", "/usr/lib64/nvidia", "/usr/lib", "/lib/x86_64-linux-gnu", "/lib64", "/lib"),
        *("/usr/local/lib", "/usr/local/nvidia/lib64"),
    ],
)
def test_each_folder_of_distributions_and_installers(root, folder):
    """A library that is not found is not compared, and the tenant finds out."""
    root.library("libcuda", DRIVER, folder)
    assert root.seen() == {f"{folder}/libcuda.so.{DRIVER}": DRIVER}


def test_the_linkers_first_file_is_read(root):
    """Without a # behind it as well: most lines have none."""
    root.file("/etc/ld.so.conf", "/opt/cuda/lib\n")
    root.library("libcuda", DRIVER, "/opt/cuda/lib")
    assert root.seen() == {f"/opt/cuda/lib/libcuda.so.{DRIVER}": DRIVER}


def test_one_library_by_two_names_is_one(root):
    """On merged systems /lib is /usr/lib, and a user is told of each file once."""
    root.library("libcuda", DRIVER)
    root.link("/lib", "usr/lib")
    assert list(root.seen()) == [f"/usr/lib/x86_64-linux-gnu/libcuda.so.{DRIVER}"]


def test_a_file_that_names_no_version_is_not_judged(root):
    """Bind mounts of single files have the name of the link; they are the host's own."""
    root.file("/usr/lib64/libcuda.so.1")
    assert check(str(root.folder), DRIVER)[0].version is None


def test_who_looks_in_a_root_that_never_answers_has_no_locks(tmp_path, monkeypatch):
    """Lost: every verb of a container, also its end, to its own file system: who waits for it has the locks."""
    monkeypatch.setattr(libraries, "FOLDERS", ("/mnt/all",))
    with own_file_system.holding(tmp_path, (1, 5), "silent") as process, open(tmp_path / "lock", "w") as held:
        if process is None:
            pytest.skip("this kernel has no FUSE")
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(TimedOut):
            look(f"/proc/{process.pid}/root", Deadline(1))
        held.close()
        with open(tmp_path / "lock", "w") as free:
            fcntl.flock(free, fcntl.LOCK_EX | fcntl.LOCK_NB)
