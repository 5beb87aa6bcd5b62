# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers whose root does what it likes. If these fail, one tenant keeps GPUs from all others of the host."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import open_rights
from ansible_collections.hetero.compute.tests.unit.devices.gpus import own_file_system
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc.conftest import attach
from ansible_collections.hetero.compute.tests.unit.hypervisors.lxc_gpus.conftest import ADDRESSES

FIRST, SECOND = ADDRESSES[:2]
#: More letters than a name may have.
LONG = "a" * 300
#: In place of /dev: a link to what no file can be called, to itself, to a file, and nothing.
PLACES = {
    "long": f"ln -s {LONG} /dev",
    "itself": "ln -s /dev /dev",
    "file": "touch /dev",
    "nothing": "true",
}


@pytest.mark.parametrize("unprivileged", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_a_container_that_puts_something_else_in_the_place_of_dev(host, place, unprivileged):
    """Lost: every GPU of the host that is free, and the one that it has, to a tenant with one link."""
    odd = host.boxes.make(unprivileged=unprivileged)
    host.attach(odd, gpus=[FIRST])
    gone = "umount -l /dev; rm -rf /dev 2> /tmp/said; mv /dev /was 2>> /tmp/said"
    attach(odd, "sh", "-c", f"{gone}; {PLACES[place]}; true")
    other = host.boxes.make()
    host.attach(other, gpus=[SECOND])
    assert host.can_open(other) == [SECOND]
    assert host.reconcile()["findings"] is not None
    host.detach(odd)
    assert (host.can_open(odd), host.table()) == ([], {SECOND: [other.name]})


def test_a_container_whose_own_file_system_says_odd_errors(host, tmp_path):
    """Lost: every GPU of the host that is free, and the one that it has, to a tenant whose program serves /dev."""
    odd, other = host.boxes.make(unprivileged=True), host.boxes.make()
    host.attach(odd, gpus=[FIRST])
    with own_file_system.holding(tmp_path, (1, 5), "refusing", odd.init_pid) as process:
        if process is None:
            pytest.skip("this kernel has no FUSE")
        host.attach(other, gpus=[SECOND])
        assert host.can_open(other) == [SECOND]
        assert host.reconcile()["findings"] is not None
        host.detach(odd)
        assert (host.can_open(odd), host.table()) == ([], {SECOND: [other.name]})


def test_a_container_that_ends_while_it_is_looked_at(host, monkeypatch):
    """Lost: whoever asks for a GPU while a neighbour ends, or reboots again and again."""
    ends, other = host.boxes.make(), host.boxes.make()
    host.attach(ends, gpus=[FIRST])
    look = open_rights.reach_of
    ended = []

    def as_it_ends(container, pid, gpus):
        if container.name == ends.name and not ended:
            ended.append(container.stop())
        return look(container, pid, gpus)

    monkeypatch.setattr(open_rights, "reach_of", as_it_ends)
    host.attach(other, gpus=[SECOND])
    assert (host.can_open(other), len(ended)) == ([SECOND], 1)
