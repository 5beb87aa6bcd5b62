# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A user's data for cloud-init, as the seed of its data source NoCloud in a root that is being made.

It may hold secrets: it is in the root (of one on a board's own disk, in own.tar too), for root alone to read, and in no
record, event or message. An instance gets it when its root is made, because cloud-init reads a seed at an instance's
first boot only.
"""

from __future__ import annotations

import os
import re
import stat
import uuid
from typing import TYPE_CHECKING

from ..core.deadline import Deadline
from ..core.errors import BadInput
from ..files.root_work import above, inside, make_folder, read_file, remove_file, write_file
from ..images.image_root import look_into
from .machine_identity import FILES_TIME

if TYPE_CHECKING:
    from ..images.proxy_node import StoredImage

#: Most bytes; EC2 takes 16 KiB, OpenStack 64 KiB.
MOST = 1 << 16
#: How data for cloud-init begin, of those kinds that are taken: its own YAML, a script, or several parts as MIME.
BEGINNINGS = re.compile(r"#cloud-config\b|#!|(?i:content-type:|mime-version:)")
#: Where NoCloud looks for a seed (cloud-init, DataSourceNoCloud.py).
SEED = "/var/lib/cloud/seed/nocloud"
USER_DATA, META_DATA = f"{SEED}/user-data", f"{SEED}/meta-data"
SETTINGS = "/etc/cloud/cloud.cfg.d/99-hetero.cfg"
#: How the settings begin, and all of them. Host key, host name and network are the node's; and no data source is looked
#: for in a network.
OURS = "# Written by hetero.compute, because its instance was given user_data."
KEPT = f"""\
{OURS} Host key, name and network are not cloud-init's.
datasource_list: [NoCloud, None]
network: {{config: disabled}}
ssh_deletekeys: false
ssh_genkeytypes: []
disable_root: false
preserve_hostname: true
"""
PROGRAMS = ("/usr/bin/cloud-init", "/bin/cloud-init", "/usr/local/bin/cloud-init")
THING = "user_data"
#: What is said of user_data that came too late.
SEEDED = "user_data is not given to a root that is there: a rebuild with it makes a new one"
#: What is said of those of a request before, where this one has none.
LEFT = "user_data of an earlier request stay in its root, which had power: a rebuild (fresh=true) ends them"


def must_be_user_data(text: str) -> None:
    """Raise BadInput where this is nothing that cloud-init takes. No error has a word of it."""
    size = len(text.encode("utf-8", "surrogateescape"))
    if size > MOST:
        raise BadInput(f"has {size} bytes", THING, f"give at most {MOST}; let it fetch the rest")
    if not BEGINNINGS.match(text):
        begin = "begin it with #cloud-config, with #! (a script), or with a MIME header (Content-Type:, MIME-Version:)"
        raise BadInput("does not begin as data for cloud-init do", THING, begin)
    if "\0" in text:
        raise BadInput("is no text", THING, "give text in UTF-8")


def must_have_cloud_init(image: StoredImage) -> None:
    """Raise BadInput where an image has no cloud-init, which alone does what user_data says."""

    def look() -> bool:
        return any(os.path.lexists(name) for name in PROGRAMS)

    if not look_into(image, look, Deadline(FILES_TIME)):
        remedy = "leave user_data out, or ask for an image with package cloud-init"
        raise BadInput("has no cloud-init, which user_data is for", f"image {image.name}", remedy)


def files(text: str, hostname: str) -> dict[str, tuple[str, int]]:
    """Return {path in a root: (text, mode)} of the seed, with an instance id that no root had before."""
    meta = f"instance-id: {uuid.uuid4()}\nlocal-hostname: {hostname}\n"
    return {SETTINGS: (KEPT, 0o644), META_DATA: (meta, 0o600), USER_DATA: (text, 0o600)}


def put_seed(path: str, text: str, hostname: str) -> None:
    """Put the seed into a fresh root.

    :param path: where the root is mounted.
    """
    wanted = files(text, hostname)

    def write() -> None:
        for folder in (*above(USER_DATA), *above(SETTINGS)):
            make_folder(folder, 0o700 if folder == SEED else 0o755, exact=folder == SEED)
        for name, (content, mode) in wanted.items():
            write_file(name, content, mode)

    inside(path, write, Deadline(FILES_TIME))


def has_seed(path: str, text: str) -> bool:
    """Return whether the seed in a root is this one."""
    return bool(inside(path, lambda: read_file(USER_DATA) == text, Deadline(FILES_TIME)))


def is_left(path: str, image: StoredImage) -> bool:
    """Return whether a root has data that a request gave it: they were written here, and are not its image's."""
    there = inside(path, _seed, Deadline(FILES_TIME))
    settings = there[SETTINGS]
    if settings is None or not settings[0].startswith(OURS):
        return False
    return bool(there != look_into(image, _seed, Deadline(FILES_TIME)))


def take_out(path: str, image: StoredImage) -> None:
    """Have in a root what its image has in place of what a request gave it."""
    images = look_into(image, _seed, Deadline(FILES_TIME))

    def write() -> None:
        for name in (USER_DATA, META_DATA, SETTINGS):  # the settings last, by which the rest is known
            if images[name]:
                write_file(name, *images[name])
            else:
                remove_file(name)

    inside(path, write, Deadline(FILES_TIME))


def _seed() -> dict[str, tuple[str, int] | None]:
    """Return {path: (text, mode), or None} of the seed, from a process whose root directory is the root."""
    texts = {name: read_file(name) for name in (SETTINGS, META_DATA, USER_DATA)}
    modes = {name: stat.S_IMODE(os.stat(name).st_mode) for name, text in texts.items() if text is not None}
    return {name: None if text is None else (text, modes[name]) for name, text in texts.items()}
