# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The image store of this node, a proxy or a compute host: list, import, remove, and collect what nobody uses.

The room images/ knows what an image is, and which sources are refused.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ..boards.records import lost_database
from ..boards.records.claim_records import FOLDER, ClaimRecords
from ..boards.records.store import Store as BoardStore
from ..claims.host import config as host
from ..claims.host.store import Store as HostStore
from ..compute_host.lost_database import must_not_be_lost
from ..core.changes import Change
from ..core.deadline import Deadline
from ..core.errors import BadInput, Refused
from ..core.lines import line
from ..core.plays import play
from ..images.forms import Machine
from ..images.image_removal import collect, foreign, listed, remove
from ..images.kernel_names import DEFAULT, shown
from ..images.store import ImageStore
from ..roots.disk_root import ARCHIVES
from ..roots.ownership import forgotten, unread_roots
from ..site import proxy_config as proxy
from ..site.image_names import valid_image

if TYPE_CHECKING:
    from ..images.proxy_node import ImageClaim

UNREAD = f"nothing is collected: {play('reconcile')} says whose it is, and how it is mended"
#: The word before a line, where other verbs have an instance's name.
WHO = "image"


class Node:
    """An image store with the claims on it; a context manager.

    :param kind: proxy or host.
    :param path: its configuration; none for where the role writes it.
    :param defaults: names that the inventory has requests take.
    """

    def __init__(self, kind: str, path: str | None, defaults: list[str]) -> None:
        config: proxy.ProxyConfig | host.HostConfig
        closed: list[str]
        if kind == "proxy":
            config = proxy.read_config(path or proxy.CONFIG)
            closed = proxy.tenants_paths(config)
            self.needed = {name: f"RAM image of {arch}" for arch, name in config.ram_images.items()}
        else:
            config = host.read_config(path or host.CONFIG)
            closed = host.tenants_paths(config)
            must_not_be_lost(config)
            usual = [config.section(offered).default_image for offered in config.offers]
            self.needed = {name: "default" for name in usual if name}
        self.needed.update(dict.fromkeys(defaults, "default"))
        self.state_folder = config.state_folder
        # A machine may be both, and then has one store of images.
        self.boards = BoardStore(f"{config.state_folder}/state.db", create=False)
        self.hosts = HostStore(f"{config.state_folder}/host.db", create=False)
        self.images = ImageStore(f"{config.state_folder}/images", kind == "proxy", closed)

    def __enter__(self) -> Node:
        return self

    def __exit__(self, *exc: object) -> None:
        self.boards.close()
        self.hosts.close()

    def users(self) -> list[ImageClaim]:
        """Return the claims of boards and of the host, and who has a board's root or record of which an older database
        does not know.
        """
        claims = self.boards.claims()
        found: list[ImageClaim] = [*self.hosts.claims(), *claims, *forgotten(self.state_folder, claims)]
        known = {(one.instance, one.image_hash) for one in found}
        kept = [kept.claim for _path, kept in ClaimRecords(f"{self.state_folder}/{FOLDER}").readable()]
        return found + [claim for claim in kept if claim.image_hash and (claim.instance, claim.image_hash) not in known]

    def sure_users(self) -> list[ImageClaim]:
        """Return what `users` does; raise Refused where something of a proxy may have an image and does not say which.
        """
        records = ClaimRecords(f"{self.state_folder}/{FOLDER}")
        unread = [*records.unreadable(), *unread_roots(self.state_folder)]
        if unread:
            what = "cannot be read, and may be of an instance of which the database does not know"
            more = f" (so {len(unread) - 1} more)" if len(unread) > 1 else ""
            raise Refused(f"{what}{more}", unread[0], UNREAD)
        return self.users()

    def listed(self, name: str | None = None) -> list[dict[str, Any]]:
        """Return a row for each image, or for that of one name."""
        found = listed(self.images, self.users(), self.needed)
        return [row for row in found if name in (None, row["name"])]

    def take_in(self, asked: dict[str, Any], change: Change, deadline: Deadline) -> list[str]:
        """Import an image, and return what is to be said of it.

        :param asked: name, source, checksum, arch, kernel_of and replace.
        """
        name = valid_image(asked["name"])
        machine = Machine(asked["arch"], asked["kernel_of"])
        more = dict(checksum=asked["checksum"], machine=machine, replace=asked["replace"])
        before = self.images.names().get(name, "")
        with change.step("import"):
            image = self.images.import_image(asked["source"], name, change=change, deadline=deadline, **more)
        if not change.changed:
            return []
        [after] = [entry["after"]["hash"] for entry in change.diff]
        moves = before not in ("", after)
        if image is None or change.check:
            instead = f": it stands for {after[:12]} then, no more for {before[:12]}" if moves else ""
            return [f"{name} would be imported from {asked['source']}{instead}"]
        instead = f", no more {before[:12]}" if moves else ""
        return [f"{name} ({image.arch}) is in the store: sha256:{image.hash}{instead}"]

    def remove(self, name: str, change: Change, deadline: Deadline) -> list[str]:
        """Take an image out of the store, and return what is to be said of it."""
        with change.step("remove"):
            row = remove(self.images, name, self.users, self.needed, change, deadline)
        if row is None:
            return [f"there is no image {name} on {os.uname().nodename}"]
        return [f"{name} ({row['arch']}) {'would be removed' if change.check else 'removed'}"]

    def collect(self, change: Change, deadline: Deadline) -> tuple[list[str], int]:
        """Take out what no name and no root uses; return what is to be said of it, and the bytes that it took.

        :raises HeteroError: the database, which knows who uses what, is lost.
        """
        lost_database.must_not_be_lost(f"{self.state_folder}/state.db", self.state_folder)
        with change.step("collect"):
            rows = collect(self.images, self.sure_users, f"{self.state_folder}/{ARCHIVES}", change, deadline)
        done = "would be removed" if change.check else "removed"
        said = [f"{row['what']} {done}: {row['bytes'] / 1e6:.1f} MB" if "bytes" in row else row["what"] for row in rows]
        freed = sum(row.get("bytes", 0) for row in rows)
        total = f"{freed / 1e6:.1f} MB {'would be freed' if change.check else 'freed'} on {os.uname().nodename}"
        return [*said, total] if rows else [f"nothing to collect on {os.uname().nodename}"], freed


def as_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Return a table of images for people; the widths are those of usual names."""
    return [
        f"{row['name'] or 'no name':<24} {row['arch']:<10} {row['bytes'] / 1e6:>7.1f} MB  sha256:{row['hash']}  "
        f"{', '.join(_user(row, by) for by in row['used_by']) or 'used by nobody'}"
        f"{_kernels(row['kernels'])}"
        for row in rows
    ]


def _kernels(names: list[str]) -> str:
    """Return which kernels an image has, as text behind the rest; nothing for one that has one kernel for all."""
    return "" if set(names) <= {DEFAULT} else f"; kernels: {shown(names)}"


def _user(row: dict[str, Any], by: str) -> str:
    """Return who uses an image; if its name was given to another image since, with the one that they run."""
    return f"{by} (runs the older {row['older'][by][:12]})" if by in row["older"] else by


def work(params: dict[str, Any], check: bool) -> dict[str, Any]:
    """Do what module image_store is asked for, and return its result."""
    change, deadline = Change(check), Deadline(params["timeout"])
    name = params["name"]
    with Node(params["node"], params["config"], params["defaults"]) as node:
        said: list[str] = []
        freed = 0
        if params["state"] == "collected":
            said, freed = node.collect(change, deadline)
        elif params["state"] == "absent":
            said = node.remove(name, change, deadline)
        elif params["source"]:
            said = node.take_in(params, change, deadline)
        rows = node.listed()
        if name and params["state"] == "present" and not check and name not in [row["name"] for row in rows]:
            known = ", ".join(sorted(row["name"] for row in rows if row["name"])) or "none"
            raise BadInput(f"no such image in the store (known: {known})", name, "import it: give its source")
        lines = [line(WHO, "", "", text) for text in said]
        table = as_lines(rows) + [f"{path}: {what}" for path, what in foreign(node.images).items()]
        return dict(images=rows, lines=lines, table=table, freed=freed, **change.result)
