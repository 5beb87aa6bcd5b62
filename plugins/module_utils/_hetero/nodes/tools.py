# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a node's copies of the collection lie, and the commands that start from one without Ansible.

A command starts with its own file and no other, so that a fault in one (a PDU's driver) does not reach another
(restore).
"""

from __future__ import annotations

import hashlib
import os
import sys
from typing import Callable, Mapping, Sequence

from ..core.errors import HeteroError, Refused

#: Holds a folder for each copy, called by what is in it (name_of): Python package PACKAGE, and the part of Ansible that
#: a module needs. Files of a copy never change, so what runs from one runs from one release.
FOLDER = "/usr/lib/hetero"
PACKAGE = "hetero"
#: Of module_utils, the file that runs a module from the copy that it is in.
CALL = f"{PACKAGE}/module_utils/_hetero/nodes/call.py"
#: Words of a person who asks what a command does; everybody may ask.
ASKS = ("--help", "-h", "help")
#: -I: neither the user's environment nor the current folder says what is imported.
SCRIPT = """\
#!/usr/bin/python3 -I
# Written by hetero.compute.node_tools.
import sys

sys.path.insert(0, {folder!r})
from {package}.module_utils._hetero.{file} import main
from {package}.module_utils._hetero.nodes.tools import start

sys.exit(start({name!r}, main, sys.argv[1:]))
"""


def name_of(code: Mapping[str, bytes]) -> str:
    """Return the name of a copy: 16 hexadecimal digits of a hash over all that is in it.

    :param code: {path below the copy: bytes}.
    """
    whole = hashlib.sha256()
    for path in sorted(code):
        whole.update(f"{path} {len(code[path])}\n".encode())
        whole.update(code[path])
    return whole.hexdigest()[:16]


def start(name: str, main: Callable[[Sequence[str]], int], arguments: Sequence[str]) -> int:
    """Run a command and return its exit code; an error is one line.

    An account that may not read the node's files is refused: to the commands they would look as if they were missing.
    """
    try:
        if os.geteuid() != 0 and not any(word in ASKS for word in arguments):
            raise Refused("needs root, as others may not read what a node keeps", remedy="run it as root")
        return main(arguments)
    except HeteroError as error:
        sys.stderr.write(f"{name}: {error}\n")
        return 1


def script(name: str, file: str, folder: str) -> str:
    """Return the text of a command, which runs `main` of one of module_utils' files (`nodes.hetero`).

    :param folder: the copy that it runs from.
    """
    return SCRIPT.format(folder=folder, package=PACKAGE, file=file, name=name)
