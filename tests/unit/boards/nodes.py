# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy node in a folder, opened in the test's own process: real store, records and locks, a played PDU.

No root is mounted and no module started: what verbs make of it whole is in verbs/.
"""

from __future__ import annotations

import json
from dataclasses import asdict

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.proxy import Proxy
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import ClaimTerms
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.ownership import token_of
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.roots import Made
from ansible_collections.hetero.compute.tests.unit.images.nfs_server import put_busctl
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY

CPU = '{"vendor":"tilera","model":"TILEmpower","arch":"TILEPro64","features":["8x8Grid"],"topology":{"cores":"64"}}'
FLAVOR = {"name": "tp64.8x8", "memory_mb": 16384, "vcpus": 10, "cpu_arch": "tilepro64"}
HASH = "ab" * 32


class Node:
    """Files of a proxy with boards 0 …, board N at outlet N + 1 of pdu-a; nothing answers at their addresses."""

    def __init__(self, folder, boards=3):
        self.folder, self.state, self.run_folder = folder, folder / "state", folder / "run"
        (folder / "credentials.json").write_text("{}")
        (folder / "ganesha.json").write_text("{}")
        (folder / "bin").mkdir()
        put_busctl(folder / "bin", folder / "ganesha.json")
        self.outlets(**{f"board{number}": "off" for number in range(boards)})
        self.config = dict(
            server="10.0.2.254",
            tftp_root=str(folder / "tftpboot"),
            state_folder=str(self.state),
            run_folder=str(self.run_folder),
            roots_overcommit=10000,
            credentials=str(folder / "credentials.json"),
            pdus={"pdu-a": {"driver": "fake", "path": str(folder / "pdu-a.json")}},
            boards={
                str(number): {"pdu": "pdu-a", "outlet": str(number + 1), "driver": "fake"} for number in range(boards)
            },
        )
        self.name_boards(range(boards))
        self.params = dict(
            boards_file=str(folder / "tilera_boards"),
            config=str(folder / "proxy.json"),
            state_db=str(self.state / "state.db"),
        )

    def name_boards(self, numbers):
        """Which boards the boards file names."""
        rows = [f"{n} 10.0.2.{n + 1} 00:1a:ca:00:57:{n:02x} 10 16218 917 0 0 tilera_hv 1 {CPU}" for n in numbers]
        (self.folder / "tilera_boards").write_text("\n".join(rows) + "\n")

    def outlets(self, faults=None, **states):
        """What outlets are (`board0="on"`); the others stay."""
        path = self.folder / "pdu-a.json"
        there = json.loads(path.read_text())["outlets"] if path.exists() else {}
        there.update({str(int(name[5:]) + 1): state for name, state in states.items()})
        path.write_text(json.dumps(dict(outlets=there, faults=faults or {})))

    def proxy(self, **given):
        """It is opened; a context manager."""
        (self.folder / "proxy.json").write_text(json.dumps(self.config))
        return Proxy(self.params, "test", **given)

    def image(self, name="debian", arch="tilepro64"):
        """An image in the store, as far as a claim looks at it."""
        folder = self.state / "images" / HASH
        (folder / "root").mkdir(parents=True)
        (folder / "image.json").write_text(json.dumps({"arch": arch}))
        (folder / "kernel").write_text("")
        (self.state / "images" / "names").mkdir()
        (self.state / "images" / "names" / name).write_text(f"{HASH}\n")

    def record(self, board):
        """Path of the own record of a board's claim."""
        return self.state / "claims" / f"board{board}.json"

    def root(self, board, claim, whole=True, of=None):
        """A root that says that it was made for a claim, or for what `of` says (token_of); its folder."""
        folder = self.state / "board-roots" / f"fs_{board}"
        folder.mkdir(parents=True, exist_ok=True)
        made = Made(of or token_of(claim), claim.image_hash, whole=whole)
        (folder / "made.json").write_text(json.dumps(asdict(made)))
        return folder


def claimed(proxy, request="jackie", boards=(0,), made=True, owner="ann", **more):
    """Claims of boards, and whether something was made for them; of several the instances are NAME-1 …"""
    boards = list(boards)
    names = [f"{request}-{n + 1}" for n in range(len(boards))] if boards[1:] else [request]
    proxy.store.claim(request, names, ClaimTerms(owner, FLAVOR, "debian", KEY), boards, **more)
    for name in names if made else ():
        proxy.store.put(name, image_hash=HASH)
    return [proxy.store.claim_of(name) for name in names]
