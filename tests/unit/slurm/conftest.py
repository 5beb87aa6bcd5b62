# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs that Slurm calls, imported from their role."""

from __future__ import annotations

import sys

import pytest

from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT

PROGRAMS = ROOT / "roles" / "slurm" / "files" / "hetero_slurm"
sys.path.insert(0, str(PROGRAMS))


@pytest.fixture
def site(tmp_path):
    """A site with six slots of tp64, whose roots are new, and two of cg1, whose roots are kept."""
    from site_file import Pool, Site

    pools = {"tp64": Pool("tp64", "tp64.8x8", 6, "debian-12"), "cg1": Pool("cg1", "cg1.xlarge", 2, new_root=False)}
    return Site(pools, ["false"], str(tmp_path), str(tmp_path / "log"), new_root=("boards",), resume_seconds=5.0)
