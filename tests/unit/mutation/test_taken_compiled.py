# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the recorded run has compiled, in copies of the project. If these fail, each copy compiles all of it again, half
a minute of a processor; or a mutant is not run, and said to survive.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from mutants.run import Copy, take_compiled


def value(folder, compiled):
    """What Python takes file fit.py in a folder for."""
    return subprocess.run(
        [sys.executable, "-c", "import fit; print(fit.LIMIT)"],
        cwd=folder,
        env=dict(os.environ, PYTHONPYCACHEPREFIX=str(compiled), PYTHONDONTWRITEBYTECODE=""),
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    ).stdout.strip()


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """A Copy whose project was run, and has something else compiled of a file than its text says: so it shows."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "fit.py").write_text("LIMIT = 8\n")
    assert value(root, root / "build" / "pycache") == "8"
    (made,) = (root / "build" / "pycache").rglob("fit.*.pyc")
    assert made.read_bytes().count(b"\x08\x00\x00\x00") == 1
    made.write_bytes(made.read_bytes().replace(b"\x08\x00\x00\x00", b"\x09\x00\x00\x00"))
    monkeypatch.setattr(Copy, "_start", lambda _copy: None)
    (tmp_path / "0").mkdir()
    return Copy(root, tmp_path / "0", 20)


def test_what_was_compiled_is_not_compiled_again(copy, tmp_path):
    assert value(copy.root, tmp_path / "0" / "pyc") == "9"


def test_a_mutant_is_compiled(copy, tmp_path):
    copy.write("fit.py", "LIMIT = 7\n")
    assert value(copy.root, tmp_path / "0" / "pyc") == "7"


def test_a_project_that_was_not_run_has_nothing_compiled(tmp_path):
    take_compiled(tmp_path / "project", tmp_path / "0" / "c", tmp_path / "0" / "pyc")
    assert not (tmp_path / "0").exists()
