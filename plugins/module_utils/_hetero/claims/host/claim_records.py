# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a claim on a compute host is, and the file that holds it once more, for when the database is lost or older.

The files are NAME.json in a folder beside the database that has its name: /var/lib/hetero/host.claims. claim_copies.py
keeps them together with the database.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass
from typing import Any

from ...core.errors import HeteroError, naming
from ...core.json_file import read_text
from .. import record_files
from ..record_files import LARGEST, NONE, NUMBER, TEXT, must_be_named, of_other_types

NAME = re.compile(r"([a-z0-9][a-z0-9-]*)\.json")
LOOK = "correct it, or bring it back"


@dataclass(frozen=True)
class Claim:
    """A part of this host that is given to an instance of an owner.

    :param container: key of its container (hypervisors/lxc/identity.py); None until it has one.
    :param first_id: the first of the host's user ids that belong to its container; None for a guest, a privileged
        container, and a container of an earlier release, whose configuration has it.
    :param mover: which run of playbook migrate_instance moves it, or did last (compute_host/move_step.py); None of one
        that never moved, or was moved by an earlier release.
    :param departure: of one that leaves, what no other time has at which it was switched off for a move; of one that
        came here by a move, that of the root of which its own was copied. None of all others.
    """

    instance: str
    request: str
    owner: str
    kind: str
    flavor: dict[str, Any]
    image: str
    ssh_public_key: str
    memory_mb: int
    vcpus: int
    local_gb: int
    state: str
    since: float
    note: str
    created: float
    expires: float | None = None
    container: str | None = None
    address: str | None = None
    host_key: str | None = None
    image_hash: str | None = None
    first_id: int | None = None
    mover: str | None = None
    departure: str | None = None

    @property
    def holder(self) -> str:
        """The holder of its GPUs: its container, or its name until it has one."""
        return self.container or holder_of(self.instance)

    def is_same(self, other: Claim | None) -> bool:
        """Return whether both are one claim, whatever fields were changed since; a name may be claimed again later."""
        return other is not None and (self.instance, self.created) == (other.instance, other.created)


@dataclass(frozen=True)
class Arrival:
    """What an instance that moves here has on the host that it comes from.

    :param created, expires: of its claim, which stay.
    :param note: of the new claim.
    :param gpu_arch: of all its GPUs; None without any.
    :param first_id: the first of the ids of its container's files; None where these are not shifted.
    :param mover: which run of playbook migrate_instance moves it.
    """

    created: float
    expires: float | None
    note: str
    gpu_arch: str | None = None
    first_id: int | None = None
    mover: str | None = None


#: {field of a claim: the types that it may have}.
TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("instance", "request", "owner", "kind", "image", "ssh_public_key", "state", "note"), TEXT),
    **dict.fromkeys(("container", "address", "host_key", "image_hash", "mover", "departure"), TEXT + NONE),
    **dict.fromkeys(("memory_mb", "vcpus", "local_gb"), (int,)),
    **dict.fromkeys(("since", "created"), NUMBER),
    "flavor": (dict,),
    "expires": NUMBER + NONE,
    "first_id": (int, type(None)),
}


class ClaimRecords:
    """The files of all claims of a host, which only root may read."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def path(self, instance: str) -> str:
        """Return the path of an instance's file, whether it exists or not."""
        return os.path.join(self.folder, f"{instance}.json")

    def instances(self) -> list[str]:
        """Return the names of the instances of which there is a file."""
        with naming(self.folder):
            names = os.listdir(self.folder) if os.path.isdir(self.folder) else []
        return sorted(found[1] for found in map(NAME.fullmatch, names) if found)

    def read(self, instance: str) -> Claim | None:
        """Return what an instance's file says, or None where there is none.

        :raises HeteroError: the file is no record, is damaged, or is another instance's.
        """
        path = self.path(instance)
        try:
            claim = Claim(**json.loads(read_text(path, LARGEST)))
            wrong = of_other_types(vars(claim), TYPES)
            if wrong:
                raise ValueError(", ".join(wrong))
            must_be_named(claim.instance, claim.request, claim.owner, claim.image)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, OverflowError, RecursionError, HeteroError) as error:
            raise HeteroError("what it says of a claim cannot be read", path, LOOK) from error
        if claim.instance != instance:
            raise HeteroError(f"that is a record of {claim.instance}, not of {instance}", path, LOOK)
        return claim

    def write(self, claim: Claim) -> None:
        """Write the file of a claim's instance, whole or not at all."""
        record_files.write(self.path(claim.instance), asdict(claim))

    def remove(self, instance: str) -> None:
        """Remove an instance's file, for good, and what writers of it that were killed have left."""
        record_files.remove(self.path(instance))


def holder_of(instance: str) -> str:
    """Return the holder of GPUs for an instance without container. A container's key begins with a /."""
    return f"instance:{instance}"
