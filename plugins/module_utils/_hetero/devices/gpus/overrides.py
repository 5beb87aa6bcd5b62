# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The operator's word on GPUs (architecture, index, health), which overrides what the machine says.

A GPU is named by its PCI address, its UUID, its index (as the driver counts) or its device id, which names all of a
kind. If several name the same GPU, the first of these four wins for each field.
"""

from __future__ import annotations

import re
from typing import Any, Mapping

from ...core.errors import BadInput
from .architectures import NAMES

ADDRESS = re.compile(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])", re.IGNORECASE)
UUID = re.compile(r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
INDEX = re.compile(r"\d{1,3}")
DEVICE_ID = re.compile(r"(?:10de:|0x)([0-9a-f]{4})", re.IGNORECASE)
FIELDS = {"arch": str, "index": int, "healthy": bool}
REMEDY = 'write {"0000:05:00.0": {"arch": "fermi"}}, with an address, UUID, index or device id (10de:1091)'


def address_of(text: str) -> str | None:
    """Return a PCI address as sysfs writes it (0000:05:00.0), or None for other text."""
    match = ADDRESS.fullmatch(text)
    return f"{match[1] or '0000'}:{match[2]}".lower() if match else None


def identity(text: object) -> tuple[str, str | int | None]:
    """Return (kind, value) of a GPU's name; the kind is address, uuid, index or device_id.

    :raises BadInput: it is none of them.
    """
    text = str(text).strip()
    if ADDRESS.fullmatch(text):
        return "address", address_of(text)
    if UUID.fullmatch(text):
        return "uuid", text.lower()
    if INDEX.fullmatch(text):
        return "index", int(text)
    match = DEVICE_ID.fullmatch(text)
    if match:
        return "device_id", int(match[1], 16)
    raise BadInput("names no GPU", f"GPU {text}", "write its PCI address (0000:05:00.0), UUID (GPU-…) or index (0)")


class Overrides:
    """Checked overrides, and for which of them a GPU was found."""

    def __init__(self, given: Mapping[str, Any] | None = None) -> None:
        self._given: dict[tuple[str, str | int | None], tuple[str, dict[str, Any]]] = {}
        self._used: set[str] = set()
        if not isinstance(given or {}, dict):
            raise BadInput(f"are {given!r}", "GPU overrides", REMEDY)
        for name, fields in (given or {}).items():
            self._given[identity(name)] = (name, _checked(name, fields))

    def of(self, **names: str | int | None) -> dict[str, Any]:
        """Return the fields for a GPU with these names (address, uuid, index, device_id; None for one that it lacks).
        """
        merged: dict[str, Any] = {}
        for kind in ("device_id", "index", "uuid", "address"):
            value = names.get(kind)
            value = value.lower() if isinstance(value, str) else value
            if value is not None and (kind, value) in self._given:
                name, fields = self._given[kind, value]
                self._used.add(name)
                merged.update(fields)
        return merged

    @property
    def unused(self) -> list[str]:
        """Return the names in the overrides that no GPU here has."""
        return sorted(str(name) for name, _fields in self._given.values() if name not in self._used)


def _checked(name: str, fields: Any) -> dict[str, Any]:
    thing = f"GPU override {name}"
    if isinstance(fields, str):
        fields = {"arch": fields}
    if not isinstance(fields, dict) or not fields or set(fields) - set(FIELDS):
        raise BadInput(f"is not made of {', '.join(FIELDS)}", thing, REMEDY)
    for field, value in fields.items():
        # True is an int to Python, but no index
        if not isinstance(value, FIELDS[field]) or (isinstance(value, bool) and FIELDS[field] is not bool):
            raise BadInput(f"{field} is not {FIELDS[field].__name__}: {value!r}", thing, REMEDY)
    if "arch" in fields and fields["arch"] not in NAMES:
        raise BadInput(f"no such architecture: {fields['arch']} (known: {', '.join(NAMES)})", thing, "name one of them")
    if fields.get("index", 0) < 0:
        raise BadInput(f"index is below 0: {fields['index']}", thing, REMEDY)
    return fields
