# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A whole proxy in a folder: real store, overlay mounts, TFTP files; PDU, NFS server and boots are files that play.

Also what must be true of it when an instance runs, and when nothing is left of it.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from pathlib import Path

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.board_record_files import SCRATCH
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.proxy import Proxy
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import mounts_below, unmount
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.store import ImageStore
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.reap import reap
from ansible_collections.hetero.compute.tests.unit.images.devices import devices_of
from ansible_collections.hetero.compute.tests.unit.images.nfs_server import put_busctl
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY, OTHER_KEY, image_tar
from ansible_collections.hetero.compute.tests.unit.images.stores import filled
from ansible_collections.hetero.compute.tests.unit.sweep.killing import is_free, run, run_alone

CPU = '{"vendor":"tilera","model":"TILEmpower","arch":"TILEPro64","features":["8x8Grid"],"topology":{"cores":"64"}}'
FLAVOR = {"name": "tp64.8x8", "memory_mb": 16384, "vcpus": 10, "cpu_arch": "tilepro64"}
#: What a root holds when all that belongs in it is there.
ROOT_FILES = {"etc/hostname", "etc/machine-id", "etc/ssh/sshd_config", "root/.ssh/authorized_keys"}
ROOT_FILES |= {"etc/ssh/ssh_host_ed25519_key", "etc/ssh/ssh_host_ed25519_key.pub"}


class Site:
    """The proxy's files, its plays as the playbooks' modules in turn, and looks at it from outside."""

    def __init__(self, folder, points, boards=2):
        self.folder, self.points = folder, points
        folder.chmod(0o755)
        self.state, self.tftp, self.run_folder = folder / "state", folder / "tftpboot", folder / "run"
        quick = {"tftp": 0.0, "nfs": 0.0, "running": 0.0}
        config = dict(
            server="10.0.2.254",
            tftp_root=str(self.tftp),
            state_folder=str(self.state),
            run_folder=str(self.run_folder),
            roots_overcommit=10000,  # the boards' 917 GB each are more than a test machine has
            credentials=str(folder / "credentials.json"),
            pdus={"pdu-a": {"driver": "fake", "path": str(folder / "pdu-a.json")}},
            boards={
                str(n): {"pdu": "pdu-a", "outlet": str(n + 1), "driver": "fake", "fake": quick} for n in range(boards)
            },
        )
        rows = [f"{n} 10.0.2.{n + 1} 00:1a:ca:00:57:{n:02x} 10 16218 917 0 0 tilera_hv 1 {CPU}" for n in range(boards)]
        (folder / "tilera_boards").write_text("\n".join(rows) + "\n")
        (folder / "proxy.json").write_text(json.dumps(config))
        (folder / "pdu-a.json").write_text(json.dumps({"outlets": {str(n + 1): "off" for n in range(boards)}}))
        (folder / "ganesha.json").write_text("{}")
        (folder / "bin").mkdir()
        put_busctl(folder / "bin")
        self.params = dict(
            boards_file=str(folder / "tilera_boards"),
            config=str(folder / "proxy.json"),
            state_db=str(self.state / "state.db"),
        )
        filled(str(self.state / "images"), "debian and a newer one", self._take_in)
        store = ImageStore(str(self.state / "images"))
        self.image, self.newer = store.get("debian"), store.get("debian-13")
        self.stored = self._tree(self.state / "images")

    def _take_in(self):
        store = ImageStore(str(self.state / "images"))
        store.import_image(image_tar(self.folder / "debian.tar"), "debian")
        store.import_image(image_tar(self.folder / "newer.tar", kernel="NEWER" * 1000), "debian-13")

    # ---- plays: the modules in the order of the playbooks

    def provision(self, name="jackie"):
        request = dict(instance=name, owner="jackie", flavor=FLAVOR, image="debian", ssh_public_key=KEY)
        claimed = self._module("board_claim", **request)
        if claimed is None or claimed.get("failed"):
            return [claimed]
        boards = [claim["board"] for claim in claimed["boards"]]
        return [claimed] + self._each(
            ("board_image", dict(boards=boards, image="debian", ssh_public_key=KEY, instance=name)),
            ("tilera_boot", dict(boards=boards, timeout=10, instance=name)),
        )

    def reboot(self, name="jackie"):
        boards = self._boards(name)
        return self._each(("tilera_boot", dict(boards=boards, state="rebooted", timeout=10, instance=name)))

    def rebuild(self, name="jackie"):
        asked = self._module("board_rebuild", instance=name, image="debian-13", ssh_public_key=OTHER_KEY)
        if asked is None or asked.get("failed"):
            return [asked]
        boards, old = self._boards(name), asked["to_rebuild"]
        stop = [("tilera_boot", dict(boards=old, state="stopped", timeout=10, instance=name))] if old else []
        return [asked] + self._each(
            *stop,
            ("board_image", dict(boards=boards, instance=name)),
            ("tilera_boot", dict(boards=boards, timeout=10, instance=name)),
        )

    def migrate(self, name="jackie", **given):
        return [self._module("instance", kind="board", instance=name, state="migrated", timeout=10, **given)]

    def expire(self, name="jackie"):
        """An instance's lease has been over for two minutes."""
        with self.proxy() as proxy:
            proxy.store.put(name, expires=time.time() - 120)

    def reap(self):
        """A turn of the reaper; `said` is what the journal shows."""

        def turn():
            said = []
            with Proxy(self.params, "reap", create=False, write=True) as proxy:
                done = reap(proxy, said.append)
            return dict(said=said, failed=not done)

        return [run_alone(self.points, turn)]

    def terminate(self, name="jackie"):
        boards = self._boards(name)
        if not boards:
            # where a claim was killed before it was in the database, verb absent sends to this for its record
            left = [record for record in self._names(self.state / "claims") if not SCRATCH.fullmatch(record)]
            return self._each(("board_reconcile", dict(timeout=10))) if left else []
        return self._each(
            ("tilera_boot", dict(boards=boards, state="stopped", timeout=10, instance=name)),
            ("board_image", dict(boards=boards, state="absent", instance=name)),
            ("board_claim", dict(instance=name, owner="jackie", state="absent")),
        )

    def _each(self, *modules):
        results = []
        for name, params in modules:
            results.append(self._module(name, **params))
            if results[-1] is None or results[-1].get("failed"):
                break
        return results

    def _module(self, name, **params):
        return run(self.points, name, **self.params, **params)

    def _boards(self, name):
        with self.proxy() as proxy:
            return [claim.board for claim in proxy.store.claims() if name in (claim.request, claim.instance)]

    def board_of(self, name):
        """The board of an instance, None where it has none."""
        return next(iter(self._boards(name)), None)

    # ---- what there is

    def proxy(self):
        return Proxy(self.params, "test")

    def outlets(self):
        return json.loads((self.folder / "pdu-a.json").read_text())["outlets"]

    def exports(self):
        return json.loads((self.folder / "ganesha.json").read_text())

    def mounts(self):
        """Mount points of roots, one a mount: two at one point are two. Images stay mounted, once each."""
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
        points = sorted(line.split()[4] for line in lines if line.split()[4].startswith(f"{self.folder}/"))
        images = [point for point in points if point.startswith(f"{self.state}/images/")]
        assert len(images) == len(set(images))
        return [point for point in points if point not in images]

    @staticmethod
    def _tree(folder):
        names = (str(path.relative_to(folder)) for path in folder.rglob("*"))
        return sorted(name for name in names if "mounted" not in name.split("/"))

    @staticmethod
    def _names(folder):
        return sorted(os.listdir(folder)) if folder.is_dir() else []

    def locks_held(self):
        folder = self.run_folder / "locks"
        return [name for name in self._names(folder) if not is_free(str(folder / name))]

    def what_is_there(self):
        """All that a play may leave, in one comparable value."""
        with self.proxy() as proxy:
            claims = {claim.instance: claim.board for claim in proxy.store.claims()}
            states = {board: record.state for board, record in proxy.store.records(proxy.boards).items()}
        db = sqlite3.connect(self.params["state_db"])
        whole = db.execute("PRAGMA integrity_check").fetchone()[0]
        db.close()
        roots = self.state / "board-roots"
        return dict(
            claims=claims,
            states=states,
            power=self.outlets(),
            exports=self.exports(),
            mounts=self.mounts(),
            loops=devices_of(self.state / "board-roots"),
            roots={name: self._names(roots / name) for name in self._names(roots) if name != ".lock"},
            restore=self._names(self.state / "exports"),
            # what a killed writer of a record has left goes with the board's next one
            records=[name for name in self._names(self.state / "claims") if not SCRATCH.fullmatch(name)],
            tftp={name: self._names(self.tftp / name) for name in self._names(self.tftp)},
            images=self._tree(self.state / "images") == self.stored,
            locks_held=self.locks_held(),
            database=whole,
        )

    def clean(self):
        """`what_is_there` where nobody has anything."""
        boards = range(len(self.outlets()))
        return dict(
            claims={},
            states=dict.fromkeys(boards, "power off"),
            power={str(board + 1): "off" for board in boards},
            exports={},
            mounts=[],
            loops=[],
            roots={},
            restore=[],
            records=[],
            tftp={},
            images=True,
            locks_held=[],
            database="ok",
        )

    def running(self, *names):
        """`what_is_there` where instances run on the first boards, in that order; None for a board of nobody."""
        there = self.clean()
        for board, name in enumerate(names):
            if name is None:
                continue
            root = str(self.state / "board-roots" / f"fs_{board}" / "root")
            there["claims"][name] = board
            there["states"][board] = "running"
            there["power"][str(board + 1)] = "on"
            clients = [f"10.0.2.{board + 1}"]
            there["exports"][str(board + 1)] = dict(path=root, pseudo=f"/tftpboot/fs_{board}", clients=clients)
            there["mounts"].append(root)
            there["loops"].append(str(self.state / "board-roots" / f"fs_{board}" / "root.ext4"))
            there["roots"][f"fs_{board}"] = ["layers", "made.json", "root", "root.ext4"]
            there["restore"].append(f"fs_{board}.conf")
            there["records"].append(f"board{board}.json")
            entry = f"01-00-1a-ca-00-57-{board:02x}.ipxe"
            there["tftp"][f"10.0.2.{board + 1}"] = [entry, f"initrd_{board}", f"vmlinux_{board}"]
        return there

    def root_is_whole(self, board=0):
        root = self.state / "board-roots" / f"fs_{board}" / "root"
        files = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
        return files - {"root/data"} == ROOT_FILES

    def tear_down(self):
        """Leave no mount behind, whatever a test did."""
        for point in reversed(mounts_below(str(self.folder))):
            unmount(point)
