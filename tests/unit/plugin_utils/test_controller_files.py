# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files on the controller that a role's variable names. If these fail, a driver is taken from another folder."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.plugin_utils.controller_files import look_for


class Lookup:
    """Finds what lies beside the tasks."""

    def __init__(self, found=None):
        self.found = found

    def find_file_in_search_path(self, _variables, folder, path, ignore_missing):
        assert (folder, ignore_missing) == ("files", True)
        return self.found


@pytest.fixture
def site(tmp_path, monkeypatch):
    """An inventory's folder and the one where the play was begun."""
    for name in ("inventory", "begun"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "begun")
    return tmp_path


def test_beside_the_tasks_then_the_inventory_then_where_the_play_began(site):
    """Lost: which of two files of a name is meant."""
    variables = dict(inventory_dir=str(site / "inventory"))
    (site / "begun" / "pdu.py").touch()
    assert look_for(Lookup(), variables, "pdu.py") == (str(site / "begun" / "pdu.py"), "")
    (site / "inventory" / "pdu.py").touch()
    assert look_for(Lookup(), variables, "pdu.py") == (str(site / "inventory" / "pdu.py"), "")
    assert look_for(Lookup("/tasks/pdu.py"), variables, "pdu.py") == ("/tasks/pdu.py", "")


def test_where_it_was_looked_for_is_said(site):
    """Lost: where to put it."""
    variables = dict(inventory_dir=str(site / "inventory"))
    found, why = look_for(Lookup(), variables, "pdu.py")
    assert found is None
    assert why == f"there is no such file on the controller ({site / 'inventory'} or {site / 'begun'})"
    assert look_for(Lookup(), variables, "/none/pdu.py")[1] == "there is no such file on the controller"
    assert look_for(Lookup(), dict(inventory_dir=None), "a")[1].endswith(f"({site / 'begun'})")


def test_a_folder_of_the_name_is_no_file(site):
    """Lost: the reason, for a traceback of who reads it."""
    (site / "begun" / "pdu.py").mkdir()
    assert look_for(Lookup(), {}, "pdu.py")[0] is None
