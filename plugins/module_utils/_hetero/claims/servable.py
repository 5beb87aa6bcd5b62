# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a request for instances must say before anything is claimed for it, on a proxy node as on a compute host."""

from __future__ import annotations

import json
from typing import Any, Protocol

from ..core.errors import BadInput
from ..roots.machine_identity import must_be_keys
from ..scheduling.flavor_check import validate
from ..site.image_names import valid_image
from ..site.leases import must_be_hours
from ..site.owners import must_be_numbers, must_be_owner
from .record_files import MOST_OF_FLAVOR


class Request(Protocol):
    """What a request says, whatever kind of node it asks."""

    @property
    def owner(self) -> str: ...

    @property
    def flavor(self) -> dict[str, Any]: ...

    @property
    def image(self) -> str: ...

    @property
    def ssh_public_key(self) -> str: ...

    @property
    def count(self) -> int: ...

    @property
    def numbers(self) -> tuple[int, ...]: ...

    @property
    def lease_hours(self) -> float | None: ...


def must_be_servable(request: Request, most: int, how_many: str, which_image: str) -> None:
    """Raise BadInput where no node could serve a request.

    :param most: instances that a request may ask for.
    :param how_many, which_image: what to do where the count is none of 1 to `most`, and where no image is named.
    """
    must_be_owner(request.owner)
    if not request.image.strip():
        raise BadInput("is empty", "image", which_image)
    valid_image(request.image)
    validate(request.flavor)
    if not request.flavor.get("name"):
        raise BadInput("has no name", "flavor", "give it the key name, for people and for comparison")
    if len(json.dumps(request.flavor)) > MOST_OF_FLAVOR:
        raise BadInput(f"has more than {MOST_OF_FLAVOR} letters", "flavor", "say it in fewer")
    must_be_keys(request.ssh_public_key)
    if not 1 <= request.count <= most:
        raise BadInput(f"is {request.count}", "count", how_many)
    must_be_numbers(request.numbers, request.count)
    if request.lease_hours is not None:
        must_be_hours(request.lease_hours, "lease_hours", endless=True)
