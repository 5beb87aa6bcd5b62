# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a proxy node's machine is found to be. Lost if it fails: a set-up that ends before it says all that is wrong."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import machine


@pytest.mark.parametrize(
    ("said", "files", "there"),
    [
        (None, {"/proc/filesystems": "nodev\tnfsd\n"}, True),
        (None, {}, False),
        ("none\n", {"/proc/filesystems": "nodev\tnfsd\n"}, True),
        ("none\n", {"modules.dep": "kernel/fs/nfsd/nfsd.ko: kernel/fs/lockd/lockd.ko\n"}, True),
        ("none\n", {}, False),
        # the kernel is its host's
        ("lxc\n", {"/proc/filesystems": "nodev\tnfsd\n"}, False),
    ],
)
def test_the_kernels_nfs_server_is_looked_for_with_and_without_systemd(monkeypatch, said, files, there):
    """Without systemd, which a check of its own refuses, no program says whether this is a container."""
    monkeypatch.setattr(machine.shutil, "which", lambda program: program if said else None)
    monkeypatch.setattr(machine, "command", lambda argv, ok: said)
    monkeypatch.setattr(
        machine, "text_of", lambda path: next((text for name, text in files.items() if path.endswith(name)), "")
    )
    assert machine.has_nfsd() is there
