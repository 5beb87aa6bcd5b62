# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of single values that an answer holds, and of mappings and lists of them: what a text, number, name, address or
time can be. answers.py says which of them each module's answer has.
"""

from __future__ import annotations

import ipaddress
import re
import time
from typing import TYPE_CHECKING, Any, Callable, Collection, Mapping

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import LONGEST
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.instance import INSTANCE
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.kinds import BY_HYPERVISOR

if TYPE_CHECKING:
    from typing import TypeGuard

#: Returns whether a value can be what it stands for; and {key of a mapping: the test of its value}.
Test = Callable[[Any], bool]
Shape = Mapping[str, Test]
#: Names of boards, hosts and nodes, which stand in lines that people paste into a shell.
WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]*")
#: A line of known_hosts, which stands in an ssh command: host, type of key and key, and nothing that a shell expands.
KNOWN_HOST = re.compile(r"[A-Za-z0-9_:\[][A-Za-z0-9_.,:\[\]-]* [A-Za-z0-9@.-]+ [A-Za-z0-9+/]+={0,2}")
#: Seconds that a node's clock may be ahead of the controller's.
DAY = 86400.0
#: Above all amounts (bytes) and times (seconds). Python's integers have no end, and what expects a float fails there.
MOST = 1e24
#: Stands for the value of a key that an answer does not have.
MISSING = object()


def is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST


def is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < MOST


def is_label(value: object) -> bool:
    return is_text(value) or is_number(value)


def is_word(value: Any) -> bool:
    return is_text(value) and bool(WORD.fullmatch(value))


def is_instance(value: Any) -> bool:
    return is_text(value) and bool(INSTANCE.fullmatch(value))


def is_address(value: Any) -> bool:
    """Return whether this is an IP address without a scope id, for which Python takes any text ("fe80::1%$(id)")."""
    try:
        return is_text(value) and "%" not in value and bool(ipaddress.ip_address(value))
    except ValueError:
        return False


def is_known_host(value: Any) -> bool:
    return is_text(value) and bool(KNOWN_HOST.fullmatch(value))


def are_known_hosts(value: Any) -> bool:
    return is_text(value) and all(map(is_known_host, value.splitlines()))


def is_made(value: Any) -> bool:
    """Return whether this can be the time at which something was made, by the controller's clock with a day's
    tolerance.
    """
    return is_number(value) and 0 < value < time.time() + DAY


def or_none(test: Test) -> Test:
    """Return a test that also accepts None. The key has to be there."""
    return lambda value: value is None or test(value)


def maybe(test: Test) -> Test:
    """Return a test that also accepts a missing key, or None."""
    return lambda value: value is MISSING or value is None or test(value)


def left_out(test: Test) -> Test:
    """Return a test that also accepts a missing key."""
    return lambda value: value is MISSING or test(value)


def is_missing(value: object) -> bool:
    return value is MISSING


def is_mapping(value: object) -> bool:
    return isinstance(value, dict)


def is_truth(value: object) -> bool:
    return isinstance(value, bool)


def are_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(is_text, value))


def are_texts_by_name(value: object) -> bool:
    return isinstance(value, Mapping) and all(map(is_label, value)) and all(map(is_text, value.values()))


def one_of(words: Collection[str]) -> Test:
    return lambda value: isinstance(value, str) and value in words


is_hypervisor = one_of(BY_HYPERVISOR)


def are_hypervisors(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(is_hypervisor, value))


def are_reasons(value: object) -> bool:
    """Return whether this says of each node why it was refused: {node: a text, or texts}."""
    return isinstance(value, dict) and all(is_text(why) or are_texts(why) for why in value.values())


def each_of(shape: Shape) -> Test:
    """Return a test of a mapping by name, of which each value has the shape."""
    return lambda value: isinstance(value, dict) and all(map(is_text, value)) and all(map(of(shape), value.values()))


def list_of(shape: Shape) -> Test:
    return lambda value: isinstance(value, list) and all(map(of(shape), value))


def of(shape: Shape) -> Test:
    return lambda value: is_mapping(value) and wrong(value, shape) is None


def wrong(answer: dict[str, Any], shape: Shape) -> str | None:
    """Return the first key of a mapping whose value does not have the shape, or None."""
    return next((key for key, test in shape.items() if not test(answer.get(key, MISSING))), None)
