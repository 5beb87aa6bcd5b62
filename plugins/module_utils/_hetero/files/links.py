# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A link that a person has put in the place of somebody's data, say to move them to a bigger disk.

By the link no mount of them is found, and a removal takes the link and leaves them, or takes what may be another's.
"""

from __future__ import annotations

import os
import shlex
import stat

from ..core.errors import Refused
from .mounts import copy_line

LINK = "is a link to {to}, and what belongs here has to lie here itself"
DEVICE = "is a block device, and what belongs here has to lie here in a file"
#: The link, which alone says where the data are, goes once the copy is whole; and nothing else does.
IN_PLACE = (
    "nothing is touched: stop the instance, unmount what is mounted below {to}, and copy that beside the link "
    "({copy}); once that has ended without an error, put the copy in the place of the link ({put}); then run this "
    "again. What lies at {to} stays as it is, for a person to remove; where that is something else, remove the link "
    "alone"
)
PUT = "mv -T {new} {path}"
#: rename(2) puts no folder in the place of a link. A second time, rm removes no folder.
PUT_FOLDER = "test -d {new} && rm -f {path} && mv -T {new} {path}"
#: Of a device, such as a logical volume: moved or removed is only its node, and the data stay.
COPY = (
    "nothing is touched: stop the instance, and put a copy of what is on the device in its place (umask 077 && cp "
    "--sparse=always {to} {new} && mv -T {new} {path}); then run this again. What is on the device stays there"
)
#: Of what another instance has as well: whose it is, only a person can say.
OTHERS = (
    "nothing is touched: that lies in {other}, or a link there leads to it as well: see whose it is: where it is that "
    "one's, remove the link alone (rm {path}), which removes no data; where it is this one's, stop both, put it in the "
    "place of the link, and that one's own where it belongs; then run this again"
)
AWAY = (
    "nothing is touched: no file or folder is there now, and only the link says where the data are: mount what holds "
    "it, or put it back; then run this again; where they are gone for good, remove the link"
)


def must_be_no_link(folder: str, *parts: str) -> None:
    """Raise Refused where a link, or a block device, lies at a path at which somebody's folder or file is to be.

    :param folder: an instance's; beside it lie those of the others.
    :param parts: paths in it.
    """
    for path in (folder, *parts):
        to = os.path.realpath(path)
        is_device = os.path.exists(to) and stat.S_ISBLK(os.stat(to).st_mode)
        if is_device or os.path.islink(path):
            way = IN_PLACE if os.path.isfile(to) or os.path.isdir(to) else AWAY
            other = _who_has_it_too(folder, os.path.relpath(path, folder), to)
            way = OTHERS if other else COPY if is_device else way
            what = LINK.format(to=to) if os.path.islink(path) else DEVICE
            raise Refused(what, path, way.format(other=other, **_words(to, path)))


def _words(to: str, path: str) -> dict[str, str]:
    """Return what the printed ways are made of."""
    words = {"to": shlex.quote(to), "path": shlex.quote(path), "new": shlex.quote(f"{path}.new")}
    put = (PUT_FOLDER if os.path.isdir(to) else PUT).format(**words)
    return dict(words, copy=copy_line(to, f"{path}.new"), put=put)


def _who_has_it_too(folder: str, part: str, to: str) -> str | None:
    """Return the folder of another instance in which something lies, or out of which a link leads to it, or None.

    :param part: the path, in a folder, of what is to lie there.
    """
    place, name = os.path.realpath(os.path.dirname(folder)), os.path.basename(folder)
    for other in sorted(os.listdir(place)):
        path = os.path.join(place, other)
        has = os.path.realpath(os.path.join(path, part))
        if other != name and (_is_in(to, path) or _is_in(to, has) or _is_in(has, to)):
            return path
    return place if _is_in(place, to) else None


def _is_in(path: str, folder: str) -> bool:
    return os.path.commonpath((path, folder)) == folder
