# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `make status` runs, in a pipe. If this fails, `make status | head -3` ends in complaints of a broken pipe, or a
script takes a node that could not be asked for one that was.
"""

from __future__ import annotations

import shutil
import subprocess

import pytest

from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT

#: Stands in for ansible-playbook: more lines than a pipe holds, then its end.
PLAYBOOK = """#!/usr/bin/env python3
import sys
try:
    for number in range(20000):
        print("line", number, *sys.argv[2:], flush=number < 10)
    sys.stdout.flush()
except BrokenPipeError:
    print("Broken pipe", file=sys.stderr)
sys.exit({ends})
"""


@pytest.mark.parametrize("ends", [0, 2])
@pytest.mark.parametrize(("reader", "lines"), [("head -3", 3), ("cat", 20000)])
def test_a_reader_that_has_enough_is_no_error(tmp_path, ends, reader, lines):
    (tmp_path / "tools").mkdir()
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(ROOT / "tools" / "status", tmp_path / "tools")
    stand_in = tmp_path / ".venv" / "bin" / "ansible-playbook"
    stand_in.write_text(PLAYBOOK.format(ends=ends))
    stand_in.chmod(0o755)
    script = f'{tmp_path}/tools/status -e "html=/a b" | {reader}; echo "ended ${{PIPESTATUS[0]}}"'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=600, check=True)
    said = done.stdout.splitlines()
    assert (said[0], len(said), said[-1]) == ("line 0 -e html=/a b", lines + 1, f"ended {ends}")
    assert done.stderr == ""


def test_make_runs_it():
    text = (ROOT / "Makefile").read_text()
    assert "tools/status" in text[text.index("\nstatus:") : text.index("\nterminate:")]


def test_json_and_the_page_at_once():
    """Lost: the page, without a word, of who has both made: `make status JSON=1 HTML=boards.html`."""
    words = ["make", "--no-print-directory", "--dry-run", "--silent", "-C", str(ROOT), "status", "JSON=1"]
    said = subprocess.run([*words, "HTML=boards.html"], capture_output=True, text=True, timeout=600, check=True).stdout
    assert f'.status -e json=true -e "html={ROOT}/boards.html"' in said
