# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Folders without a slash before them. If these fail, a set-up never ends, and a process of it spins on the node until
somebody finds it.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import preflight
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.setup_plan import Plan

BELOW = "ansible_collections.hetero.compute.plugins.module_utils._hetero"
#: Each look at a folder that is yet to be made, in a process of its own: one that never ends is ended.
LOOKS = (
    f"from {BELOW}.files.paths import existing; existing(sys.argv[1])",
    f"from {BELOW}.images.room import Room; Room(sys.argv[1]).fields",
)


@pytest.mark.parametrize("look", LOOKS)
def test_a_relative_folder_ends_the_look_for_what_it_lies_on(tmp_path, look):
    """Lost: the operator's terminal, in a set-up that says nothing and never ends."""
    code = f"import sys\nfor path in ('', 'rel', 'rel/state', './x'):\n    sys.argv[1:] = [path]\n    {look}\n"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, timeout=600, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("folder", ["rel/state", ""])
def test_a_relative_folder_is_refused_beside_all_else(folder):
    """Lost: the proxy's state, in whatever folder ssh logs in to."""
    plan = Plan(server="10.0.2.254", state_folder=folder, tftp_root="boot", wipe={"method": "zreo"})
    defects = list(map(str, preflight.look(plan).defects))
    for wanted in (
        f'tftp_proxy_state_folder: is "{folder}": give an absolute path',
        'tftp_proxy_tftp_root: is "boot": give an absolute path',
        'tftp_proxy_wipe: no such method: "zreo": write zero',
    ):
        assert defects.count(wanted) == 1, (wanted, defects)
