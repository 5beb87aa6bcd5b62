# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Flavors as Nova's seeds and the blueprints of heterogeneous clouds spell them: cpu_info as JSON text, and keys that
stand beside memory_mb, or under another name, where this collection has extra_specs. flavor_check.py knows what a
flavor is otherwise.
"""

from __future__ import annotations

from typing import Any, Iterator

from ..core.json_file import loads
from .extra_specs import OPERATORS

#: Other names of keys of extra_specs: the columns of the blueprints' instance types, and Nova's name of a hypervisor.
NAMES = {"xpus": "gpus", "xpu_arch": "gpu_arch", "hypervisor_type": "hypervisor"}
#: Keys of extra_specs that a blueprint's instance type has beside memory_mb.
BESIDE = ("gpus", "gpu_arch", "hypervisor", *NAMES)
#: Columns of a blueprint's instance type of which no node tells anything.
UNTOLD = ("xpu_info", "net_arch", "net_info", "net_mbps")
SCOPE = "capabilities:"


def usual(flavor: Any) -> Any:
    """Return a flavor in this collection's own spelling. A value without a meaning stays, for flavor_check to name.

    :param flavor: from outside, so it may be anything.
    """
    if not isinstance(flavor, dict):
        return flavor
    flavor = {
        key: _mapping(value) if key == "cpu_info" else value
        for key, value in flavor.items()
        if not (key in (*BESIDE, *UNTOLD) and _asks_nothing(value))
    }
    extra = flavor.get("extra_specs") or {}
    if not isinstance(extra, dict):
        return flavor
    extra = dict(_renamed(extra))
    for key in BESIDE:
        name, value = NAMES.get(key, key), flavor.get(key)
        if name not in extra and isinstance(value, (str, int)) and not isinstance(value, bool):
            extra[name] = _requirement(flavor.pop(key))
    return dict(flavor, extra_specs=extra) if extra or "extra_specs" in flavor else flavor


def _asks_nothing(value: Any) -> bool:
    """Return whether a column has what the blueprints' tables have in it where a type asks for nothing there."""
    return not isinstance(value, bool) and _mapping(value) in (None, "", 0, "0", {})


def _mapping(cpu_info: Any) -> Any:
    """Return the mapping that JSON text is, or the value itself."""
    try:
        read = loads(cpu_info) if isinstance(cpu_info, str) else None
    except ValueError:
        read = None
    return read if isinstance(read, dict) else cpu_info


def _renamed(extra: dict[Any, Any]) -> Iterator[tuple[Any, Any]]:
    for key, value in extra.items():
        scope = SCOPE if str(key).startswith(SCOPE) else ""
        name = scope + NAMES.get(str(key)[len(scope) :], str(key)[len(scope) :])
        yield (key if name == key or name in extra else name), value


def _requirement(value: str | int) -> str:
    """Return the requirement that a mere value is: at least as many GPUs are exactly as many; a text is equal."""
    text = str(value).strip()
    if text.split(None, 1)[:1] and text.split(None, 1)[0] in OPERATORS:
        return text
    return f"= {text}" if text.isdigit() else f"s== {text}"
