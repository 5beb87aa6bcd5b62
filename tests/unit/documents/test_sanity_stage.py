# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stage sanity adds to ansible-test's own environments (tests/runner/stages/ansible_tests.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from runner.stages import ansible_tests

#: Loaded as an environment's own Python loads it.
LOADED = """
import site, sys
site.addsitedir(sys.argv[1])

def made(text, file="a.py", **more):
    return compile(source=text, filename=file, mode="exec", dont_inherit=True, **more)

assert made("x = 1") is made("x = 1")
others = [made("x = 2"), made("x = 1", "b.py"), made("x = 1", optimize=2), compile("x = 1", "a.py", "exec")]
assert not any(made("x = 1") is other for other in others)
assert [code.co_filename for code in others] == ["a.py", "b.py", "a.py", "a.py"]
assert eval(compile("1 + 1", "", "eval")) == 2
try:
    made("x =")
except SyntaxError:
    print("as ever")
"""


def test_a_text_is_compiled_once_and_another_one_anew(tmp_path, monkeypatch):
    """Lost: two minutes of a processor of each run; or a file that is not compiled as it is, and so not tried."""
    site = tmp_path / ".ansible/test/venv/sanity.import/3.11/0/lib/python3.11/site-packages"
    site.mkdir(parents=True)
    asked = []
    monkeypatch.setattr(ansible_tests, "tool", lambda _log, argv, **_more: asked.append(argv))
    ansible_tests.have_compiled_once(None, tmp_path, {"HOME": str(tmp_path)}, "--python", "3.11")
    assert asked[0][-5:] == ["--prime-venvs", "--test", "import", "--python", "3.11"]
    words = [sys.executable, "-c", LOADED, site]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=dict(os.environ))
    assert (done.stdout, done.stderr) == ("as ever\n", "")


def test_what_sanity_leaves_out_another_stage_has():
    """Lost: a plugin whose documentation nobody tries, or the fragments of the changelog."""
    stages = Path(ansible_tests.__file__).parent
    assert ansible_tests.SHOWN_ELSEWHERE == ("ansible-doc", "changelog")
    package, house = ((stages / name).read_text() for name in ("published.py", "house.py"))
    kinds = {path.name for path in (ansible_tests.ROOT / "plugins").iterdir() if path.is_dir()}
    for kind in kinds - {"action", "doc_fragments", "module_utils", "plugin_utils"}:
        assert f'"plugins/{kind}/*.' in package, kind
    assert '"antsibull-changelog", "lint"]' in house
