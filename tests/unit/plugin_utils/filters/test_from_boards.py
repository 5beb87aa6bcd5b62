# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boards file for templates. If these fail, DHCP and conserver are written for other boards than the file names."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.plugin_utils.filters.from_boards import from_boards
from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT

SAMPLE = (ROOT / "roles" / "lab" / "files" / "tilera_boards").read_text()


def test_each_row_with_what_is_computed_of_it():
    """Lost: a key that templates use."""
    found = from_boards(SAMPLE)
    assert len(found) == 10
    first = found[0]
    assert (first["id"], first["name"], first["arch"], first["geometry"]) == (0, "board0", "TILEPro64", "8x8")
    assert {"ip", "mac", "vcpus", "memory_mb", "cpu_info"} <= set(first)


def test_a_wrong_row_is_named():
    """Lost: which row of which file."""
    with pytest.raises(AnsibleFilterError, match="boards file"):
        from_boards(SAMPLE + "3 10.0.2.4\n")
