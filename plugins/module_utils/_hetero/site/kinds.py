# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds of instances, and what each is called in all places. A new kind is one line here.

instances/kinds/registry.py knows which code does a kind's verbs.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """What an instance runs in.

    :param name: its name in requests (option `kind` of module instance).
    :param several: its plural in texts for people.
    :param nodes: what the scheduler's answers call the machines that have instances of this kind.
    :param row: what column KIND of the status table says of such a machine.
    :param group: the inventory's group of such machines.
    :param option: the option of module instance that only this kind has, or None.
    :param hypervisor: its word in a flavor's `hypervisor`; None for the kind that flavors without that word mean.
    :param section: its section in host.json, and its kind in a host's claims; None for a kind that is on no host.
    :param disks: the setting in that section with the folder of its instances' disks.
    """

    name: str
    several: str
    nodes: str
    row: str
    group: str
    option: str | None = None
    hypervisor: str | None = None
    section: str | None = None
    disks: str = ""


BOARD = Kind("board", "boards", "boards", "board", "proxies", option="board")
CONTAINER = Kind("container", "containers", "GPU hosts", "gpu", "hypervisor_lxc", None, "LXC", "lxc", "lxcpath")
GUEST = Kind("guest", "guests", "KVM hosts", "kvm", "hypervisor_kvm", "devices", "KVM", "kvm", "guests_folder")

#: All kinds by name.
KINDS = {kind.name: kind for kind in (BOARD, CONTAINER, GUEST)}
#: The kinds of compute hosts by their section.
OF_HOSTS = {kind.section: kind for kind in KINDS.values() if kind.section}
#: The sections of compute hosts by the names of their kinds in requests.
SECTIONS = {kind.name: section for section, kind in OF_HOSTS.items()}
#: The kinds of compute hosts by their word in a flavor.
BY_HYPERVISOR = {kind.hypervisor: kind for kind in OF_HOSTS.values() if kind.hypervisor}
#: What nodes of a kind are called in texts → the name of an instance's kind there.
INSTANCES = {kind.nodes: kind.name for kind in KINDS.values()}
