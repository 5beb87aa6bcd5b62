# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collection awx.awx as PyPI has it (in package ansible), kept in the user's cache; named by what it is made from."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
CACHE = Path.home() / ".cache" / "hetero-compute"
INSIDE = "ansible_collections/awx/awx/"


def folder():
    """What ANSIBLE_COLLECTIONS_PATH names. Tests in other processes wait here until the first of them has made it."""
    made = CACHE / f"awx-{hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:40]}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "awx.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (made / "ready").exists():
            shutil.rmtree(made, ignore_errors=True)
            with tempfile.TemporaryDirectory(dir=CACHE) as downloads:
                argv = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
                argv += ["--dest", downloads, "-r", REQUIREMENTS]
                done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=600)
                assert done.returncode == 0, done.stdout + done.stderr
                (wheel,) = Path(downloads).glob("*.whl")
                with zipfile.ZipFile(wheel) as packed:
                    names = [name for name in packed.namelist() if name.startswith(INSIDE) and "/tests/" not in name]
                    packed.extractall(made, names)
            (made / "ready").touch()
    return made
