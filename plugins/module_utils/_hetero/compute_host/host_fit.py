# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a compute host could serve a request, whatever is free; which of its GPUs are free; and how much of it each
owner may have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..claims.owner_limits import OwnerLimits
from ..core.errors import BadInput
from ..scheduling.compute_hosts import rejections
from ..site.kinds import OF_HOSTS

if TYPE_CHECKING:
    from ..devices.gpus.discovery import Gpu
    from ..images.store import Image
    from .claim_request import ClaimRequest
    from .host import Host


def free_gpus(host: Host) -> list[Gpu]:
    """Return the GPUs that nobody has by the table."""
    taken = {row.address for row in host.store.allocations()}
    return [gpu for gpu in host.gpus if gpu.address not in taken and gpu.healthy and not gpu.unsupported]


def unfit(host: Host, request: ClaimRequest) -> list[str]:
    """Return why this host serves no such request, whatever is free."""
    hypervisor = OF_HOSTS[request.kind].hypervisor
    offers = [hypervisor] if hypervisor in host.hypervisors else host.hypervisors
    return rejections(request.flavor, dict(host.facts, hypervisors=offers)) + without_image(host, request.image)


def limits_of(host: Host) -> OwnerLimits:
    """Return how many instances, of all kinds together, each owner may have at once."""
    return OwnerLimits(host.config.owner_limits, host.store, host.name, "instance")


def without_image(host: Host, name: str) -> list[str]:
    """Return why instances of this image cannot be made here."""
    try:
        image = host.images.get(name)
    except BadInput as error:
        return [f"image {name}: {error.what}"]
    why = why_no_image(host, image)
    return [why] if why else []


def why_no_image(host: Host, image: Image) -> str | None:
    """Return in words why an image does not run on this host, or None."""
    if image.ram:
        return f"image {image.name} is a RAM image, which has no root: it is for boards"
    if image.arch != host.cpu_arch:
        return f"image {image.name} is for {image.arch}, this host is {host.cpu_arch}"
    return None
