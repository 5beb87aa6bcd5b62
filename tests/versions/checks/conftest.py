# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy and a GPU host that are folders; both end with their test."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.tests.unit.plays.proxies import GpuHost, Playbooks, Proxy


@pytest.fixture
def site(tmp_path):
    tmp_path.chmod(0o755)
    made = []
    try:
        made.append(Proxy(tmp_path / "p1", 1))
        made.append(GpuHost(tmp_path / "gpu1", 2))
        yield *made, Playbooks(tmp_path, ["p1"], ["gpu1"])
    finally:
        for node in made:
            node.remove()
