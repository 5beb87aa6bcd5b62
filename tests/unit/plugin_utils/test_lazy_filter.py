# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each task that uses one of our filters loads the files of all. If these fail, each task of each play takes longer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.plugin_utils.lazy_filter import lazy_filter

FILTERS = Path(__file__).resolve().parents[3] / "plugins" / "filter"
NAMES = sorted(path.stem for path in FILTERS.glob("[a-z]*.py"))
PLUGINS = "ansible_collections.hetero.compute.plugins."
#: Prints what of ours is imported once all filters are loaded, as Ansible does it.
LOADED = f"""
import importlib, sys
for name in {NAMES}:
    module = importlib.import_module("{PLUGINS}filter." + name)
    assert name in module.FilterModule().filters(), name
print(*(name for name in sys.modules if name.startswith("{PLUGINS}")))
"""


def test_files_of_filters_import_no_code():
    loaded = subprocess.run([sys.executable, "-c", LOADED], check=True, capture_output=True, text=True).stdout.split()
    assert len(NAMES) >= 10
    mere = {f"{PLUGINS}filter", *(f"{PLUGINS}plugin_utils{name}" for name in ("", ".lazy_filter", ".kept_compiled"))}
    assert set(loaded) - mere == {f"{PLUGINS}filter.{name}" for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_each_has_its_code(name):
    """Without it, a filter would be there by its page, and no task could use it."""
    code = __import__(f"{PLUGINS}plugin_utils.filters.{name}", fromlist=[name])
    assert callable(getattr(code, name))


def test_options_and_errors_reach_the_code():
    """Without it, a filter's options would be lost on the way."""
    assert lazy_filter("holders")([], "jackie", count=2)["parts"] == []
    with pytest.raises(TypeError, match="colour"):
        lazy_filter("holders")([], "jackie", colour="red")
