# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far a container gets with a GPU, by its device cgroup, its nodes and its rights. If these fail, a GPU that a
container can open is called closed and given to somebody else, or one that it cannot is kept from everybody.
"""

from __future__ import annotations

import os
import subprocess
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils.gpus import reach
from ansible_collections.hetero.compute.plugins.module_utils.libvirt import attaching

NODE = SimpleNamespace(kind="c", major=195, minor=0, number=("c", 195, 0), path="/dev/nvidia0")
GPU = SimpleNamespace(address="0000:05:00.0", nodes=[NODE], drm_nodes=[])


class Cgroup:
    """One that allows these kinds of access to every device, or to the GPU alone."""

    def __init__(self, access, every):
        self.access, self.every = access, every

    def may(self, kind, major, minor, access):
        return access in self.access and (self.every or (kind, major, minor) == NODE.number)


@pytest.mark.parametrize(
    ("access", "every", "there", "mknod", "state"),
    [
        ("", True, True, True, reach.CLOSED),
        ("m", True, True, True, reach.CLOSED),
        ("r", True, True, False, reach.OPEN),
        ("w", True, True, False, reach.OPEN),
        ("r", False, False, False, reach.OPEN),
        ("rm", True, False, True, reach.OPEN),
        ("rm", True, False, False, reach.NODE_ONLY),
        ("r", True, False, True, reach.NODE_ONLY),
        ("wm", True, False, True, reach.OPEN),
    ],
    ids=str,
)
def test_how_far_it_gets(monkeypatch, access, every, there, mknod, state):
    monkeypatch.setattr(reach, "can_mknod", lambda pid: mknod)
    monkeypatch.setattr(reach.device_nodes, "look", lambda container, path, pid: NODE.number if there else None)
    cgroup = Cgroup(access, every)
    found, why = reach._how_far("box", 1, cgroup, reach.allows_unknown(cgroup), GPU)
    assert found == state, why


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a process fewer rights")
@pytest.mark.parametrize(
    ("within", "may"),
    [([], True), (["setpriv", "--bounding-set=-mknod"], False), (["unshare", "--user"], False)],
    ids=["root", "without CAP_MKNOD", "in a user namespace"],
)
def test_who_may_make_nodes(within, may):
    """Who may makes a node of any GPU that its device cgroup leaves open."""
    argv = [*within, "sh", "-c", "echo; exec cat"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"\n"
        assert reach.can_mknod(process.pid) is may
        process.stdin.close()


def test_a_domain_is_known_by_what_its_devices_are_allocated_to():
    """Lost: a card that a guest has: whoever holds it would be taken for a container that ended."""
    assert attaching.holder_of("ml-9") == f"{reach.DOMAIN}ml-9" == "domain:ml-9"
