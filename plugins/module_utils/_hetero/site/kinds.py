# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds of instances there are, and what each is called wherever one is named: one line here for a new one.

Who does a kind's verbs is known to instances/kinds/registry.py.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """What an instance runs in.

    :param name: as requests name it: option `kind` of module instance.
    :param several: of more than one, in what people read.
    :param nodes: what the machines are called that have some, in answers of the scheduler.
    :param row: what such a node is called in column KIND of the status table.
    :param option: the option of module instance that it alone has; None where there is none.
    :param hypervisor: the word for it in a flavor's `hypervisor`; None of a kind that flavors mean which name none.
    :param section: its section of host.json, and its kind in a host's claims; None of one that is on no host.
    :param disks: the setting in that section that says where its instances have their disks.
    """

    name: str
    several: str
    nodes: str
    row: str
    option: str | None = None
    hypervisor: str | None = None
    section: str | None = None
    disks: str = ""


BOARD = Kind("board", "boards", "boards", "board", option="board")
CONTAINER = Kind("container", "containers", "GPU hosts", "gpu", None, "LXC", "lxc", "lxcpath")
GUEST = Kind("guest", "guests", "KVM hosts", "kvm", "devices", "KVM", "kvm", "guests_folder")

#: All of them, by name.
KINDS = {kind.name: kind for kind in (BOARD, CONTAINER, GUEST)}
#: Those of compute hosts, by their section.
OF_HOSTS = {kind.section: kind for kind in KINDS.values() if kind.section}
#: The same, by the word of a flavor.
BY_HYPERVISOR = {kind.hypervisor: kind for kind in OF_HOSTS.values() if kind.hypervisor}
