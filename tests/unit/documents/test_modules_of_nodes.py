# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What verbs run on nodes. If this fails, root of a node speaks to Ansible itself: facts, statistics and warnings of a
module that is not ours are taken as they are, and an answer without end is read to its end. And where each module is
tried.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ansible_collections.hetero.compute.tests.versions.checks import test_modules_on_a_node as versions

PLAYBOOKS = Path(__file__).resolve().parents[3] / "playbooks"
LISTS = ("tasks", "pre_tasks", "post_tasks", "handlers", "block", "rescue", "always")
#: Hosts that are the controller.
HERE = ("{{ _controller }}", "localhost")
#: Actions that run on the controller wherever they stand.
LOCAL = ("assert", "fail", "meta", "set_fact", "add_host", "include_", "import_")


def tasks(entries, hosts=None):
    """Yield (hosts of its play, or None for a file of tasks; task)."""
    for entry in entries or []:
        below = [key for key in LISTS if key in entry]
        for key in below:
            yield from tasks(entry[key], entry.get("hosts", hosts))
        if not below:
            yield hosts, entry


def on_nodes():
    for path in sorted(PLAYBOOKS.rglob("*.yml")):
        entries = yaml.safe_load(path.read_text())
        for hosts, task in tasks(entries) if isinstance(entries, list) else ():
            place = task.get("delegate_to") or (hosts if hosts not in HERE else None)
            for name in task if place not in (None, *HERE) else ():
                if "." in name and not name.startswith(tuple(f"ansible.builtin.{local}" for local in LOCAL)):
                    yield pytest.param(name, id=f"{path.stem}: {task.get('name', name)}")


@pytest.mark.parametrize("name", list(on_nodes()))
def test_only_modules_of_the_collection_run_there(name):
    assert name.startswith("hetero.compute.")


def test_each_module_is_tried_on_each_version():
    """Lost: a module on the nodes of some Python, or with some ansible-core, where it was never run."""
    modules = {path.stem for path in (PLAYBOOKS.parent / "plugins" / "modules").glob("*.py")}
    tried = {module for _node, module, _arguments, _outcome in versions.SETTING_UP + versions.CALLS}
    assert modules - versions.OF_THE_CONTROLLER == tried
