# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which ansible-core there is: the newest of each minor release on PyPI, and the Pythons that it says it runs on.

The oldest is what meta/runtime.yml asks for; the newest is PyPI's, so a new one is tested on the day it appears.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).resolve().parents[2]
#: pip leaves out what the Python it runs on is too old for; nothing is too new for this one.
ANY_PYTHON = ["--python-version", "3.99"]
SUPPORTED = "ansible_test/_util/target/common/constants.py"


class Core(NamedTuple):
    version: str
    controllers: tuple
    targets: tuple

    @property
    def minor(self):
        return ".".join(self.version.split(".")[:2])


def released(folder):
    """One Core for each minor release, the oldest first; their wheels are kept in `folder`."""
    (oldest,) = re.findall(r'^requires_ansible: ">=(\d+\.\d+)\.0"$', (PROJECT / "meta/runtime.yml").read_text(), re.M)
    listed = pip("index", "versions", *ANY_PYTHON, "ansible-core")
    (versions,) = re.findall(r"^Available versions: (.*)$", listed, re.M)
    newest = {}
    # pip lists the newest first
    for version in versions.split(", "):
        newest.setdefault(number(".".join(version.split(".")[:2])), version)
    wanted = sorted(minor for minor in newest if minor >= number(oldest))
    if not wanted or wanted[0] != number(oldest):
        raise ValueError(f"PyPI has no ansible-core {oldest}, which meta/runtime.yml promises: it has {versions}")
    return [core(newest[minor], folder) for minor in wanted]


def core(version, folder):
    wheel = folder / f"ansible_core-{version}-py3-none-any.whl"
    if not wheel.exists():
        pip("download", "--no-deps", "--only-binary=:all:", *ANY_PYTHON, "--dest", folder, f"ansible-core=={version}")
    with zipfile.ZipFile(wheel) as packed:
        tree = ast.parse(packed.read(SUPPORTED).decode())
    said = {line.targets[0].id: line.value for line in tree.body if isinstance(line, ast.Assign)}
    controllers = ast.literal_eval(said["CONTROLLER_PYTHON_VERSIONS"])
    return Core(version, controllers, ast.literal_eval(said["REMOTE_ONLY_PYTHON_VERSIONS"]) + controllers)


def pip(*words):
    argv = [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, words)]
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True, timeout=3000).stdout


def number(version):
    """Version 2.16 as something that has an order."""
    return tuple(map(int, version.split(".")))
