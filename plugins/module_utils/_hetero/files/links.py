# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A link that a person has put in the place of somebody's data, say to move them to a bigger disk.

By the link no mount of them is found, and a removal takes the link and leaves them, or takes what may be another's.
"""

from __future__ import annotations

import os
import stat

from ..core.errors import Refused

LINK = "is a link to {to}, and what belongs here has to lie here itself"
DEVICE = "is a block device, and what belongs here has to lie here in a file"
IN_PLACE = (
    "nothing is touched: stop the instance, unmount what is mounted below {to}, and put that in the place of the link "
    "(rm {path} && mv {to} {path}); where that is something else, remove the link alone; then run this again"
)
#: Of a device, such as a logical volume: moved or removed is only its node, and the data stay.
COPY = (
    "nothing is touched: stop the instance, and put a copy of what is on the device in its place (umask 077 && cp "
    "--sparse=always {to} {path}.new && mv {path}.new {path}); then run this again. What is on the device stays there"
)
AWAY = (
    "nothing is touched: no file or folder is there now, and only the link says where the data are: mount what holds "
    "it, or put it back, then run this again; where they are gone for good, remove the link"
)


def must_be_no_link(*paths: str) -> None:
    """Raise Refused where a link, or a block device, lies at a path at which somebody's folder or file is to be."""
    for path in paths:
        to = os.path.realpath(path)
        is_device = os.path.exists(to) and stat.S_ISBLK(os.stat(to).st_mode)
        if is_device or os.path.islink(path):
            way = IN_PLACE if os.path.isfile(to) or os.path.isdir(to) else AWAY
            what = LINK.format(to=to) if os.path.islink(path) else DEVICE
            raise Refused(what, path, (COPY if is_device else way).format(to=to, path=path))
