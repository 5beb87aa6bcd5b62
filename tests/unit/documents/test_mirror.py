# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the tests of a file are: tests/unit mirrors the house and the plugins."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePosixPath

import mirror

from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT, guide, named

UNIT = ROOT / "tests" / "unit"
HOUSE = ROOT / "plugins" / "module_utils" / "_hetero"
#: Folders of tests that are not of one room, and what is in them.
WHOLE = {
    "awx": "job templates, surveys and credentials of AWX",
    "bench": "simulations and what else the measurements compute",
    "ci": "what a CI is given, in extensions/ci",
    "documents": "pages against the code",
    "gpu_races": "several calls about the same GPUs, and calls that are killed",
    "instances/guests": "whole verbs on guests",
    "mutation": "the mutants' own tools",
    "parity": "flavors as Nova itself reads them",
    "plays": "playbooks as users run them",
    "properties": "what holds for any input",
    "secrets": "whole calls, looked through for what must not be said",
    "slurm": "the programs of role slurm, and Slurm with them",
    "sweep": "whole verbs, killed at each point",
    "verbs": "whole verbs on boards",
}


def is_mirrored(folder):
    """Whether there is a room, a folder of plugins, or a single file of that name."""
    return (HOUSE / folder).is_dir() or (HOUSE / f"{folder}.py").is_file() or (ROOT / "plugins" / folder).is_dir()


def test_each_folder_of_tests_is_of_a_room():
    """Lost: the afternoon of a reader who looks for the tests of a file."""
    folders = {path.parent.relative_to(UNIT).as_posix() for path in UNIT.rglob("test_*.py")}
    assert [folder for folder in sorted(folders) if not is_mirrored(folder) and folder not in WHOLE] == []
    assert sorted(set(WHOLE) - folders) == []


def test_the_tests_of_a_file_are_in_its_room():
    """Lost: the same, where a file moved and the tests that have its name did not."""
    homes = {}
    for path in HOUSE.rglob("*.py"):
        homes.setdefault(f"test_{path.stem}", set()).add(path.parent.relative_to(HOUSE).as_posix())
    away = []
    for test in UNIT.rglob("test_*.py"):
        folder = test.parent.relative_to(UNIT).as_posix()
        its = homes.get(test.stem, set())
        of_plugins = (ROOT / "plugins" / folder).is_dir()
        if its and not of_plugins and folder not in WHOLE and not any(folder.startswith(home) for home in its):
            away.append(f"{folder}/{test.name} of {sorted(its)}")
    assert away == []


def test_the_test_of_a_file_is_found_without_a_search():
    """Lost: whoever changes a file and does not learn which test tells what he broke."""
    assert mirror.working_tree().not_found() == [], "tests/mirror.py says how a test file is called, or names its files"


def test_each_file_is_called_by_a_test_itself():
    """Lost: the line at which a file broke, to whoever reads the failures of the whole verbs that use it; and what no
    verb shows of it.
    """
    assert mirror.working_tree().not_imported() == [], "call it in the test of its name"


def test_a_file_that_only_others_call_is_told():
    """Lost: the same, where the list is empty whatever is there."""
    house, test = "plugins/module_utils/_hetero/core/", f"{mirror.UNIT}core/test_"
    does, calls = "def f():\n    return 1\n", f"from {mirror.COLLECTION}plugins.module_utils._hetero.core import "
    files = {f"{house}a.py": does, f"{house}b.py": does, f"{house}c.py": "MOST = 3\n", f"{test}b.py": f"{calls}b\n"}
    assert mirror.Mirror(files).not_imported() == ["core/a.py"]
    assert mirror.Mirror({**files, f"{test}a.py": f"{calls}a\n"}).not_imported() == []


def test_a_test_comes_near_what_it_names():
    """Lost: the same, where the file moved, or the test imports neither it nor anything that does."""
    assert mirror.working_tree().wrongly_named() == []


def test_no_two_test_files_share_a_name():
    """Lost: which of two files `test_store.py` in a report means."""
    names = Counter(PurePosixPath(test).name for test in mirror.working_tree().tests)
    assert [name for name, times in names.items() if times > 1] == []


def test_what_is_asked_about_a_file_is_answered(capsys):
    """Lost: the command that the page names for it."""
    assert mirror.main(["plugins/module_utils/_hetero/claims/host/config.py"]) == 0
    assert capsys.readouterr().out == "claims/host/config.py: tests/unit/claims/host/test_config.py\n"
    assert mirror.main(["claims/host/none.py"]) == 1
    assert capsys.readouterr().out == "claims/host/none.py: no such file, or no test of it is found\n"


def test_what_the_page_shows_is_read_as_it_says():
    """Lost: a test file that was written by the page and counts for nothing."""
    shown = named(guide("architecture"), "tests-named")
    assert mirror.named(shown) == ["devices/pci/groups.py", "devices/pci/ids.py"]


def test_a_file_that_only_declares_needs_no_test():
    """Lost: tests of nothing; or the tests of a file, which count as not needed."""
    declares = 'class Node(Protocol):\n    def outlet(self) -> str:\n        """Return its outlet."""\n        ...\n'
    assert not mirror.does_something(f"MOST = 3\n{declares}")
    assert mirror.does_something("def f():\n    return 1\n")
    assert mirror.does_something("KEY = sorted([], key=lambda one: -one)\n")
