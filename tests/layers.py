# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether imports of module_utils go down only, from room to room as pyproject.toml's contracts order them.

`make test-layers`. import-linter reads packages with an `__init__.py`, which Ansible's folders need not have: it looks
at a copy of the house that has them.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

HOUSE = Path("plugins", "module_utils", "_hetero")
#: What the contracts of pyproject.toml call the copy.
NAME = "house"


def copied(root, folder):
    """A copy of the house below `folder`, as a package that import-linter can read; the number of its modules."""
    copy = folder / NAME
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(root / HOUSE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    modules = len(list(copy.rglob("*.py")))
    for place in [copy, *(path for path in copy.rglob("*") if path.is_dir())]:
        (place / "__init__.py").touch()
    return modules


def main(root, folder):
    """Look; 0 where every contract is kept."""
    modules = copied(root, folder)
    linter = Path(sys.executable).with_name("lint-imports")
    argv = [linter, "--config", root / "pyproject.toml", "--no-cache"]
    code = subprocess.run(argv, cwd=folder, env={"PYTHONPATH": str(folder), "NO_COLOR": "1"}, check=False).returncode
    print(f"{modules} modules")
    return code


if __name__ == "__main__":
    below = Path(sys.argv[1])
    below.mkdir(parents=True, exist_ok=True)
    sys.exit(main(Path(__file__).resolve().parent.parent, below))
