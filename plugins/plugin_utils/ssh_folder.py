# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why no files for `ssh -F` can be written into a folder of the controller."""

from __future__ import annotations

import os
from typing import Any, Sequence

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import brief
from ansible_collections.hetero.compute.plugins.plugin_utils.folders_of_others import of_others
from ansible_collections.hetero.compute.plugins.plugin_utils.ways_in import is_ours, read

ANOTHER = "or set another hetero_ssh_folder"


def ssh_folder(folder: Any, names: Sequence[str] = ()) -> str:
    """Return what is wrong with a folder for the instances' files; "" if nothing is, or there is to be none.

    :param folder: as the user gives it: ~ and variables of the environment count.
    :param names: of the instances whose files are to be written.
    """
    if folder is None or folder == "":
        return ""
    if not isinstance(folder, str):
        return f"hetero_ssh_folder is {brief(str(folder), 60)}: give the name of a folder"
    path = os.path.abspath(os.path.expanduser(os.path.expandvars(folder)))
    there = path
    while not os.path.lexists(there) and os.path.dirname(there) != there:
        there = os.path.dirname(there)
    whose = f"hetero_ssh_folder is {folder}"
    if not os.path.isdir(there):
        return f"{whose}, and {there} is no folder: move it away, {ANOTHER}"
    if not os.access(there, os.W_OK | os.X_OK):
        return f"{whose}, and {there} cannot be written to: make it writable, {ANOTHER}"
    others = of_others(path)
    if others:
        return f"{whose}, {others}, and ssh would do what others put there: make it yours alone, {ANOTHER}"
    if there == path:
        return "; ".join(filter(None, (_taken(os.path.join(path, name), name) for name in names)))
    return ""


def _taken(path: str, name: str) -> str:
    """Return why a file cannot be written over; "" where it can be."""
    try:
        text = read(path)
    except OSError as error:
        return f"{path}: {error.strerror}: move it away, {ANOTHER}"
    return "" if text is None or is_ours(text, name) else f"{path} is no file of an instance: move it away, {ANOTHER}"
