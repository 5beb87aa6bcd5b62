# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The JSON in Nova's alias and device_spec, and the flavor property pci_passthrough:alias, checked as Nova 34 does
(nova/pci/request.py and devspec.py). device_match.py knows which devices they match.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Iterable, Mapping

from ..core.errors import BadInput
from .device_match import Address

PROPERTY = "pci_passthrough:alias"
POLICIES = ("required", "legacy", "preferred", "socket")
TYPES = ("type-PCI", "type-PF", "type-VF")
_IDS = ("vendor_id", "product_id")
_ALIAS_KEYS = ("name", *_IDS, "device_type", "numa_policy", "resource_class", "traits", "live_migratable")
_HEX4 = re.compile(r"[0-9a-fA-F]{4}")
#: The form of PROPERTY's value.
REQUESTS = re.compile(r"[^:,]+:[0-9]+(\s*,\s*[^:,]+:[0-9]+)*")
_TRUE = ("1", "t", "true", "on", "y", "yes")
_FALSE = ("0", "f", "false", "off", "n", "no")
#: Tags of device_spec that Nova reads as yes or no.
_SWITCHES = ("managed", "live_migratable", "one_time_use")


@dataclass(frozen=True)
class Alias:
    """What an alias asks for: any of `specs`, with one NUMA policy."""

    name: str
    policy: str
    specs: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class DeviceSpec:
    """One rule of device_spec: ids ("*" is any), address, and the tags that it gives to devices."""

    vendor_id: str
    product_id: str
    address: Address
    interface: object
    tags: dict[str, Any]
    remote: bool
    text: str


def yes_or_no(value: object, strict: bool = True) -> bool | None:
    """Return a yes or no as oslo.utils reads it.

    :param strict: whether another word gives None; without it another word gives False.
    """
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    return True if word in _TRUE else False if word in _FALSE or not strict else None


def canonical(text: str) -> list[str]:
    """Return the objects of an alias or device_spec as texts to compare.

    A list holds several; the case of ids is ignored.
    """
    try:
        value = json.loads(text)
    except ValueError:
        return [text]
    objects = value if isinstance(value, list) else [value]
    return [json.dumps(_lower(one) if isinstance(one, dict) else one, sort_keys=True) for one in objects]


def _lower(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value.lower() if key in _IDS and isinstance(value, str) else value for key, value in spec.items()}


def alias(text: str, thing: str) -> dict[str, Any]:
    """Return one alias as a dict.

    :raises BadInput: Nova refuses it, and then all that needs an alias fails.
    """
    spec = _json(text, thing)
    if isinstance(spec, list):
        raise BadInput("is a list, and Nova takes one alias a line", thing, "write a line for each")
    if not isinstance(spec, dict):
        raise BadInput(f"{text!r} is no JSON object", thing, 'write {"name": "a1", "vendor_id": …, "product_id": …}')
    for key, value in spec.items():
        if key not in (*_ALIAS_KEYS, "capability_type"):
            raise BadInput(f"alias has an unknown key {key!r}", thing, f"use {', '.join(_ALIAS_KEYS)}")
        if not isinstance(value, str):
            raise BadInput(f"{key} of an alias is {value!r}", thing, "give a text")
    _alias_values(spec, thing)
    return spec


def _alias_values(spec: Mapping[str, Any], thing: str) -> None:
    name = spec.get("name", "")
    if not 1 <= len(name) <= 256:
        raise BadInput("alias without a name of 1 to 256 letters", thing, "give it one")
    for key in _IDS:
        if key not in spec and "resource_class" not in spec:
            raise BadInput(f"alias {name} has no {key}", thing, "give it, as lspci -nn shows it")
        if not _HEX4.fullmatch(spec.get(key, "0000")):
            what = f"{key} {spec[key]!r} of alias {name} is not four hexadecimal digits"
            raise BadInput(what, thing, "give it, as lspci -nn shows it")
    for key, choices in (("device_type", TYPES), ("numa_policy", POLICIES), ("capability_type", ("pci",))):
        if key in spec and spec[key] not in choices:
            raise BadInput(f"{key} {spec[key]!r} of alias {name}", thing, f"give {', '.join(choices)}")
    if "live_migratable" in spec and yes_or_no(spec["live_migratable"]) is None:
        raise BadInput(f"live_migratable {spec['live_migratable']!r} of alias {name}", thing, "give yes or no")


def aliases(texts: Iterable[str], thing: str) -> dict[str, Alias]:
    """Return {name: Alias} of all that a service reads. Several of one name are one request for any of them.

    :raises BadInput: Nova refuses them.
    """
    found = {}
    for text in texts:
        spec = alias(text, thing)
        name = spec.pop("name").strip()
        policy = spec.pop("numa_policy", "legacy")
        if "device_type" in spec:
            spec["dev_type"] = spec.pop("device_type")
        if "live_migratable" in spec:
            spec["live_migratable"] = "true" if yes_or_no(spec["live_migratable"]) else "false"
        for key in _IDS:
            if key not in spec:
                raise BadInput(f"alias {name} has no {key}", thing, "give it, or switch pci_in_placement on")
        known = found.get(name)
        if known is None:
            found[name] = Alias(name, policy, (spec,))
            continue
        if known.policy != policy:
            raise BadInput(f"alias {name} is there with two NUMA policies", thing, "give all of its lines the same")
        if "dev_type" not in spec or known.specs[0].get("dev_type") != spec["dev_type"]:
            what = f"alias {name} is there more than once, and not with one device_type"
            raise BadInput(what, thing, "give all of its lines the same device_type, or take out all but one")
        found[name] = Alias(name, policy, (*known.specs, spec))
    return found


def device_specs(texts: Iterable[str], thing: str, in_placement: bool = False) -> list[DeviceSpec]:
    """Return all rules of device_spec, in order.

    :param in_placement: whether [pci] report_in_placement is on.
    :raises BadInput: nova-compute does not start with them.
    """
    found = []
    for text in texts:
        value = _json(text, thing)
        for spec in value if isinstance(value, list) else [value]:
            if not isinstance(spec, dict):
                raise BadInput(f"{text!r} is no JSON object", thing, 'write {"vendor_id": …, "product_id": …}')
            found.append(_device_spec(dict(spec), thing, in_placement))
    return found


def _device_spec(tags: dict[str, Any], thing: str, in_placement: bool) -> DeviceSpec:
    shown = json.dumps(tags)
    vendor, product = (_id(tags.pop(key, "*"), key, shown, thing) for key in _IDS)
    interface, address = tags.pop("devname", None), tags.pop("address", None)
    if interface and address:
        raise BadInput(f"{shown} has both devname and address", thing, "leave one out")
    for key in _SWITCHES:
        if tags.get(key) is not None:
            if yes_or_no(tags[key]) is None:
                raise BadInput(f"{key} {tags[key]!r} of {shown}", thing, "give yes or no")
            tags[key] = "true" if yes_or_no(tags[key]) else "false"
    if tags.get("one_time_use") == "true" and not in_placement:
        raise BadInput(f"one_time_use of {shown} needs report_in_placement in [pci]", thing, "switch that on")
    remote = bool(yes_or_no(tags.get("remote_managed"), strict=False))
    where = Address.of(None if interface else address, thing)
    return DeviceSpec(vendor, product, where, interface, tags, remote, shown)


def _id(value: Any, key: str, shown: str, thing: str) -> str:
    if not isinstance(value, str):
        raise BadInput(f"{key} of {shown} is {value!r}", thing, "give a text")
    value = value.strip() if key == "vendor_id" else value
    if value == "*":
        return value
    try:
        number = int(value, 16)
    except ValueError:
        number = -1
    if not 0 <= number <= 0xFFFF:
        raise BadInput(f"{key} {value!r} is not four hexadecimal digits", thing, "see lspci -nn")
    return f"{number:04x}"


def _json(text: str, thing: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise BadInput(f"{text!r} is no JSON ({error})", thing, "write one JSON object a line") from error


def requests(text: Any, known: Mapping[str, Alias], thing: str) -> list[tuple[Alias, int]]:
    """Return [(Alias, count)] of the flavor property `a1:1, a2:2`.

    :raises BadInput: Nova's API refuses it, or it asks for nothing.
    """
    if not isinstance(text, str) or not REQUESTS.fullmatch(text.strip()):
        raise BadInput(f"{PROPERTY} is {text!r}", thing, "write name:count, with commas between several")
    found = []
    for part in text.split(","):
        name, _colon, count = part.partition(":")
        name = name.strip()
        if name not in known:
            names = ", ".join(sorted(known)) or "none"
            what = f"no alias {name!r} on the API node (it has {names})"
            raise BadInput(what, thing, "add it there, or correct the flavor")
        if int(count) < 1:
            raise BadInput(f"asks for {count.strip()} of alias {name}", thing, "ask for one or more")
        found.append((known[name], int(count)))
    return found


def command(flavor: str, text: str) -> str:
    """Return the command that gives a flavor this property."""
    return f'openstack flavor set {flavor} --property "{PROPERTY}"="{text}"'
