# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collection's own code, loaded as Python loads any other: once compiled, it is kept beside its source. Ansible's
loader of collections keeps nothing, and compiles each file anew in each of a play's processes.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from typing import Sequence

#: How the names of the collection's own code begin: that of its plugins, and of its modules.
OURS = __name__.rpartition(".plugin_utils.")[0] + "."
#: Where Ansible has what finds collections.
ANSIBLES = "ansible.utils.collection_loader"


class KeptCompiled:
    """Finds the collection's own files for Python; folders, and all that is not there, are Ansible's to find."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, _target: object = None) -> ModuleSpec | None:
        for folder in path or () if name.startswith(OURS) else ():
            found = _in(folder).find_spec(name)
            if found is not None and found.loader is not None:
                return found
        return None


@lru_cache(maxsize=None)
def _in(folder: str) -> FileFinder:
    return FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES))


def put_first() -> None:
    """Have Python ask this before it asks Ansible. Where Python itself loads collections, as in tests, do nothing."""
    for place, finder in enumerate(sys.meta_path):
        if type(finder).__module__.startswith(ANSIBLES) and KeptCompiled not in sys.meta_path:
            sys.meta_path.insert(place, KeptCompiled)
            break
