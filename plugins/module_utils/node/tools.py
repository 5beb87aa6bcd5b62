# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands that run on a node without Ansible, and how they get there: as a copy of these very files.

A module that imports the commands' files brings with it all that they import; `sources` reads it back from there. A
command starts with its own file and no other, so that a fault in one (a PDU's driver) does not reach another (restore).
"""

from __future__ import annotations

import sys
from typing import Any

from ..errors import HeteroError

#: Where the files lie on the node, as Python package PACKAGE.
FOLDER = "/usr/lib/hetero"
PACKAGE = "hetero"
#: How the names of all files here begin.
ROOT = __name__.rsplit(".", 2)[0] + "."
#: -I: neither the user's environment nor the current folder says what is imported.
SCRIPT = """\
#!/usr/bin/python3 -I
# Written by hetero.compute.node_tools.
import sys

sys.path.insert(0, {folder!r})
from {package}.{file} import main
from {package}.node.tools import start

sys.exit(start({name!r}, main, sys.argv[1:]))
"""


def start(name, main, arguments):
    """Run a command and return its exit code; an error is one line."""
    try:
        return main(arguments)
    except HeteroError as error:
        sys.stderr.write(f"{name}: {error}\n")
        return 1


def script(name, main, folder=FOLDER):
    """The text of the file that is started as a command, which runs `main` of one of the installed files."""
    return SCRIPT.format(folder=folder, package=PACKAGE, file=main.__module__[len(ROOT) :], name=name)


def sources():
    """{path below PACKAGE: text} of every file of module_utils that was imported."""
    found = {}
    for name, module in sorted(sys.modules.items()):
        loader: Any = getattr(module, "__loader__", None)
        text = loader.get_source(name) if name.startswith(ROOT) and hasattr(loader, "get_source") else None
        text = text.decode() if isinstance(text, bytes) else text  # Ansible's own loader gives bytes
        if text:
            # a folder's own __init__.py is empty, and not needed
            found[name[len(ROOT) :].replace(".", "/") + ".py"] = text
    return found
