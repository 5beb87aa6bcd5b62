# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file of flavors by name, in YAML or JSON, with the place of everything in it.
module_utils/_hetero/scheduling/flavor_check.py knows what is wrong with a flavor itself.
"""

from __future__ import annotations

from typing import Any, Mapping, Tuple

import yaml

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import brief
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.flavor_check import table_defects
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.spellings import usual

#: (line, column); and the keys that lead to a place.
At = Tuple[int, int]
Path = Tuple[Any, ...]

#: Names of variables under which the table may stand, as in a file of variables.
VARIABLES = ("hetero_extra_instance_types", "hetero_instance_types")
#: What is said of another thing in place of the table.
NO_TABLE = "is no mapping of flavors by name: write NAME: {memory_mb: …, vcpus: …, local_gb: …}"
#: Tag of the key <<, which takes over the keys of another flavor.
MERGE = "tag:yaml.org,2002:merge"
#: Depth of mappings at most. Deeper ones are no flavors, and an alias (*) may form a circle.
DEEPEST = 20


class FlavorsFile:
    """What a file says: `flavors` by name, and `defects` as lines `FILE:LINE:COLUMN: reason`, in its order."""

    def __init__(self, path: str, defaults: Mapping[str, Any]) -> None:
        """Read the file.

        :param defaults: the flavors that exist without this file.
        """
        self.path = path
        self.flavors: dict[Any, Any] = {}
        self._places: dict[Path, At] = {}
        self._found: list[tuple[At, str]] = []
        self._read()
        if not self._found:
            for name, defect in table_defects(self.flavors, defaults):
                where = self._place((name, *defect.path))
                thing = f"flavor {brief(name)}: " if isinstance(name, str) else ""
                self._found.append((where, f"{thing}{defect.text}"))

    @property
    def defects(self) -> list[str]:
        said = []
        for (line, column), text in sorted(self._found, key=lambda one: one[0]):
            said.append(f"{self.path}:{line}:{column}: {text}" if line else f"{self.path}: {text}")
        return said

    def _place(self, path: Path) -> At:
        """Return (line, column) of a place, or of the nearest one above it that is in the file."""
        while path and path not in self._places:
            path = path[:-1]
        return self._places.get(path, (1, 1))

    def _read(self) -> None:
        try:
            with open(self.path, encoding="utf-8-sig") as file:
                # JSON may be indented by tabs, YAML may not. For both a tab is white space of one column.
                text = file.read().replace("\t", " ") if self.path.endswith(".json") else file.read()
            loader = yaml.SafeLoader(text)
            root = loader.get_single_node()
            if root is not None:
                self._walk(root, (), 0)
                if not self._found:
                    data = loader.construct_document(root)
                    self._take({} if data is None else data, root)
        except OSError as error:
            self._found.append(((0, 0), f"cannot be read: {error.strerror}"))
        except UnicodeDecodeError as error:
            self._found.append(((0, 0), f"is no UTF-8 text ({error.reason} at byte {error.start})"))
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            self._found.append((_at(mark), f"is no YAML: {brief(error.problem or error.context)}"))
        except yaml.YAMLError as error:
            self._found.append(((0, 0), f"is no YAML: {brief(str(error).splitlines()[0])}"))
        except ValueError as error:  # a number of more digits than Python takes, a day that no month has
            self._found.append(((0, 0), f"is no YAML: {brief(str(error))}"))
        except RecursionError:
            self._found.append(((0, 0), "goes deeper than YAML's reader can follow"))

    def _take(self, data: Any, root: yaml.Node) -> None:
        """Keep the table. One that stands under a variable's name is taken out of it."""
        if not isinstance(data, dict):
            self._found.append((_at(root.start_mark), NO_TABLE))
        elif len(data) == 1 and next(iter(data)) in VARIABLES:
            (variable,) = data
            self._places = {path[1:]: place for path, place in self._places.items() if path[:1] == (variable,)}
            self._take(data[variable] or {}, root.value[0][1])
        else:
            self.flavors = {name: usual(flavor) for name, flavor in data.items()}

    def _walk(self, node: yaml.Node, path: Path, depth: int) -> None:
        """Note the place of each key, and keys that occur twice, of which YAML would keep the last one."""
        self._places.setdefault(path, _at(node.start_mark))
        if not isinstance(node, yaml.MappingNode):
            return
        if depth > DEEPEST:
            self._found.append((_at(node.start_mark), f"goes deeper than {DEEPEST} mappings"))
            return
        seen: dict[Any, At] = {}
        for key_node, value_node in node.value:
            if key_node.tag == MERGE:
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                self._found.append((_at(key_node.start_mark), "a key that is no text: put it in quotes"))
                continue
            key, place = _key(key_node), _at(key_node.start_mark)
            first = seen.setdefault(key, place)
            if first != place:
                self._found.append((place, f"{brief(str(key))} is here twice: line {first[0]} has it already"))
            self._places[(*path, key)] = place
            self._walk(value_node, (*path, key), depth + 1)


def _key(node: yaml.ScalarNode) -> Any:
    """Return a key as the loader reads it: 8 is a number, 8x8 a text."""
    return yaml.SafeLoader("").construct_object(node)


def _at(mark: Any) -> At:
    return (mark.line + 1, mark.column + 1)
