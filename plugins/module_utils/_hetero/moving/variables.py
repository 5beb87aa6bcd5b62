# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which file of variables Ansible reads of a host or group: of a folder and files of one name the first alone."""

from __future__ import annotations

import os

from ..core.errors import BadInput

#: How folders and files of variables end behind the name of their host, in the order in which Ansible looks.
ENDINGS = ("", ".yml", ".yaml", ".json")
#: Where variables are that people write themselves.
OWN = "group_vars/proxies.yml"
#: Folders in which each name is that of a host or group.
FOLDERS = ("host_vars", "group_vars")


def of(folder: str, name: str) -> list[str]:
    """Return what is there of a host's or group's variables, what Ansible reads first."""
    return [path for path in (os.path.join(folder, name + end) for end in ENDINGS) if os.path.exists(path)]


def of_all_proxies(folder: str) -> str:
    """Return the file below an inventory's folder to which variables of all proxy nodes are added, one that is read."""
    path = (of(os.path.join(folder, "group_vars"), "proxies") or [os.path.join(folder, OWN)])[0]
    return os.path.relpath(os.path.join(path, "secrets.yml") if os.path.isdir(path) else path, folder)


def must_be_read(path: str) -> None:
    """Raise BadInput where Ansible would not read a new file beside what is there, or would no longer read that."""
    parts = path.split(os.sep)
    places = [at for at, part in enumerate(parts[:-1]) if part in FOLDERS]
    if not places:
        return
    folder, own = os.sep.join(parts[: places[-1] + 1]), parts[places[-1] + 1]
    is_file = places[-1] + 2 == len(parts)
    name = os.path.splitext(own)[0] if is_file and os.path.splitext(own)[1] in ENDINGS else own
    there = [other for other in of(folder, name) if other != os.path.join(folder, own)]
    if there:
        order = [os.path.join(folder, name + end) for end in ENDINGS]
        hides = order.index(os.path.join(folder, own)) < order.index(there[0])
        what = f"would keep Ansible from reading {there[0]}" if hides else f"would not be read beside {there[0]}"
        raise BadInput(what, path, f"name a file outside {parts[places[-1]]}, such as wiring.yml")
