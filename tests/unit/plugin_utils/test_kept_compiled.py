# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collection's code, compiled once. If these fail, each process of each play compiles it anew, which takes a play
some 0.1 s; or a play runs code that is no more there.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.plugin_utils import kept_compiled
from ansible_collections.hetero.compute.plugins.plugin_utils.kept_compiled import KeptCompiled

PLUGINS = Path(kept_compiled.__file__).resolve().parents[1]
NAME = "ansible_collections.hetero.compute.plugins"
#: Imports as Ansible does; says of each module who loaded it, where its compiled code is, and what it has as SAID.
IMPORTS = """
import importlib, json, sys
from ansible.plugins.loader import init_plugin_loader
init_plugin_loader([sys.argv[1]])
found = [(one.__spec__, getattr(one, "SAID", "")) for one in map(importlib.import_module, sys.argv[2:])]
print(json.dumps([(type(spec.loader).__name__, spec.cached, said) for spec, said in found]))
"""


@pytest.fixture
def collections(tmp_path):
    """A folder of collections, of which this is one, with little in it, and another one."""
    of = dict(compute=["plugin_utils", "module_utils/_hetero/core"], other=["plugin_utils"])
    for name, folders in of.items():
        plugins = tmp_path / "collections/ansible_collections/hetero" / name / "plugins"
        for folder in folders:
            (plugins / folder).mkdir(parents=True)
            (plugins / folder / "one.py").write_text("SAID = 'once'\n")
    ours = tmp_path / "collections/ansible_collections/hetero/compute/plugins/plugin_utils"
    for name in ("__init__.py", "kept_compiled.py"):
        shutil.copy(PLUGINS / "plugin_utils" / name, ours)
    return tmp_path / "collections"


def imported(collections, *names, **env):
    env = dict({name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}, **env)
    argv = [sys.executable, "-c", IMPORTS, str(collections), *names]
    said = subprocess.run(argv, env=env, cwd=collections, capture_output=True, text=True, check=False, timeout=600)
    assert said.returncode == 0, said.stderr
    return json.loads(said.stdout)


def test_what_is_compiled_once_is_kept(collections):
    names = [f"{NAME}.plugin_utils.one", f"{NAME}.module_utils._hetero.core.one"]
    for loader, kept, _said in imported(collections, *names):
        assert loader == "SourceFileLoader"
        assert Path(kept).is_relative_to(collections / "ansible_collections/hetero/compute/plugins")
        assert Path(kept).is_file()


def test_what_was_changed_is_compiled_anew(collections):
    """Lost: an upgrade, which would begin once the files of the release before are removed by hand."""
    name = f"{NAME}.plugin_utils.one"
    ((_loader, kept, before),) = imported(collections, name)
    (collections / f"{name.replace('.', '/')}.py").write_text("SAID = 'anew, and longer'\n")
    assert before == "once"
    assert imported(collections, name) == [["SourceFileLoader", kept, "anew, and longer"]]


def test_a_collection_that_nobody_may_write_to_works_as_well(collections):
    """Lost: all plays of users for whom an administrator installed it, or of an execution environment."""
    name = f"{NAME}.plugin_utils.one"
    nowhere = collections / "a file"
    nowhere.write_text("")
    ((loader, kept, said),) = imported(collections, name, PYTHONPYCACHEPREFIX=str(nowhere))
    assert (loader, said, Path(kept).exists()) == ("SourceFileLoader", "once", False)


def test_other_collections_and_folders_stay_ansibles(collections):
    """Lost: what Ansible does for other collections, such as redirects; or a folder, which is no file."""
    other = f"{NAME}.plugin_utils.one".replace("compute", "other")
    found = imported(collections, f"{NAME}.plugin_utils", other, f"{NAME}.module_utils._hetero")
    assert [loader for loader, _kept, _said in found] == ["_AnsibleCollectionLoader"] * 3


def test_what_is_missing_is_said_by_ansible(collections):
    argv = [sys.executable, "-c", IMPORTS, str(collections), f"{NAME}.plugin_utils.none"]
    said = subprocess.run(argv, cwd=collections, capture_output=True, text=True, check=False, timeout=600)
    assert "none not found at" in said.stderr or "No module named" in said.stderr


def test_python_finds_its_own_in_tests():
    """Lost: what a test run shares between its processes (PYTHONPYCACHEPREFIX), to a second way of loading it."""
    assert KeptCompiled not in sys.meta_path
    assert KeptCompiled.find_spec("os", sys.path) is None
    assert KeptCompiled.find_spec(f"{NAME}.plugin_utils.none", [str(PLUGINS / "plugin_utils")]) is None
    assert KeptCompiled.find_spec(f"{NAME}.plugin_utils.columns", None) is None
