# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which NFS server serves, and what a board gets. If these fail, a board mounts another one's root."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nfs.exports import (
    EXPORTERS,
    board_export,
    exporter,
)


def test_each_server_by_its_name(tmp_path):
    """Lost: the server that proxy.json names."""
    assert sorted(EXPORTERS) == ["ganesha", "nfsd"]
    for name, kind in EXPORTERS.items():
        assert exporter(name, str(tmp_path)).__class__ is kind


def test_an_unknown_server_is_named_with_those_that_are_known(tmp_path):
    """Lost: the word to write."""
    with pytest.raises(BadInput, match=r"samba: no such NFS server \(known: ganesha, nfsd\)"):
        exporter("samba", str(tmp_path))


def test_a_board_gets_its_own_root_alone(tmp_path):
    """Lost: a tenant's root, to another's board."""
    board = SimpleNamespace(id=0, ip="10.0.2.7")
    for name in EXPORTERS:
        server = exporter(name, str(tmp_path))
        found = board_export(server, board, "/srv/fs_0")
        assert (found.id, found.path, found.clients) == (1, "/srv/fs_0", ("10.0.2.7",)), "id 0 is the server's own"
        assert found.pseudo == server.mounted_as(0, "/srv/fs_0")
