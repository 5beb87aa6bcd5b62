# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which PCI devices a device_spec matches, and the pools that Nova makes of them, as nova/pci/devspec.py and stats.py
of Nova 34 do. stages.py uses the pools.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass
from typing import Any, Collection, Iterable, Mapping, Protocol

from ..core.errors import BadInput

ANY = "*"
PF = "type-PF"
#: Field of an address → its largest value and its number of hexadecimal digits.
_FIELDS = {"domain": (0xFFFF, 4), "bus": (0xFF, 2), "slot": (0x1F, 2), "function": (0x7, 1)}
#: Tags and keys of aliases that only Placement uses.
FOR_PLACEMENT = ("resource_class", "traits")
#: A device as `pools` takes it.
Device = Mapping[str, Any]


@dataclass(frozen=True)
class Address:
    """The places that a device_spec names: four patterns, of a glob (`*:85:00.0`) or of regular expressions."""

    patterns: tuple[str, ...]
    regex: bool = False

    @classmethod
    def of(cls, value: Any, thing: str) -> Address:
        """Return the Address of `*:85:00.*`, `:85:00.`, or a dict of regular expressions.

        An empty value matches every address.
        """
        if not value:
            return cls((ANY, ANY, ANY, ANY))
        if isinstance(value, dict):
            return cls._regex(value, thing)
        if not isinstance(value, str):
            raise BadInput(f"address {value!r}", thing, "give a text or a mapping")
        place, _dot, function = value.partition(".")
        parts = place.split(":") if place else []
        if len(parts) > 3:
            raise BadInput(f"address {value!r} has more than three colons", thing, "write domain:bus:slot.function")
        parts = [ANY] * (3 - len(parts)) + [part.strip() or ANY for part in parts]
        function = function.strip() if function else ANY
        named = zip(_FIELDS, [*parts, function])
        return cls(tuple(_field(name, part, value, thing) for name, part in named))

    @classmethod
    def _regex(cls, value: Mapping[str, Any], thing: str) -> Address:
        patterns = tuple(value.get(name, ".*") for name in _FIELDS)
        try:
            for pattern in patterns:
                re.compile(pattern)
        except (re.error, TypeError) as error:
            raise BadInput(f"address {value!r} is no regular expression ({error})", thing, "correct it") from error
        return cls(patterns, True)

    @property
    def single(self) -> bool:
        """Return whether the specification names exactly one device."""
        return all(letter in string.hexdigits for pattern in self.patterns for letter in pattern)

    def matches(self, fields: Iterable[str]) -> bool:
        pairs = zip(self.patterns, fields)
        if self.regex:
            return all(re.match(pattern, field) for pattern, field in pairs)
        return all(pattern in (ANY, field) for pattern, field in pairs)


class Rule(Protocol):
    """One rule of device_spec (a DeviceSpec)."""

    @property
    def vendor_id(self) -> str: ...

    @property
    def product_id(self) -> str: ...

    @property
    def address(self) -> Address: ...

    @property
    def interface(self) -> object: ...

    @property
    def tags(self) -> dict[str, Any]: ...

    @property
    def remote(self) -> bool: ...


def _field(name: str, text: str, value: str, thing: str) -> str:
    largest, width = _FIELDS[name]
    if text == ANY:
        return text
    try:
        number = int(text, 16)
    except ValueError:
        number = -1
    if not 0 <= number <= largest:
        what = f"{name} {text!r} of address {value!r} is not 0 to {largest:x}"
        raise BadInput(what, thing, "write it in hexadecimal digits, or as *")
    return f"{number:0{width}x}"


def fields(address: str) -> tuple[str, ...] | None:
    """Return the four fields of a device's address as Nova writes them, or None for an address that Nova cannot follow.
    """
    found = re.fullmatch(r"([0-9a-fA-F]{1,8}):([0-9a-fA-F]{1,2}):([0-9a-fA-F]{1,2})\.([0-7])", address)
    if not found:
        raise BadInput(f"{address!r} is no address of a PCI device", "devices", "write it as 0000:85:00.0")
    numbers = [int(part, 16) for part in found.groups()]
    if any(number > largest for number, (largest, _width) in zip(numbers, _FIELDS.values())):
        return None
    return tuple(f"{number:0{width}x}" for number, (_largest, width) in zip(numbers, _FIELDS.values()))


def rule_for(device: Device, rules: Iterable[Rule], devices: Collection[Device]) -> Rule | None:
    """Return the first rule of device_spec that a device matches, or None.

    A rule that names one physical function also matches its virtual functions.
    """
    place = fields(device["address"])
    if place is None:
        return None
    parent = fields(device["parent"]) if device.get("parent") else None
    for rule in rules:
        if rule.vendor_id not in (ANY, device["vendor_id"].lower()):
            continue
        if rule.product_id not in (ANY, device["product_id"].lower()):
            continue
        if rule.interface and rule.interface not in (device.get("interface"), device.get("parent_interface")):
            continue
        if rule.remote and not device.get("serial"):
            continue
        of_parent = parent is not None and names_pf(rule, devices) and rule.address.matches(parent)
        if of_parent or rule.address.matches(place):
            return rule
    return None


def names_pf(rule: Rule, devices: Iterable[Device]) -> bool:
    """Return whether a rule's address is that of one physical function."""
    if not rule.address.single:
        return False
    named = [fields(device["address"]) for device in devices if device["type"] == PF]
    # Nova looks for a folder of exactly this name in sysfs
    return rule.address.patterns in named


def pools(devices: Collection[Device], rules: Collection[Rule]) -> list[dict[str, Any]]:
    """Return the pools of free devices that the scheduler gets: dicts of Nova's keys and tags, with `count`.

    :param devices: all devices of a host, each with `address`, `vendor_id`, `product_id`, `type` (type-PCI, type-PF,
        type-VF), `numa_node` (None: unknown), `parent` (of a virtual function) and `free`.
    :param rules: the rules of its device_spec.
    """
    judged = [(device, rule_for(device, rules, devices)) for device in devices]
    matched = [(device, rule) for device, rule in judged if rule]
    taken = {device["address"] for device, _rule in matched if not device["free"]}
    parents = {device.get("parent") for device, _rule in matched if not device["free"]} - {None}
    found: list[dict[str, Any]] = []
    for device, rule in matched:
        # A card with a function in use cannot be given away, nor can the functions of a card in use.
        if device["address"] in taken | parents or device.get("parent") in taken:
            continue
        keys = _keys(device, rule)
        for pool in found:
            if {key: value for key, value in pool.items() if key != "count"} == keys:
                pool["count"] += 1
                break
        else:
            found.append(dict(keys, count=1))
            # Nova sorts after each pool, and goes through the pools in this order
            found.sort(key=len)
    return found


def _keys(device: Device, rule: Rule) -> dict[str, Any]:
    keys = dict(
        product_id=device["product_id"].lower(),
        vendor_id=device["vendor_id"].lower(),
        numa_node=device.get("numa_node"),
        dev_type=device["type"],
    )
    keys.update({name: value for name, value in rule.tags.items() if name not in FOR_PLACEMENT})
    keys["address"] = device.get("parent") or device["address"]
    if device.get("parent_interface"):
        keys["parent_ifname"] = device["parent_interface"]
    if device["type"] != "type-PCI" and keys.get("remote_managed") is None:
        keys["remote_managed"] = "false"
    return keys
