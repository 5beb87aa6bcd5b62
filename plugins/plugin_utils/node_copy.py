# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nodes keep of the collection, so that a call sends its arguments only: the modules, all that they import, and
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
#: Of Ansible's own, what no module of ours imports.
LEFT_OUT = ("facts", "powershell", "csharp")


def code() -> dict[str, bytes]:
    """{path below the copy: bytes} of all of it."""
    found = {
        f"{PACKAGE}/{folder}/{path.relative_to(PLUGINS / folder)}": path
        for folder in ("modules", "module_utils")
        for path in (PLUGINS / folder).rglob("*.py")
    }
    utils = ANSIBLE / "module_utils"
    own = [path for path in utils.rglob("*.py") if path.relative_to(utils).parts[0] not in LEFT_OUT]
    for path in (ANSIBLE / "release.py", *own):
        found[f"ansible/{path.relative_to(ANSIBLE)}"] = path
    # Without one, another package of that name on the node would be taken. Ansible's own imports what is the
    # controller's.
    empty = {f"{package}/__init__.py": b"" for package in ("ansible", PACKAGE)}
    return {**empty, **{name: path.read_bytes() for name, path in found.items()}}


def packed() -> bytes:
    """The same as a compressed tar."""
    into = io.BytesIO()
    with tarfile.open(fileobj=into, mode="w:gz", compresslevel=6) as tar:
        for name, data in sorted(code().items()):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return into.getvalue()
