# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A request to a compute host for instances by flavor, and whether any host could serve it.

host_claims.py claims what is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..claims.servable import must_be_servable
from ..claims.tickets import must_be_asked, must_be_priority
from ..scheduling.compute_hosts import gpu_count
from ..scheduling.fit import describe
from ..site.instance import must_be_free_word, valid_instance
from ..site.owners import names_of

if TYPE_CHECKING:
    from ..claims.host.claim_records import Arrival

#: Most instances of one request; a larger number is taken for a mistake.
MOST = 500


@dataclass(frozen=True)
class ClaimRequest:
    """A request for instances: with `count` above 1 they are NAME-1 … NAME-N, a single one is NAME.

    :param kind: what they run in, a section of the configuration: "lxc" or "kvm".
    :param devices: addresses of the PCI devices that a guest is to get; none for any that fit.
    :param numbers: the numbers of the instances NAME-1 … NAME-N that this host is asked for; none for all.
    :param asked: since when it waits (unix seconds, as the controller gave it); None where it does not.
    :param priority: of its place among those that wait; the highest goes first.
    :param arrives: of an instance that moves here from another host.
    """

    request: str
    owner: str
    flavor: dict[str, Any]
    image: str
    ssh_public_key: str
    count: int = 1
    partial: bool = False
    lease_hours: float | None = None
    kind: str = "lxc"
    devices: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    asked: float | None = None
    priority: int = 0
    arrives: Arrival | None = None

    @property
    def instances(self) -> list[str]:
        return names_of(self.request, min(self.count, MOST), self.numbers)

    @property
    def wants(self) -> str:
        """Return the request in words, such as `ml-8 wants 2 cg1.xlarge (…)`."""
        many = "" if self.count == 1 else f"{len(self.instances)} "
        return f"{self.request} wants {many}{describe(self.flavor['name'], self.flavor)}"

    def check(self) -> None:
        """Raise BadInput if no host could serve this request."""
        for instance in [self.request, *self.instances]:
            must_be_free_word(valid_instance(instance))
        which_image = "name an image, or give the host one (default_image of its role)"
        must_be_priority(self.priority)
        must_be_asked(self.asked)
        must_be_servable(self, MOST, f"ask for 1 to {MOST}", which_image)
        gpu_count(self.flavor)
