# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command `hetero` on a node. If this fails, hooks and timers end in an ImportError, and no container starts."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

from ansible_collections.hetero.compute.plugins.module_utils.node import hetero, tools
from ansible_collections.hetero.compute.plugins.modules import node_tools


def imported(path, text):
    """Files below the package that a file's imports may name, those inside functions as well."""
    folder = path.split("/")[:-1]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.level:
            top = folder[: len(folder) - node.level + 1]
            whole = "/".join([*top, *filter(None, (node.module or "").split("."))])
            yield f"{whole}.py"
            yield from (f"{whole}/{name.name}.py".lstrip("/") for name in node.names)


def test_all_that_a_command_imports_comes_with_it():
    """What is imported only when a verb is called is not among the files that the module brings by itself."""
    words = f"import json, {node_tools.__name__}; from {tools.__name__} import sources; print(json.dumps(sources()))"
    said = subprocess.run([sys.executable, "-c", words], stdout=subprocess.PIPE, check=True, timeout=60).stdout
    brought = json.loads(said)
    assert {verb[2:].replace(".", "/") + ".py" for verb in hetero.VERBS.values()} <= set(brought)
    folder = Path(tools.__file__).parents[1]
    wanted = {name for path, text in brought.items() for name in imported(path, text) if (folder / name).is_file()}
    assert wanted - set(brought) == set()
