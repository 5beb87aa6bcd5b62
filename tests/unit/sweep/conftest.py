# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy in a temporary folder for tests that run its modules as processes."""

from __future__ import annotations

import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import starts
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import presence
from ansible_collections.hetero.compute.tests.unit.sweep.killing import Points
from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import Site


@pytest.fixture
def quick(tmp_path, monkeypatch):
    """site(boards): a proxy whose NFS server is images/fake_busctl.pl, started as `busctl`."""
    # A played boot answers at once or never: it is not driven by the outlet, but by the process that was killed.
    monkeypatch.setattr(presence, "QUIET", 0.3)
    monkeypatch.setattr(presence, "PROOF", 0.3)
    monkeypatch.setattr(starts, "SHORT_PATIENCE", 0.3)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_GANESHA", str(tmp_path / "ganesha.json"))
    return lambda boards=2: Site(tmp_path, Points(), boards)


@pytest.fixture
def site(quick):
    place = quick()
    yield place
    place.tear_down()
