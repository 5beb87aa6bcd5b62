# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Four GPUs of a host and what the kernel says of them, as allocation reads it; racers import what they need only."""

from __future__ import annotations

from dataclasses import dataclass

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFirst alice@laptop"
HOST = {"memory_mb": 40000, "vcpus": 64, "local_gb": 1000}
C1, C2, C3 = (f"/var/lib/lxc/c{number}#id{number}" for number in (1, 2, 3))


@dataclass(frozen=True)
class Gpu:
    """What allocation reads of a GPU."""

    index: int
    numa_node: int = 0
    arch: str = "fermi"
    healthy: bool = True
    why_unhealthy: str | None = None
    unsupported: str | None = None
    nodes: tuple = ()

    @property
    def address(self):
        return f"0000:{self.index + 5:02x}:00.0"

    @property
    def uuid(self):
        return f"GPU-{self.index}"


@dataclass(frozen=True)
class Reach:
    holder: str
    address: str
    container: str = "stranger"
    why: str = "its device cgroup allows c 195:0"
    alone: bool = False


@dataclass(frozen=True)
class Seen:
    """What the kernel says: who can open what, and which containers there are."""

    reaches: tuple = ()
    there: tuple = (C1, C2, C3)
    running: tuple = ()

    def open(self, address):
        return [reach for reach in self.reaches if reach.address == address]

    def doubt(self, address, holder):
        return None

    def is_there(self, holder):
        return holder in self.there

    def runs(self, holder):
        return holder in self.running


FOUR = [Gpu(0), Gpu(1), Gpu(2, numa_node=1), Gpu(3, numa_node=1)]
