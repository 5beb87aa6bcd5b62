# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one place where errors become fail_json, and where text of others in a result is made printable.

No other file of module_utils knows AnsibleModule.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Iterator, NoReturn, Protocol

from . import askers
from .errors import BadInput, HeteroError, naming_limits
from .printable import MOST, brief, printable, printable_data
from .this_node import THIS_NODE

#: The largest number of a database: SQLite's are signed and of 64 bits. No time or size of ours exceeds it.
LARGEST = 2**63 - 1


class Module(Protocol):
    """What is used of an AnsibleModule."""

    params: dict[str, Any]
    check_mode: bool

    def exit_json(self, **result: Any) -> NoReturn: ...

    def fail_json(self, msg: str, **result: Any) -> NoReturn: ...

    def warn(self, warning: str) -> None: ...


def checked(params: dict[str, Any]) -> dict[str, Any]:
    """Return `params`; raise BadInput where an argument, at any depth, holds what no database, path or clock takes."""
    for name, value in params.items():
        for part in _parts(value):
            fault = _fault(part)
            if fault:
                what, remedy = fault
                raise BadInput(what, name, remedy)
    return params


def _parts(value: Any) -> Iterator[Any]:
    """Yield all texts and numbers of an argument, at any depth, keys too."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _parts(key)
            yield from _parts(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _parts(part)
    else:
        yield value


def _fault(value: Any) -> tuple[str, str] | None:
    """Return what is wrong with a text or number, and what to do; None where nothing is."""
    if isinstance(value, str):
        try:
            # Ansible passes bytes that are no UTF-8 on as lone surrogates.
            value.encode("utf-8")
        except UnicodeEncodeError:
            return "holds bytes that are not UTF-8", "write it in UTF-8"
        return ("holds a NUL character", "leave it out") if "\0" in value else None
    if isinstance(value, float) and not math.isfinite(value):
        return f"is {value}", "give a finite number"
    if isinstance(value, (int, float)) and abs(value) > LARGEST:
        return "is too large a number", "give one of at most 18 digits"
    return None


def shortened(value: Any, params: dict[str, Any]) -> Any:
    """Return a message, or the parts of one, with long arguments that it quotes cut off."""
    long = {part for part in _parts(params) if isinstance(part, str) and len(part) > MOST}
    quotes = {quoted for part in long for quoted in (part, printable(part), repr(part)[1:-1], ascii(part)[1:-1])}
    return _cut(value, sorted(quotes, key=len, reverse=True)) if quotes else value


def _cut(value: Any, quotes: list[str]) -> Any:
    if isinstance(value, dict):
        return {_cut(key, quotes): _cut(part, quotes) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_cut(part, quotes) for part in value]
    for quoted in quotes if isinstance(value, str) else ():
        value = value.replace(quoted, brief(quoted))
    return value


def run(module: Module, work: Callable[[dict[str, Any], bool], dict[str, Any]]) -> NoReturn:
    """Run `work(params, check)` and end the module with its result.

    :param work: takes the parameters and whether this is check mode; returns the result dict. A result that holds
        `failed` keeps everything else it holds (per-board results of the boards that did work). Its `warnings` are
        shown as such.
    """
    askers.asked_by(askers.Reader())
    try:
        with naming_limits(THIS_NODE):
            result = work(checked(module.params), module.check_mode)
    except HeteroError as error:
        module.fail_json(**failed(error, module.params))
    result = printable_data(result)
    # By warn(), for Ansible adds a deprecation notice of its own to warnings that are part of a result.
    for warning in result.pop("warnings", ()):
        module.warn(warning)
    if result.get("failed"):
        module.fail_json(**shortened(result, module.params))
    module.exit_json(**result)


def failed(error: HeteroError, params: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return an error as the result of a module that failed.

    :param params: the module's arguments.
    """
    result = printable_data(dict(failed=True, msg=str(error), failure=error.failure))
    return shortened(result, params or {})
