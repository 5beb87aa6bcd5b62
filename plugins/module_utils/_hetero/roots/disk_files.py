# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the proxy keeps of a root that lies on a board's own disk: whose it is, its keys, whether it is there.

Making it is disk_root.py's, bringing it to the disk boards/disk/disk_boot.py's.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from ..core.errors import Refused, naming
from ..files.links import must_be_no_link
from ..files.plain_file import read_at
from ..files.removal import remove_tree
from ..files.whole_file import write_whole
from .cloud_init import USER_DATA
from .key_pairs import without_comment
from .machine_identity import HOST_KEY
from .root_folder import must_hold_only

if TYPE_CHECKING:
    from .proxy_node import RootClaim

#: The files of a root on a disk.
MADE, OWN = "made.json", "own.tar"
#: Most bytes of made.json.
MOST = 1 << 16
ANOTHERS = "is not the archive that made.json beside it was written for, and may be another instance's"
PUT_BACK = (
    "it is not removed: put each own.tar back in its own place (sha256sum; own_sha256 in made.json), or this one "
    "anywhere out of these folders; then run this again"
)
#: How a name in own.tar ends; the folders above may be others, to which links of the image lead.
USER_DATA_IN = f"/{os.path.basename(USER_DATA)}"


@dataclass(frozen=True)
class Made:
    """What made.json says of a root on a disk: the claim that the root was made for, and the image it was made from.

    :param own_sha256: SHA-256 of own.tar, which holds the files that this instance has beside its image's.
    :param unpacked: unix time when the root was seen whole on the disk; None before.
    :param sure: False where the disk is to be looked at again before the board boots from it.
    """

    claim: str
    image: str
    own_sha256: str
    host_key: str
    unpacked: float | None = None
    sure: bool = False


class DiskFiles:
    """The files <state>/disks/fs_N/{made.json, own.tar}. Only root may read them: own.tar holds a private host key."""

    def __init__(self, folder: str, number: int) -> None:
        self.folder = os.path.join(folder, f"fs_{number}")
        self.own = os.path.join(self.folder, OWN)

    def exists(self) -> bool:
        return os.path.lexists(self.folder)

    def made(self) -> Made | None:
        """Return what made.json says; None where the file is missing or cannot be read."""
        try:
            made = Made(**json.loads(read_at(os.path.join(self.folder, MADE), MOST)))
        except (OSError, ValueError, TypeError, RecursionError):
            return None
        texts = (made.claim, made.image, made.own_sha256, made.host_key)
        return made if all(isinstance(text, str) for text in texts) else None

    def remade(self, token: str, claim: RootClaim) -> Made | None:
        """Return a lost made.json anew, from own.tar and its claim; None where their host keys differ.

        This does not prove that the root is on the disk. The board must be looked at, and its disk is not written anew.

        :param token: the text by which made.json names the claim (made_json.token_of).
        """
        try:
            with open(self.own, "rb") as file:
                own = file.read()
            with tarfile.open(fileobj=io.BytesIO(own)) as tar:
                # Its folder may be another one, to which a link of the image leads.
                named = [name for name in tar.getnames() if name.endswith(f"/{os.path.basename(HOST_KEY)}.pub")]
                public = tar.extractfile(named[0]) if named else None
                host_key = without_comment(public.read().decode()) if public else ""
        except (OSError, ValueError, KeyError, tarfile.TarError):
            return None
        if not claim.image_hash or host_key != claim.host_key:
            return None
        digest = hashlib.sha256(own).hexdigest()
        return Made(token, claim.image_hash, digest, host_key, unpacked=claim.created)

    def user_data(self) -> str | None:
        """Return the data for cloud-init in own.tar, empty where it has none; None where own.tar cannot be read."""
        try:
            with tarfile.open(self.own) as tar:
                named = [name for name in tar.getnames() if name.endswith(USER_DATA_IN)]
                file = tar.extractfile(named[0]) if named else None
                return file.read().decode("utf-8", "surrogateescape") if file else ""
        except (OSError, tarfile.TarError):
            return None

    def create(self, own: bytes, made: Made) -> None:
        """Make the folder anew from the bytes of own.tar; write made.json last."""
        self.remove()
        os.makedirs(self.folder, mode=0o700)
        write_whole(self.own, own, 0o600)
        self.write(made)

    def mark(self, **fields: Any) -> None:
        """Change fields of made.json."""
        self.write(replace(cast(Made, self.made()), **fields))

    def must_be_removable(self) -> None:
        """Raise Refused where a removal would leave what a link leads to, or take what may be another instance's."""
        must_be_no_link(self.folder, self.own)
        must_hold_only(self.folder, (MADE, OWN))
        made = self.made()
        if made and os.path.exists(self.own):
            with naming(self.own), open(self.own, "rb") as file:
                if hashlib.sha256(file.read()).hexdigest() != made.own_sha256:
                    raise Refused(ANOTHERS, self.own, PUT_BACK)

    def remove(self) -> None:
        self.must_be_removable()
        remove_tree(self.folder)

    def write(self, made: Made) -> None:
        """Write made.json."""
        write_whole(os.path.join(self.folder, MADE), json.dumps(asdict(made)), 0o600)
