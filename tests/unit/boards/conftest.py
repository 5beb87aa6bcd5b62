# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy node in a folder (nodes.py)."""

from __future__ import annotations

import os

import pytest

from ansible_collections.hetero.compute.tests.unit.boards.nodes import Node


@pytest.fixture
def node(tmp_path, monkeypatch):
    """Three boards, nobody's."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.delenv("FAKE_GANESHA", raising=False)
    return Node(tmp_path)
