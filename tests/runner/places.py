# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where things lie, and the environment in which tools run."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
#: Each stage's whole output, and what the stages cost.
LOGS = BUILD / "logs"
BIN = ROOT / ".venv" / "bin"
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
OLDEST_PYTHON = "3.8"  # of nodes (README)
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def environment(**more):
    """Nobody's settings but ours: the tools of .venv, then the system's, then other Pythons that are really there.

    Shims of a version manager are left out: ansible-test takes each for a Python that works.
    """
    managed = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    others = sorted(str(path) for path in managed.glob("versions/3.*/bin"))
    foreign = ("ANSIBLE_", "MOLECULE_", "PYTHON")
    env = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    env.update(PATH=":".join([str(BIN), SYSTEM_PATH, *others]), ANSIBLE_COLLECTIONS_PATH=str(BUILD), NO_COLOR="1")
    return dict(env, **more)
