# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What this site's slots are, from the file that role slurm wrote.

A slot is a name of Slurm's, such as tp64-3: at most one instance of that name, of its pool's flavor, on whichever node
has room.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping

NAME = re.compile(r"([a-z0-9][a-z0-9-]*)-([1-9][0-9]{0,4})\Z")
AGAIN = "run ansible-playbook hetero.compute.slurm again"


class SiteError(Exception):
    """Something is wrong: what, where, and what to do, in one line."""


@dataclass(frozen=True)
class Pool:
    """Slots of one flavor.

    :param count: the highest number of a slot.
    :param new_root: whether each job finds a new root; else a node keeps its root as long as Slurm keeps the node.
    :param slurmd: whether its nodes run slurmd; else one on the controller stands in for each (stand_in.py).
    """

    name: str
    flavor: str
    count: int
    image: str = ""
    new_root: bool = True
    slurmd: bool = True

    @property
    def slots(self) -> list[str]:
        return [f"{self.name}-{number}" for number in range(1, self.count + 1)]


@dataclass(frozen=True)
class Site:
    """The file's settings.

    :param play: the first words of each play: ansible-playbook, the inventory, options that all plays get.
    :param environment: variables of each play, besides PATH and HOME.
    :param owner: whose the instances are, as the nodes have it. No other controller over these nodes has the same.
    :param keys: folder of users' public keys, USER.pub, for slots whose nodes do not run slurmd.
    :param new_root: partitions whose jobs find a new root each.
    :param resume_seconds: Slurm's ResumeTimeout. A play ends by then.
    """

    pools: Mapping[str, Pool]
    play: list[str]
    folder: str
    log: str
    owner: str = "slurm"
    user_data: str = ""
    keys: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    new_root: tuple[str, ...] = ()
    resume_seconds: float = 600.0
    suspend_seconds: float = 300.0
    slurm_conf: str = "/etc/slurm/slurm.conf"
    path: str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

    @classmethod
    def read(cls, path: str) -> Site:
        """Return the site that a file describes; raise SiteError where there is none."""
        try:
            with open(path, encoding="utf-8") as file:
                data: dict[str, Any] = json.load(file)
            pools = {one["name"]: Pool(**one) for one in data.pop("pools")}
            return cls(pools=pools, **dict(data, new_root=tuple(data.get("new_root", ()))))
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise SiteError(f"{path} cannot be read ({error}): {AGAIN}") from error

    def slot(self, name: str) -> tuple[Pool, int]:
        """Return (pool, number) of a slot; raise SiteError where this site has none of that name."""
        found = NAME.match(name)
        pool = self.pools.get(found[1]) if found else None
        if found is None or pool is None or int(found[2]) > pool.count:
            raise SiteError(f"{name} is no slot of this site: {AGAIN}")
        return pool, int(found[2])

    def known(self, names: Iterable[str]) -> tuple[list[str], list[str]]:
        """Return (slots of this site, other names)."""
        slots: list[str] = []
        others: list[str] = []
        for name in names:
            try:
                self.slot(name)
            except SiteError:
                others.append(name)
            else:
                slots.append(name)
        return slots, others

    def by_pool(self, names: Iterable[str]) -> dict[str, list[int]]:
        """Return {pool: numbers of its slots}."""
        found: dict[str, list[int]] = {}
        for name in names:
            pool, number = self.slot(name)
            found.setdefault(pool.name, []).append(number)
        return {pool: sorted(numbers) for pool, numbers in found.items()}
