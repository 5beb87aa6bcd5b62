# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the folder of guests is what it was when guests were made in it: its file system may not be mounted."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..core.errors import Refused
from ..core.plays import play
from ..site.instance_states import ENDING
from ..site.kinds import GUEST

if TYPE_CHECKING:
    from .host import Host

UNMOUNTED = "has no guests, and {name} was made in it: its file system may not be mounted"
WAY = (
    f"mount it, then run this again; where there is none, and nobody has {{name}} any more, "
    f"{play('rebuild_instance', instance='{name}', fresh='true')} makes a new one there"
)


def must_be_mounted(host: Host, instance: str) -> None:
    """Raise Refused if none of the others is in the folder of guests: a new one, of this name, might be covered by
    their file system.
    """
    others = (claim for claim in host.store.in_use() if claim.kind == GUEST.section and claim.instance != instance)
    made = [claim.instance for claim in others if claim.container and claim.state != ENDING]
    folder = host.config.kvm.guests_folder
    if made and not any(os.path.lexists(os.path.join(folder, name)) for name in made):
        raise Refused(UNMOUNTED.format(name=made[0]), folder, WAY.format(name=made[0]))
