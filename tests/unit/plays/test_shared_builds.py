# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests/callbacks/shared_builds.py makes of a packed module. If these fail, all tests that run Ansible test other
code than users get, or take a third longer.
"""

from __future__ import annotations

import base64
import io
import subprocess
import sys
import zipfile

from ansible_collections.hetero.compute.tests.callbacks import shared_builds

SOURCE = '"""What it knows."""\n\n\ndef where():\n    return __spec__.origin\n'
PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); from deep.thing import where; print(where())"


def packed(text):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as files:
        files.writestr("deep/__init__.py", "")
        files.writestr("deep/thing.py", text)
    return base64.b64encode(archive.getvalue())


def imported_from(folder, data):
    """The name, in the archive, of what a Python imports."""
    (folder / "module.zip").write_bytes(base64.b64decode(data))
    argv = [sys.executable, "-IS", "-c", PROGRAM, str(folder / "module.zip")]
    said = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=600).stdout
    return said.strip().rpartition("/deep/")[2]


def test_the_code_is_taken_and_the_source_is_there(tmp_path):
    """Lost: the time that each call of a module takes to compile; and the lines of a traceback."""
    before = packed(SOURCE)
    after = shared_builds.compiled(before)
    assert (imported_from(tmp_path, before), imported_from(tmp_path, after)) == ("thing.py", "thing.pyc")
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(after))) as files:
        assert files.read("deep/thing.py").decode() == SOURCE


def test_another_python_takes_the_source(tmp_path, monkeypatch):
    """Lost: plays on nodes whose Python is not the controller's."""
    monkeypatch.setattr(shared_builds, "HEAD", bytes([*b"\x01\x02\r\n", *shared_builds.HEAD[4:]]))
    assert imported_from(tmp_path, shared_builds.compiled(packed(SOURCE))) == "thing.py"
