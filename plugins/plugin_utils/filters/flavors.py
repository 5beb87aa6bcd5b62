# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.flavors`: the default flavors and a site's own as one table, or all that is wrong with it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml
from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import brief
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.flavor_check import table_defects
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.spellings import usual
from ansible_collections.hetero.compute.plugins.plugin_utils.flavors_file import NO_TABLE, FlavorsFile

VARIABLE = "hetero_extra_instance_types"
#: The collection's own flavors. Plays do not name it as a file of variables, which Ansible would read for each task.
DEFAULTS = Path(__file__).resolve().parents[3] / "playbooks" / "vars" / "instance_types.yml"


def flavors(defaults: Any, own: Any = None, file: Any = None) -> dict[str, dict[str, Any]]:
    found, wrong = read(defaults, own, file)
    if wrong:
        raise AnsibleFilterError("\n".join(wrong))
    return found


def read(defaults: Any, own: Any = None, file: Any = None) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Return the flavors by name, and all that is wrong with a site's own, a line each."""
    defaults, own = _own_of_the_collection() if defaults is None else defaults, own or {}
    tables = {"hetero_instance_types": defaults, VARIABLE: own}
    strange = [f"{name} {NO_TABLE}" for name, table in tables.items() if not isinstance(table, dict)]
    if strange:
        return {}, strange
    defaults, own = ({name: usual(flavor) for name, flavor in table.items()} for table in (defaults, own))
    wrong = [f"{VARIABLE}: {_of(name)}{defect.text}" for name, defect in table_defects(own, defaults)]
    found = {**defaults, **own}
    if file:
        others = FlavorsFile(os.path.expanduser(str(file)), found)
        twice = [name for name in others.flavors if name in own]
        wrong += [f"{file}: flavor {name} is in {VARIABLE} as well: leave one out" for name in twice]
        wrong += others.defects
        found.update(others.flavors)
    return {} if wrong else {name: dict(flavor, name=name) for name, flavor in found.items()}, wrong


def _own_of_the_collection() -> dict[str, Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found: dict[str, Any] = yaml.load(DEFAULTS.read_text(encoding="utf-8"), loader)["hetero_instance_types"]
    return found


def _of(name: object) -> str:
    return f"flavor {brief(name)}: " if isinstance(name, str) else ""
