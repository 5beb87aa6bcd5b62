# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A site's own driver made of its file: imported, and looked at whether it is what it must be.

Its file imports from `hetero_drivers.power` or `hetero_drivers.boot`, which are the same whether a module brought the
collection's code along or the node's own copy runs. What stands behind each name is an API with a number.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
import threading
import traceback
from importlib.abc import SourceLoader
from types import ModuleType
from typing import Any

from ...core.child import in_child
from ...core.deadline import Deadline
from ...core.errors import BadInput, HeteroError, TimedOut
from ...core.printable import brief
from ...core.release import RELEASE
from .source import GUIDES, Source

#: What a driver's file imports from.
PACKAGE = "hetero_drivers"
#: Seconds that the import of a file may take.
IMPORT = 30.0
_loaded: dict[tuple[str, str], ModuleType] = {}
_turn = threading.RLock()


class _Text(SourceLoader):
    """Imports what was read, not what lies there by now, and leaves no compiled file behind."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def get_filename(self, fullname: str) -> str:
        return self._source.path

    def get_data(self, path: str) -> bytes:
        return self._source.text.encode()


def must_fit(source: Source, kind: str, newest: int, oldest: int) -> None:
    """Raise BadInput if a file is another kind of driver, or written for an API that this release has not.

    :param newest, oldest: the numbers of the API that this release has.
    """
    if source.kind not in (kind, ""):
        raise BadInput(f"is a {source.kind} driver, and no {kind} driver", source.path, f"name a {kind} driver")
    if source.api > newest:
        what = f"is written for {kind} API {source.api}, and release {RELEASE} has {newest}"
        raise BadInput(what, source.path, "update the collection, or take the driver's version for this one")
    if source.api < oldest:
        what = f"is written for {kind} API {source.api}, which release {RELEASE} has no more: it has {newest}"
        remedy = f"change it as the guide Writing a {kind} driver says, then its number"
        raise BadInput(what, source.path, remedy)


def load(source: Source, api: ModuleType, base: type) -> Any:
    """Return the one class below `base` that the file defines; raise BadInput, with what is wrong, where there is none.

    :param api: what the file may import from.
    """
    module = _module(source, api)
    classes = [one for one in vars(module).values() if isinstance(one, type) and one.__module__ == module.__name__]
    found = [one for one in dict.fromkeys(classes) if issubclass(one, base)]
    if len(found) != 1:
        named = f" ({', '.join(one.__name__ for one in found)})" if found else ""
        remedy = f"define one: class NAME({base.__name__}), which {PACKAGE} has"
        raise BadInput(f"defines {len(found)} classes below {base.__name__}{named}", source.path, remedy)
    if inspect.isabstract(found[0]):
        missing = ", ".join(sorted(found[0].__abstractmethods__))  # type: ignore[attr-defined]
        what = f"its driver, {found[0].__name__}, has no {missing}"
        raise BadInput(what, source.path, f"write what is missing; {GUIDES}")
    return found[0]


def _module(source: Source, api: ModuleType) -> ModuleType:
    kind = str(api.__package__).rpartition(".")[2]
    with _turn:
        known = _loaded.get((source.path, source.text))
        if known is not None:
            return known
        package = sys.modules.setdefault(PACKAGE, ModuleType(PACKAGE))
        package.__path__ = []
        setattr(package, kind, api)
        sys.modules[f"{PACKAGE}.{kind}"] = api
        # beside the collection's own drivers: files from before there were numbers import by dots from there
        name = f"{api.__package__}.own_{source.name}"
        loader = _Text(source)
        spec = importlib.util.spec_from_loader(name, loader, origin=source.path)
        made = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
        sys.modules[name] = made
        # first where it can be ended: of one that never returns, or ends its process, nobody would hear
        mistake = _tried(loader, made) or _mistake(loader, made)
        if mistake:
            del sys.modules[name]
            raise BadInput(f"cannot be imported: {mistake}", source.path, "correct it, or install what it needs")
        _loaded[source.path, source.text] = made
        return made


def _tried(loader: _Text, module: ModuleType) -> str | None:
    """Return what is wrong with a file by importing it in a process of its own."""
    try:
        mistake = in_child(lambda: _mistake(loader, module), Deadline(IMPORT), loader.get_filename(""), "")
    except TimedOut:
        return f"it does not end within {IMPORT:g} s"
    except HeteroError:
        return "it ends its process"
    return None if mistake is None else str(mistake)


def _mistake(loader: _Text, module: ModuleType) -> str | None:
    """Import a file; return what is wrong with it, if anything."""
    try:
        loader.exec_module(module)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a site's own raises
        path = loader.get_filename("")
        lines = [one.lineno for one in traceback.extract_tb(error.__traceback__) if one.filename == path]
        return f"{f'line {lines[-1]}: ' if lines else ''}{type(error).__name__}: {brief(str(error))}"
    return None
