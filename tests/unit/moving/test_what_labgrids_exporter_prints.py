# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An exporter's configuration that is a template, and the way out that its error and the pages print.

Lost: the way in of each lab whose exporter.yaml is a template. What labgrid-exporter prints as it starts is Python's
`pprint(("rendered", text))` and `pprint(("loaded", data))` (labgrid/remote/config.py), which is no YAML.
"""

from __future__ import annotations

import io
from pprint import pprint

import pytest
import yaml

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.tests.unit.moving.moves import moved

PORT = "NetworkPowerPort: {model: apc, host: 10.0.100.1, index: %s}"
RENDERED = f"j1:\n  {PORT % 1}\nj2:\n  {PORT % 2}\n"


def test_what_the_exporter_prints_as_it_starts_is_taken(tmp_path):
    printed = io.StringIO()
    pprint(("rendered", RENDERED), stream=printed)
    pprint(("loaded", yaml.safe_load(RENDERED)), stream=printed)
    (tmp_path / "exporter.yaml").write_text(f"{printed.getvalue()}exporter name: rack12\n")
    result = moved(tmp_path / "site", "labgrid", tmp_path / "exporter.yaml")
    assert {one["about"] for one in result["questions"]} >= {"j1", "j2"}


def test_one_that_is_cut_off_is_said(tmp_path):
    (tmp_path / "exporter.yaml").write_text("('loaded',\n {'j1': {'NetworkPowerPort': {'model': 'apc')\n")
    with pytest.raises(BadInput, match="is not the whole of what labgrid-exporter prints"):
        moved(tmp_path / "site", "labgrid", tmp_path / "exporter.yaml")
