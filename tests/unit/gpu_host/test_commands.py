# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What module node_tools brings to a node. If a file were missing there, a verb of `hetero` would fail on the day it is
needed: at a boot, at a container's start, at the end of a lease."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys

from ansible_collections.hetero.compute.plugins.module_utils.node import hetero

COLLECTION = "ansible_collections.hetero.compute.plugins"
BROUGHT = f"""
import json
from {COLLECTION}.module_utils.node import tools
from {COLLECTION}.modules import node_tools
print(json.dumps(tools.sources()))
"""


def brought():
    """{module path below the package: text} of what a process that imports nothing but node_tools brings along."""
    done = subprocess.run([sys.executable, "-c", BROUGHT], capture_output=True, text=True, timeout=60, check=True)
    return {path[: -len(".py")].replace("/", "."): text for path, text in json.loads(done.stdout).items()}


def test_a_verb_is_called_by_its_own_name():
    """What its messages, locks and events call it is what a person types."""
    for verb, path in hetero.VERBS.items():
        assert verb == importlib.import_module(path, hetero.__package__).VERB


def imported(module, text):
    """Modules of the package that a file imports anywhere, inside its functions too; names in them left open."""
    package = module.split(".")[:-1]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1] + (node.module or "").split(".")
            base = ".".join(part for part in base if part)
            yield base, [".".join(filter(None, (base, name.name))) for name in node.names]


def test_every_verb_and_all_that_it_imports_is_brought():
    files = brought()
    folders = {name.rpartition(".")[0] for name in files} | {""}
    verbs = {path.lstrip(".") for path in hetero.VERBS.values()}
    assert verbs <= set(files)
    missing = []
    for module, text in files.items():
        for base, names in imported(module, text):
            wanted = names if base in folders and base not in files else [base]
            missing += [f"{module} imports {name}" for name in wanted if name not in files]
    assert missing == []
