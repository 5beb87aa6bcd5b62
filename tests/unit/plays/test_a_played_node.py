# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that are folders leave nothing behind. If this fails, followers of jobs pile up on the machine of the tests."""

from __future__ import annotations

import subprocess

from ansible_collections.hetero.compute.tests.unit.plays.proxies import Proxy


def test_a_node_that_goes_ends_what_runs_on_it_and_nothing_else(tmp_path):
    tmp_path.chmod(0o755)
    nodes = [Proxy(tmp_path / name, number) for number, name in enumerate(("p1", "p10"), 1)]
    inside = [
        # a child of its own session, as a job in the background is
        subprocess.Popen(
            ["chroot", node.root, "/bin/sh", "-c", "setsid sleep 600 & echo up; wait"], stdout=subprocess.PIPE
        )
        for node in nodes
    ]
    try:
        for process in inside:
            assert process.stdout.readline() == b"up\n"
        assert len(nodes[0].processes()) >= 1
        nodes[0].remove()
        assert inside[0].wait(60) == -9
        assert nodes[0].processes() == []
        assert inside[1].poll() is None
    finally:
        for node in nodes:
            node.remove()
        for process in inside:
            process.stdout.close()
            process.wait(60)
