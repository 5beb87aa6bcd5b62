# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of what owners answer, before plays compute with it. A node that answers anything else counts as failed, like
one that is down, and the others' answers count.

Only those parts are known here that plays, tables and pages use. Whether an answer is true is not checked.
"""

from __future__ import annotations

import ipaddress
import math
import re
import time
from typing import Any, Callable, Mapping

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import brief
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.instance import INSTANCE

#: Returns whether a value can be what it stands for; and {key of a mapping: the test of its value}.
Test = Callable[[Any], bool]
Shape = Mapping[str, Test]

NO_ANSWER = "what the node answers to {module} cannot be ({error}): see whether that node is sound, and set it up again"
#: Names of boards, hosts and nodes, which stand in lines that people paste into a shell.
WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]*")
#: A line of known_hosts, which stands in an ssh command: host, type of key and key, and nothing that a shell expands.
KNOWN_HOST = re.compile(r"[A-Za-z0-9_:\[][A-Za-z0-9_.,:\[\]-]* [A-Za-z0-9@.-]+ [A-Za-z0-9+/]+={0,2}")
#: Seconds that a node's clock may be ahead of the controller's.
DAY = 86400.0


def is_text(value: object) -> bool:
    return isinstance(value, str)


def is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


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


def maybe(test: Test) -> Test:
    """Return a test that also accepts None. A missing key counts as None."""
    return lambda value: value is None or test(value)


def is_mapping(value: object) -> bool:
    return isinstance(value, dict)


def are_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(is_text, value))


def list_of(shape: Shape) -> Test:
    return lambda value: isinstance(value, list) and all(map(of(shape), value))


def of(shape: Shape) -> Test:
    return lambda value: is_mapping(value) and wrong(value, shape) is None


CLAIM = dict(
    instance=is_instance,
    request=is_instance,
    owner=is_text,
    name=is_word,
    created=is_made,
    ip=maybe(is_address),
    expires=maybe(is_number),
    image_hash=maybe(is_text),
    kind=maybe(is_text),
    board=maybe(is_number),
    console=maybe(is_text),
)
EVENT = dict(time=is_number, phase=is_text, text=maybe(is_text), seconds=maybe(is_number))
#: What the states of boards and of compute hosts' instances have in common.
STATE = dict(
    state=is_text,
    note=maybe(is_text),
    since_seconds=maybe(is_number),
    lease_seconds=maybe(is_number),
    expires=maybe(is_number),
)
BOARD = dict(
    STATE,
    id=is_number,
    name=is_word,
    ip=is_address,
    arch=maybe(is_text),
    vcpus=is_number,
    memory_mb=is_number,
    local_gb=is_number,
    cpu_info=is_mapping,
    created=maybe(is_number),
    instance=maybe(is_instance),
    disks=maybe(are_texts),
    events=maybe(list_of(EVENT)),
)
ROOTS = dict.fromkeys(("promised", "there", "taken", "overcommit"), is_number)
UNCLAIMED = dict(instance=maybe(is_text), name=is_text, text=is_text)
DEVICE = dict(address=is_text, arch=maybe(is_text), holder=maybe(is_text), unsupported=maybe(is_text))
AMOUNT = dict(total=is_number, free=is_number)
#: Module → its answer. Keys that only some requests return may be missing, so that one shape serves all.
SHAPES = {
    "board_info": dict(
        claims=list_of(CLAIM),
        boards=list_of(BOARD),
        roots=of(ROOTS),
        unclaimed=maybe(list_of(UNCLAIMED)),
        images=maybe(is_mapping),
    ),
    "host_info": dict(
        claims=list_of(CLAIM),
        instances=list_of(dict(STATE, instance=is_instance, gpus=are_texts)),
        gpus=list_of(DEVICE),
        devices=maybe(list_of(DEVICE)),
        capacity=of(dict.fromkeys(("memory_mb", "vcpus", "local_gb"), of(AMOUNT))),
        unclaimed=maybe(list_of(UNCLAIMED)),
    ),
    "instance": dict(
        instances=list_of(
            dict(
                instance=maybe(is_instance),
                name=maybe(is_word),
                ip=maybe(is_address),
                known_hosts=maybe(are_known_hosts),
                created=maybe(is_made),
            )
        )
    ),
}


def wrong(answer: dict[str, Any], shape: Shape) -> str | None:
    """Return the first key of a mapping whose value does not have the shape, or None."""
    return next((key for key, test in shape.items() if not test(answer.get(key))), None)


def checked(result: dict[str, Any], module: str) -> dict[str, Any]:
    """Return a module's result, or instead a failure that says what in it cannot be."""
    shape = SHAPES.get(module, {})
    if result.get("failed") or result.get("unreachable"):
        # nothing of a failed answer is believed that says what there is
        left = {key: value for key, value in result.items() if key not in shape or module == "instance"}
        return dict(left, msg=str(result.get("msg") or "failed without a word"))
    key = wrong(result, shape)
    if key is None:
        return result
    given = brief(repr(result[key]), 80) if key in result else "not there"
    return dict(failed=True, changed=False, msg=NO_ANSWER.format(module=module, error=f"{key} is {given}"))
