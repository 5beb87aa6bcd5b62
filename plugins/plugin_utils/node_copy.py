# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The copy of the collection on nodes, so that a call sends only its arguments: the modules, all that they import, and
the part of Ansible that a module needs. Module node_tools puts it there.
"""

from __future__ import annotations

import io
import os
import tarfile
from typing import Collection, Iterator

import ansible

from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.tools import PACKAGE

PLUGINS = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
ANSIBLE = os.path.dirname(os.path.realpath(ansible.__file__))
#: Folders of Ansible that no module of the collection imports.
LEFT_OUT = ("facts", "powershell", "csharp")


def code() -> dict[str, bytes]:
    """Return {path below the copy: bytes} of all its files."""
    # Empty packages, because another package of that name on the node would otherwise be taken, and because Ansible's
    # own imports parts of the controller.
    found = {f"{package}/__init__.py": b"" for package in ("ansible", PACKAGE)}
    for folder in ("modules", "module_utils"):
        found.update(_programs(os.path.join(PLUGINS, folder), f"{PACKAGE}/{folder}"))
    found.update(_programs(os.path.join(ANSIBLE, "module_utils"), "ansible/module_utils", LEFT_OUT))
    found["ansible/release.py"] = _read(os.path.join(ANSIBLE, "release.py"))
    return found


def _programs(top: str, name: str, left_out: Collection[str] = ()) -> Iterator[tuple[str, bytes]]:
    """Yield each Python file below a folder of this machine, by its name in the copy.

    :param left_out: folders directly in it that are passed over.
    """
    with os.scandir(top) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in left_out:
                    yield from _programs(entry.path, f"{name}/{entry.name}")
            elif entry.name.endswith(".py"):
                yield f"{name}/{entry.name}", _read(entry.path)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def packed() -> bytes:
    """Return the copy as a compressed tar."""
    into = io.BytesIO()
    with tarfile.open(fileobj=into, mode="w:gz", compresslevel=6) as tar:
        for name, data in sorted(code().items()):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return into.getvalue()
