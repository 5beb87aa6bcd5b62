# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a file of a site's own driver says of itself, read without running it: its name, its kind, for which API it is
written, the Debian packages that it needs, and a table if it is nothing but one.

folder.py finds such files on a node, and loading.py makes the driver.
"""

from __future__ import annotations

import ast
import json
import os
import re
from dataclasses import dataclass
from typing import Any, Mapping

from ...core.errors import BadInput
from ...core.this_node import THIS_NODE
from ...site.proxy_config import POWER_DRIVERS
from . import loaders

#: A driver is called by its file's name without the suffix: NAME.py, and NAME.json of a table.
NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
PYTHON, TABLE = ".py", ".json"
POWER, BOOT = "power", "boot"
#: Kind of driver → folder of such on a node, and the end of the variable that names them.
FOLDERS = {POWER: POWER_DRIVERS, BOOT: "boot_drivers"}
#: The line of a Python file, and the key of a table, that says for which API it is written → kind of driver.
APIS = {"POWER_API": POWER, "BOOT_API": BOOT}
TABLE_API = "power_api"
#: The API of files from before there were numbers.
FIRST_API = 1
#: The line with the names of Debian packages that the file needs.
PACKAGES = "PACKAGES"
#: The lines with what a boot driver needs of the servers.
LOADERS = (loaders.LOADERS, loaders.BOOT_FILE, loaders.DHCP_OPTIONS)
#: Keys of a table's file, one of which it has: the settings of drivers snmp and http for own tables.
TABLES = ("snmp_table", "api_table")
GUIDES = "see the guide Writing a power driver, or Writing a boot driver"
#: Of Debian Policy, 5.6.7.
PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+")
#: Most bytes of such a file.
MOST = 2**20


@dataclass(frozen=True)
class Source:
    """A file of a site's own driver.

    :param name: the driver's.
    :param path: where it lies, for errors.
    :param kind: POWER or BOOT; "" of a file that does not say for which API it is written, which is FIRST_API then.
    :param api: the number of the API that it is written for.
    :param loaders: what a boot driver needs of the servers that its boards ask.
    :param table: (one of TABLES, its table); None of a file with Python.
    """

    name: str
    path: str
    text: str
    kind: str
    api: int
    packages: tuple[str, ...] = ()
    table: tuple[str, Mapping[str, Any]] | None = None
    loaders: loaders.Loaders = loaders.NONE


def read(path: str, data: bytes) -> Source:
    """Return the Source of a file; raise BadInput where it is none."""
    name, suffix = os.path.splitext(os.path.basename(path))
    if not NAME.fullmatch(name) or suffix not in (PYTHON, TABLE):
        remedy = "call it by small letters, digits and _, and the suffix of its kind: acme.py, or acme.yml of a table"
        raise BadInput("has no name of a driver's file", path, remedy)
    if len(data) > MOST:
        raise BadInput(f"is longer than {MOST} bytes", path, "see whether it is a driver")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput("is not UTF-8", path, "save it as UTF-8") from error
    return _python(name, path, text) if suffix == PYTHON else _table(name, path, text)


def _python(name: str, path: str, text: str) -> Source:
    try:
        lines = ast.parse(text, path).body
    except (MemoryError, RecursionError) as error:  # so deep that the parser has no room for it
        raise BadInput(f"is no Python of {THIS_NODE}: it is nested too deep", path, "correct it") from error
    except (SyntaxError, ValueError) as error:
        line = f"line {error.lineno}: " if isinstance(error, SyntaxError) and error.lineno else ""
        said = error.msg if isinstance(error, SyntaxError) else str(error)
        raise BadInput(f"is no Python of {THIS_NODE}: {line}{said}", path, "correct it") from error
    said_by = {
        target.id: line.value
        for line in lines
        if isinstance(line, (ast.Assign, ast.AnnAssign)) and line.value is not None
        for target in (line.targets if isinstance(line, ast.Assign) else [line.target])
        if isinstance(target, ast.Name)
    }
    named = [word for word in APIS if word in said_by]
    if len(named) > 1:
        lines_of_kinds = " or ".join(f"{word} = 1" for word in APIS)
        raise BadInput(f"says {' and '.join(named)}", path, f"give it one line {lines_of_kinds}; {GUIDES}")
    packages = _literal(said_by[PACKAGES]) if PACKAGES in said_by else []
    api = _literal(said_by[named[0]]) if named else FIRST_API
    if not _is_number(api):
        raise BadInput(f"its {named[0]} is no whole number", path, f"write {named[0]} = 1")
    if not isinstance(packages, (list, tuple)) or not all(PACKAGE.fullmatch(str(one)) for one in packages):
        raise BadInput(f"its {PACKAGES} are no names of packages", path, f'write {PACKAGES} = ["python3-requests"]')
    needs = {word: _literal(said_by[word]) for word in LOADERS if word in said_by}
    kind = APIS[named[0]] if named else ""
    return Source(name, path, text, kind, api, tuple(packages), loaders=loaders.declared(needs, path))


def _literal(value: ast.expr) -> Any:
    """Return what a line says, None where it is no plain value."""
    try:
        return ast.literal_eval(value)
    except (ValueError, TypeError, MemoryError, RecursionError):  # ast.literal_eval's, of what is none
        return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _table(name: str, path: str, text: str) -> Source:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"is no JSON ({error})", path, "correct it") from error
    example = f"give {TABLE_API}: 1, and one of {', '.join(TABLES)}; {GUIDES}"
    if not isinstance(given, dict) or len([key for key in TABLES if key in given]) != 1:
        raise BadInput("has no table of a PDU", path, example)
    (setting,) = (key for key in TABLES if key in given)
    unknown = sorted(str(key) for key in set(given) - {TABLE_API, setting})
    if unknown:
        raise BadInput(f"has an unknown key {', '.join(unknown)}", path, example)
    if not _is_number(given.get(TABLE_API)):
        raise BadInput(f"does not say its {TABLE_API}", path, example)
    if not isinstance(given[setting], dict):
        raise BadInput(f"its {setting} is no mapping", path, example)
    return Source(name, path, text, POWER, given[TABLE_API], table=(setting, given[setting]))
