# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of a running container, found from the host: a process of this test that has another root is the container. If
these fail, the root of a container leads what the host does as root to the host's own files.

Tests hypervisors/lxc/roots.py.
"""

from __future__ import annotations

import errno
import os
import signal
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc import kernel
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc.roots import ContainerRoot

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")


@pytest.fixture
def container(tmp_path):
    """A container whose root is tmp_path/root; beside it, on the host, lies folder secret."""
    root = tmp_path / "root"
    (root / "dev").mkdir(parents=True)
    (tmp_path / "secret").mkdir()
    ready, there = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.chroot(root)
            os.chdir("/")
            os.write(there, b".")
            signal.pause()
        finally:
            os._exit(0)
    try:
        assert os.read(ready, 1) == b"."
        yield SimpleNamespace(thing="container ml-8", init_pid=pid, root_owner=(0, 0), root=root)
    finally:
        os.close(ready)
        os.close(there)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


@pytest.fixture(params=["openat2", "child"])
def way(request, monkeypatch):
    """By the kernel's own way, and by a child of older kernels."""
    if request.param == "child":

        def none(*_given):
            raise OSError(errno.ENOSYS, "no such call")

        monkeypatch.setattr(kernel, "open_in_root", none)
    return request.param


def listed(container, path):
    """(the names in the folder that holds a path, its last part), or None."""
    with ContainerRoot(container) as root, root.folder(path) as place:
        if place is None:
            return None
        there = os.open(".", os.O_RDONLY, dir_fd=place[0])
        try:
            return sorted(os.listdir(there)), place[1]
        finally:
            os.close(there)


@pytest.mark.usefixtures("way")
def test_no_link_leads_out_of_the_container(container, tmp_path):
    """Lost: the host's files, which the container's root wants its node put over."""
    (container.root / "dev" / "nvidia0").write_text("")
    assert listed(container, "/dev/nvidia0") == (["nvidia0"], "nvidia0")
    (container.root / "out").symlink_to(tmp_path / "secret")
    (container.root / "up").symlink_to("../secret")
    (container.root / "loop").symlink_to("loop")
    for path in ("/out/x", "/up/x", "/dev/../../secret/x", "/none/x", "/loop/x"):
        assert listed(container, path) is None, path
    (container.root / "top").symlink_to("/dev")
    assert listed(container, "/top/x") == (["nvidia0"], "x"), "an absolute link is one of the container's"


@pytest.mark.usefixtures("way")
def test_missing_folders_are_made_inside(container, tmp_path):
    """Lost: the device nodes of a container whose image has no such folder."""
    with ContainerRoot(container) as root, root.folder("/dev/dri/by-path/card0", make=True) as place:
        assert place[1] == "card0"
    assert (container.root / "dev" / "dri" / "by-path").is_dir()
    (container.root / "dev" / "file").write_text("")
    (container.root / "dev" / "out").symlink_to(tmp_path / "secret")
    for name in ("file", "out"):
        why = pytest.raises(HeteroError, match=f"/dev/{name} is no folder in it")
        with why, ContainerRoot(container) as root, root.folder(f"/dev/{name}/x", make=True):
            pass
    assert list((tmp_path / "secret").iterdir()) == []


def test_a_container_that_does_not_run_has_no_files_to_be_seen(container):
    """Lost: what is to be done, to a bare error of the kernel's."""
    with pytest.raises(HeteroError, match="container ml-8: does not run: start it"):
        ContainerRoot(SimpleNamespace(thing="container ml-8", init_pid=None))
    with pytest.raises(HeteroError, match="container ml-8: has ended just now"):
        ContainerRoot(container, pid=2**22 + 1)
