# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy node in a folder (nodes.py)."""

from __future__ import annotations

import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import boot_loop
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.tests.unit.boards.nodes import Node


@pytest.fixture
def node(tmp_path, monkeypatch):
    """Three boards, nobody's."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.delenv("FAKE_GANESHA", raising=False)
    return Node(tmp_path)


@pytest.fixture
def patient(monkeypatch):
    """patient(stalls): only a boot of which that is so has no more time than its verb gives it."""
    follow = boot_loop.BootLoop._follow

    def only(stalls):
        def follows(self, boot, deadline):
            follow(self, boot, deadline if stalls(boot) else Deadline(60))

        monkeypatch.setattr(boot_loop.BootLoop, "_follow", follows)

    return only
