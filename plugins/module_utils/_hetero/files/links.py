# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A link that a person has put in the place of somebody's data, say to move them to a bigger disk.

By the link no mount of them is found, and a removal takes the link and leaves them, or takes what may be another's.
"""

from __future__ import annotations

import os

from ..core.errors import Refused

LINK = "is a link to {to}, and what belongs here has to lie here itself"
IN_PLACE = (
    "nothing is touched: stop the instance, unmount what is mounted below {to}, and put that in the place of the link "
    "(rm {path} && mv {to} {path}); where that is something else, remove the link alone; then run this again"
)


def must_be_no_link(*paths: str) -> None:
    """Raise Refused where a link lies at a path at which somebody's folder or file is to be."""
    for path in paths:
        if os.path.islink(path):
            to = os.path.realpath(path)
            raise Refused(LINK.format(to=to), path, IN_PLACE.format(to=to, path=path))
