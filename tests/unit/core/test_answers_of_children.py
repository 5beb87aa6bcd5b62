# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer of a child that works in a tenant's root is bounded: what it tells of may be the tenant's."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import child
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError


def test_an_answer_without_measure_is_an_error(monkeypatch):
    """Lost: the node's memory, to a tenant who has a hundred million names in a folder that we list."""
    monkeypatch.setattr(child, "MOST", 1 << 20)
    assert len(child.in_child(lambda: "x" * (1 << 19), Deadline(60), "jackie", "see it")) == 1 << 19
    with pytest.raises(HeteroError, match="jackie: work inside it answered more than 1 MiB: see what is in it"):
        child.in_child(lambda: "x" * (1 << 21), Deadline(60), "jackie", "see it")
