# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The copy of the collection on nodes, so that a call sends only its arguments: the modules, all that they import, and
the part of Ansible that a module needs. Module node_tools puts it there.
"""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import ansible

from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.tools import PACKAGE

PLUGINS = Path(__file__).resolve().parent.parent
ANSIBLE = Path(ansible.__file__).resolve().parent
#: Folders of Ansible that no module of the collection imports.
LEFT_OUT = ("facts", "powershell", "csharp")


def code() -> dict[str, bytes]:
    """Return {path below the copy: bytes} of all its files."""
    found = {
        f"{PACKAGE}/{folder}/{path.relative_to(PLUGINS / folder)}": path
        for folder in ("modules", "module_utils")
        for path in (PLUGINS / folder).rglob("*.py")
    }
    utils = ANSIBLE / "module_utils"
    own = [path for path in utils.rglob("*.py") if path.relative_to(utils).parts[0] not in LEFT_OUT]
    for path in (ANSIBLE / "release.py", *own):
        found[f"ansible/{path.relative_to(ANSIBLE)}"] = path
    # Empty packages, because another package of that name on the node would otherwise be taken, and because Ansible's
    # own imports parts of the controller.
    empty = {f"{package}/__init__.py": b"" for package in ("ansible", PACKAGE)}
    return {**empty, **{name: path.read_bytes() for name, path in found.items()}}


def packed() -> bytes:
    """Return the copy as a compressed tar."""
    into = io.BytesIO()
    with tarfile.open(fileobj=into, mode="w:gz", compresslevel=6) as tar:
        for name, data in sorted(code().items()):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return into.getvalue()
