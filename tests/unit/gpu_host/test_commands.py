# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `hetero` does on a node. If a verb could not be imported there, it would fail on the day it is needed: at a
boot, at a container's start, at the end of a lease."""

from __future__ import annotations

import importlib
import io
import subprocess
import sys
import tarfile

from ansible_collections.hetero.compute.plugins.module_utils.node import hetero
from ansible_collections.hetero.compute.plugins.plugin_utils.node_copy import packed

IMPORT = """
import importlib, sys
sys.path.insert(0, sys.argv[1])
for name in sys.argv[2:]:
    importlib.import_module(name, "hetero.module_utils.node")
print(sorted({module.partition(".")[0] for module in sys.modules} & {"ansible", "ansible_collections"}))
"""


def test_a_verb_is_called_by_its_own_name():
    """What its messages, locks and events call it is what a person types."""
    for verb, path in hetero.VERBS.items():
        assert verb == importlib.import_module(path, hetero.__package__).VERB


def test_every_verb_is_imported_from_the_copy_and_without_ansible(tmp_path):
    with tarfile.open(fileobj=io.BytesIO(packed())) as tar:
        tar.extractall(tmp_path)
    words = [sys.executable, "-I", "-c", IMPORT, str(tmp_path), "..node.hetero", "..proxy_node.pdu_mgr"]
    done = subprocess.run([*words, *hetero.VERBS.values()], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
