# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every combination of record, outlet, board's answer and root, and what each verb makes of it. If these fail, what may
be somebody's is destroyed by a guess: a root removed, power cut, a board given away.

Left out is only what nobody can ask for: where the database has no claim, verbs of an instance find no board.
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
import shutil
import sqlite3
import time
from contextlib import closing

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import starts
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import power_proof, presence
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.proxy import Proxy
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import reconciliation
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import mounts_below, unmount
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.reap import reap
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.restore import restore
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY
from ansible_collections.hetero.compute.tests.unit.sweep.killing import MODULES, Points
from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import FLAVOR, Site

#: What the database and the claim's own record say. "lost": the database knows nothing; "nothing": nor is there a
#: record; "older": the database is from before, when alice had the board; "behind": it is from when jackie was stopped;
#: "half off": her stop failed after it had begun.
RECORDS = ("nothing", "lost", "running", "stopped", "older", "behind", "half off")
JACKIES = ("running", "stopped", "behind", "half off")
OUTLETS, ANSWERS = ("off", "on"), ("own key", "another key", "silent")
ROOTS = ("none", "own", "another's", "unreadable")
#: Verbs of a tenant, who names an instance.
OF_INSTANCES = ("start", "stop", "reboot", "rebuild", "extend", "terminate")
#: Verbs that need no claim: of a newcomer, of an operator, of timers, and of the node's own start.
OTHERS = ("provision", "reconcile", "repair", "maintenance", "cabling", "check", "reap", "lease over", "restore")
ANOTHER = json.dumps({"claim": "eve 1.5", "image": "0" * 64, "kind": "overlay", "whole": True})
#: Of alice, who gave the board back before jackie claimed it.
ALICE_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAlice"


class Cells:
    """One board of one proxy, set to any cell within milliseconds; verbs run in this very process."""

    def __init__(self, folder):
        self.site = Site(folder, Points(), boards=1)
        assert not any(result.get("failed") for result in self.site.provision()), "the played board does not boot"
        self.root = self.site.state / "board-roots" / "fs_0"
        self.record = self.site.state / "claims" / "board0.json"
        self.db = folder / "as-it-was.db"
        with self.site.proxy() as proxy:
            self.claim = proxy.store.claim_of("jackie")
        with closing(sqlite3.connect(self.site.params["state_db"])) as source, closing(
            sqlite3.connect(self.db)
        ) as copy:
            source.backup(copy)
        self.kept = self.record.read_text()
        self.boot = self.site.run_folder / "fake-boots" / "board0"
        self.master = folder / "fs_0"
        self._unmount()
        self._copy(self.root, self.master)
        self.files = self._identity()

    def _unmount(self):
        for point in reversed(mounts_below(str(self.site.state / "board-roots"))):
            unmount(point)

    @staticmethod
    def _copy(source, target):
        os.makedirs(target, mode=0o700)
        for name in ("made.json", "root.ext4"):
            # A file system of gigabytes of which a few pages are there.
            assert os.spawnlp(os.P_WAIT, "cp", "cp", "--sparse=always", str(source / name), str(target / name)) == 0
        for name in ("layers", "root"):
            os.mkdir(target / name, 0o700)

    def _identity(self):
        """What of a root is there: its file system is the same one as long as nobody makes it anew."""
        file = self.root / "root.ext4"
        return file.stat().st_ino if file.exists() else None

    def set(self, record, outlet, answer, root):
        """Make it so."""
        self._unmount()
        site = self.site
        if root == "none":
            shutil.rmtree(self.root, ignore_errors=True)
        elif self._identity() is None or self._identity() != self.files:
            shutil.rmtree(self.root, ignore_errors=True)
            self._copy(self.master, self.root)
        if root != "none":
            made = {"own": (self.master / "made.json").read_text(), "another's": ANOTHER, "unreadable": "{"}[root]
            (self.root / "made.json").write_text(made)
        self.files = self._identity()
        self._database(record)
        self.record.unlink(missing_ok=True)
        if record != "nothing":
            states = {"stopped": "power off", "half off": "shutting down"}
            self.record.write_text(self.kept.replace('"running"', f'"{states.get(record, "running")}"'))
        site_on = {"1": outlet}
        (site.folder / "pdu-a.json").write_text(json.dumps({"outlets": site_on, "faults": {}}))
        on = time.monotonic() - 9 if outlet == "on" or answer != "silent" else None
        self.boot.write_text(json.dumps({"on": on, "boots": 1}))
        # One that is silent comes up once its power was cycled.
        play = {"tftp": 0.0, "nfs": 0.0, "running": 0.0, "key": self.claim.host_key}
        play.update({"another key": {"wrong_key": True}, "silent": {"stall": "running", "stalls": 1}}.get(answer, {}))
        config = json.loads((site.folder / "proxy.json").read_text())
        config["boards"]["0"]["fake"] = play
        (site.folder / "proxy.json").write_text(json.dumps(config))
        (site.folder / "ganesha.json").write_text("{}")
        for left in (site.tftp, site.state / "maintenance", site.run_folder / "cuts", site.run_folder / "ends"):
            shutil.rmtree(left, ignore_errors=True)  # what the verbs of other cells left

    def _database(self, record):
        path = self.site.params["state_db"]
        for tail in ("-wal", "-shm"):
            if os.path.exists(path + tail):
                os.unlink(path + tail)
        shutil.copy(self.db, path)
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            if record in ("nothing", "lost"):
                db.executescript("DELETE FROM claims; DELETE FROM boards; DELETE FROM events")
            elif record in ("stopped", "behind"):
                db.execute("UPDATE boards SET state = 'power off', note = 'stopped', power = 'off'")
            elif record == "half off":
                db.execute("UPDATE boards SET state = 'shutting down', note = 'its PDU was lost', power = 'on'")
            elif record == "older":
                older = ("alice", "alice", "alice", self.claim.created - 9, ALICE_KEY)
                db.execute("UPDATE claims SET instance = ?, request = ?, owner = ?, created = ?, host_key = ?", older)
                db.execute("UPDATE events SET instance = 'alice'")

    # ---- verbs, as the playbooks call them

    def run(self, verb, name):
        """The last result of a verb for an instance."""
        if verb in OTHERS:
            return self._of_nobody()[verb](name)
        boards = self._boards(name)
        if not boards:
            return {"failed": True, "msg": "no such instance"}
        work = dict(boards=boards, instance=name)
        steps = {
            "start": [("tilera_boot", dict(work, timeout=1))],
            "stop": [("tilera_boot", dict(work, state="stopped", keep=True, timeout=1))],
            "reboot": [("tilera_boot", dict(work, state="rebooted", timeout=1))],
            "rebuild": [("board_rebuild", dict(instance=name)), ("board_image", work)],
            "extend": [("board_lease", dict(instance=name, hours=3))],
            "terminate": [
                ("tilera_boot", dict(work, state="stopped", timeout=1)),
                ("board_image", dict(work, state="absent")),
                ("board_claim", dict(instance=name, owner=name, state="absent")),
            ],
        }
        return self._each(steps[verb])

    def _of_nobody(self):
        board = dict(boards=[0])
        free = dict(board, instance="")
        repair = [
            ("tilera_boot", dict(free, state="stopped", timeout=1)),
            ("board_image", dict(free, state="absent")),
            ("board_wipe", dict(free, inspect=True, timeout=1)),
            ("board_claim", dict(board=0, state="absent")),
        ]
        return {
            "provision": self._provision,
            "reconcile": lambda _name: self._module("board_reconcile", timeout=5),
            "repair": lambda _name: self._repair(repair),
            "maintenance": lambda _name: self._module("board_maintenance", state="on", reason="its fan", **board),
            "cabling": lambda _name: self._module("board_cabling", timeout=1, **board),
            "check": lambda _name: self._module("board_check", timeout=1, **board),
            "reap": lambda _name: self._reap(),
            "lease over": lambda _name: self._reap(over=True),
            "restore": lambda _name: self._restore(),
        }

    def _repair(self, steps):
        refused = self._module("board_claim", check=True, board=0, state="absent")
        return refused if refused.get("failed") else self._each(steps)

    def _reap(self, over=False):
        with self.site.proxy() as proxy:
            for claim in proxy.store.claims() if over else ():
                proxy.store.put(claim.instance, expires=time.time() - 120)
        said = []
        with Proxy(self.site.params, "reap", create=False, write=True) as proxy:
            done = reap(proxy, said.append)
        return {"failed": not done, "msg": said}

    def _restore(self):
        said = []
        try:
            with self.site.proxy() as proxy:
                restore(proxy, said.append)
        except HeteroError as error:
            said.append(str(error))
        return {"failed": bool(said), "msg": said}

    def _provision(self, name):
        request = dict(instance=name, owner=name, flavor=FLAVOR, image="debian", ssh_public_key=KEY)
        work = dict(boards=[0], instance=name)
        ready = ("board_image", dict(work, image="debian", ssh_public_key=KEY))
        return self._each([("board_claim", request), ready, ("tilera_boot", dict(work, timeout=1))])

    def _each(self, steps):
        for module, given in steps:
            result = self._module(module, **given)
            if result.get("failed"):
                break
        return result

    def _module(self, name, check=False, **given):
        module = importlib.import_module(MODULES + name)
        params = {option: spec.get("default") for option, spec in module.SPEC.options.items()}
        params.update(self.site.params, **given)
        try:
            return module.work(params, check)
        except HeteroError as error:
            return {"failed": True, "msg": str(error)}

    def _boards(self, name):
        return [claim["board"] for claim in self.seen()["claims"] if claim["instance"] == name]

    def seen(self):
        """What is there, as far as the rule speaks of it."""
        with self.site.proxy() as proxy:
            claims = [vars(claim) for claim in proxy.store.claims()]
        outlets = json.loads((self.site.folder / "pdu-a.json").read_text())["outlets"]
        boots = json.loads(self.boot.read_text())["boots"]
        kept = self.record.read_text() if self.record.exists() else None
        unused = (self.site.state / "maintenance" / "board0.json").exists()
        return dict(claims=claims, outlet=outlets["1"], boots=boots, root=self._identity(), record=kept, unused=unused)


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    folder = tmp_path_factory.mktemp("matrix")
    (folder / "bin").mkdir()
    patch = pytest.MonkeyPatch()
    for module, name, value in (
        (presence, "QUIET", 0.02),
        (presence, "LONGEST", 0.05),
        (presence, "PROOF", 0.03),
        (presence, "NAP", 0.001),
        (starts, "SHORT_PATIENCE", 0.02),
        (power_proof, "LINGER", 0.05),
        (power_proof, "LOOK", 0.01),
        (reconciliation, "PATIENCE", 0.02),
    ):
        patch.setattr(module, name, value)
    patch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
    patch.setenv("FAKE_GANESHA", str(folder / "ganesha.json"))
    (folder / "bin").rmdir()
    made = Cells(folder)
    yield made
    patch.undo()
    made.site.tear_down()


def asked_by(record, verb):
    """Whose word a verb is: that of the instance that the database gives the board to; else of a newcomer."""
    if verb in OTHERS and verb != "provision":
        return "nobody"
    return {"nothing": "bob", "lost": "bob", "older": "alice"}.get(record, "jackie")


def breaks(cell, verb, before, after):
    """What of the rule a verb broke in a cell, as texts."""
    record, outlet, answer, root = cell
    mine = record in JACKIES
    ends = verb in ("terminate", "lease over") and mine and root != "another's"
    found = []
    if before["root"] is not None and after["root"] != before["root"] and not (ends and root in ("own", "unreadable")):
        found.append("a root that ran was removed")
    whose = {"own key": mine, "another key": False}.get(answer)
    switched = (before["outlet"], before["boots"]) != (after["outlet"], after["boots"])
    # Who repairs a board that is nobody's names it, and may have it off; its outlet may be tried that was off before.
    free = record == "nothing" and root == "none"
    named = free and (verb == "repair" or (verb == "cabling" and outlet == "off"))
    if switched and whose is False and not ends and not named:
        found.append("the power of a board was switched that shows a key which is not the claim's")
    if switched and outlet == "on" and not mine and not named and not (free and answer == "silent"):
        found.append("a board with power was switched for who has no claim to it")
    works = record in JACKIES and record != "stopped" and root in ("own", "unreadable")
    if switched and works and (outlet, answer) == ("on", "silent") and verb in ("start", "provision", "reconcile"):
        found.append("the power was cut of a board on which its tenant may be at work")
    gone = [claim["instance"] for claim in before["claims"] if claim not in after["claims"]]
    adopted = [claim["instance"] for claim in after["claims"]] == ["jackie"]
    if gone and not ends and not (verb == "reconcile" and adopted):
        same = {claim["instance"] for claim in after["claims"]}
        found += [f"{name} was freed" for name in gone if name not in same]
    if before["record"] and not after["record"] and not ends:
        found.append("the record of a claim was removed")
    new = {claim["instance"] for claim in after["claims"]} - {claim["instance"] for claim in before["claims"]}
    if "bob" in new and (record == "lost" or root in ("own", "another's", "unreadable")):
        found.append("a board that is somebody's was given to the next one")
    return found


def in_words(verb, before, after, result):
    """What a verb did, in a few words."""
    names = [[claim["instance"] for claim in seen["claims"]] for seen in (before, after)]
    done = []
    if before["root"] != after["root"]:
        done.append("root made" if before["root"] is None else "root removed" if after["root"] is None else "root anew")
    if before["boots"] != after["boots"]:
        done.append("booted")
    elif before["outlet"] != after["outlet"]:
        done.append(f"switched {after['outlet']}")
    if names[0] != names[1]:
        done.append(
            "adopted" if verb == "reconcile" and names[1] == ["jackie"] else "freed" if not names[1] else "claimed"
        )
    if after["unused"]:
        done.append("kept out")
    told = [entry for board in result["boards"] for entry in board["found"]] if verb == "reconcile" else []
    said = result.get("failed") or any(entry["done"] is None for entry in told)
    return "+".join(done) + ("!" if said else "") or "as it is"


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("record", RECORDS)
def test_no_cell_destroys(cells, record, root):
    """The table: what each verb did; `!` where it was refused or said, nothing by itself."""
    verbs = [*(OF_INSTANCES if record not in ("nothing", "lost") else ()), *OTHERS]
    heading = f"{'record':9}{'root':12}{'outlet':8}{'answer':13}"
    lines = [heading + "".join(f"{verb:29}" for verb in verbs)]
    broken = []
    for outlet, answer in itertools.product(OUTLETS, ANSWERS):
        cell = (record, outlet, answer, root)
        words = []
        for verb in verbs:
            cells.set(*cell)
            before = cells.seen()
            result = cells.run(verb, asked_by(record, verb))
            after = cells.seen()
            words.append(in_words(verb, before, after, result))
            broken += [(cell, verb, text, result.get("msg")) for text in breaks(cell, verb, before, after)]
        lines.append(f"{record:9}{root:12}{outlet:8}{answer:13}" + "".join(f"{word:29}" for word in words))
    print("\n".join(lines))
    assert broken == []
