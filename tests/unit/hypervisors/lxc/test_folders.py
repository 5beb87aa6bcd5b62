# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In which folders containers run. If these fail, a GPU that a container of an unusual folder has looks free."""

from __future__ import annotations

import os
import socket

from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc.folders import in_use

NOBODY = 65534


def test_a_container_that_runs_tells_its_folder_until_it_ends(boxes):
    """Lost: containers of a folder that no configuration names; or a host, for ever said to have those that ended."""
    box = boxes.make()
    assert box.lxcpath in in_use()
    box.stop()
    assert box.lxcpath not in in_use()


def test_a_folder_whose_name_is_too_long_for_a_socket_is_known_too(boxes):
    """Lost: containers deep down, of which LXC's socket tells a number only."""
    boxes.lxcpath = f"{boxes.top}/{'deep-' * 20}/lxc"
    os.makedirs(boxes.lxcpath)
    boxes.make()
    assert boxes.lxcpath in in_use()


def test_what_another_account_says_counts_for_nothing(tmp_path):
    """Lost: a host's GPUs and database, for ever said to be somebody's, by any account's word."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as mine, socket.socket(socket.AF_UNIX) as roots:
        roots.bind(f"\0{tmp_path}/roots/box/command")
        roots.listen()
        os.seteuid(NOBODY)  # who listens is who answers (unix(7), SO_PEERCRED)
        try:
            mine.bind(f"\0{tmp_path}/anybodys/box/command")
            mine.listen()
        finally:
            os.seteuid(0)
        found = in_use()
    assert f"{tmp_path}/roots" in found
    assert f"{tmp_path}/anybodys" not in found
