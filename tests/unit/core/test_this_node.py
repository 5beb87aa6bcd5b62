# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors name the node that they are about. If these fail, an operator looks for "this node" at the controller, or at
the wrong one of ten.

Tests claims/lost_database.py.
"""

from __future__ import annotations

import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.claims.lost_database import must_not_be_lost
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.tests.unit.core.test_plays import read


def test_no_message_says_this_node():
    texts, _calls = read()
    assert [(path, text) for path, text in texts if "this node" in text] == []


def test_what_is_to_be_typed_on_a_node_says_on_which(tmp_path):
    (tmp_path / "backups").mkdir()
    (tmp_path / "backups" / "state-1.db").write_text("damaged")
    with pytest.raises(HeteroError) as error:
        must_not_be_lost(str(tmp_path / "state.db"), lambda: (["record of a claim"], ""), {})
    name = os.uname().nodename
    assert f"instances were made on node {name} (record of a claim)" in str(error.value)
    assert f"run on node {name}: mkdir -p" in str(error.value)
