# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a person may have done to a root's folder: put a link in its place, or laid something else into it.

Through a link no mount of a root is found, and a removal takes the link and leaves what it leads to. What else lies in
the folder may be another's root, and would go with this one.
"""

from __future__ import annotations

import os
from typing import Container

from ..core.errors import Refused

LINK = "is a link to {to}, by which a root is neither mounted nor removed"
IN_PLACE = (
    "nothing is touched: unmount what is mounted below {to} and move that to where the link is, or remove the link "
    "where that is none of this board's; then run this again"
)
BESIDE = "holds {names}, which is no part of a root and would go with it"
ASIDE = "it is not removed: put that where it belongs, or anywhere out of the roots' folders; then run this again"


def must_be_no_link(path: str) -> None:
    """Raise Refused where a link lies at a path at which a root's folder or file is to be."""
    if os.path.islink(path):
        to = os.path.realpath(path)
        raise Refused(LINK.format(to=to), path, IN_PLACE.format(to=to))


def must_hold_only(folder: str, parts: Container[str], scratch: str) -> None:
    """Raise Refused where anything else than a root's own parts lies in its folder.

    :param scratch: what names of files begin with that a killed writer leaves.
    """
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    others = [name for name in names if name not in parts and not name.startswith(scratch)]
    if others:
        raise Refused(BESIDE.format(names=" and ".join(others)), folder, ASIDE)
