# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A state database that is gone. If these fail, a node that forgot its tenants says that nobody is there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import unmount
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import backup, reap, restore

VERBS = {
    "status": ("board_info", {}),
    "claim": ("board_claim", dict(instance="jackie", owner="jackie", state="absent")),
    "terminate": ("tilera_boot", dict(boards=[0], state="stopped", timeout=10, instance="jackie")),
    "image": ("board_image", dict(boards=[0], state="absent", instance="jackie")),
    "rebuild": ("board_rebuild", dict(instance="jackie", image="debian-13")),
    "wipe": ("board_wipe", dict(boards=[1])),
    "lease": ("board_lease", dict(instance="jackie", hours=1)),
    "maintenance": ("board_maintenance", dict(boards=[1], reason="fan")),
    "cabling": ("board_cabling", dict(boards=[1])),
}


def lose(site):
    for path in site.state.glob("state.db*"):
        path.unlink()


@pytest.fixture
def lost(jackie):
    """Jackie runs, a copy of the database knows her, and the database is gone."""
    backups.make(jackie.params["state_db"])
    lose(jackie)
    return jackie


def reconcile(site, **given):
    return site.module("board_reconcile", **dict(dict(timeout=5), **given))


def follow(text):
    """Type what is printed for the node."""
    command = re.search(r"run on node \S+: (.+?) and then", text)[1]
    subprocess.run(["sh", "-ec", command], check=True)


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_goes_on_without_it(lost, verb, check):
    """Lost: the word that anything is wrong; "no such instance", and rc 0, where hers runs."""
    name, given = VERBS[verb]
    result = lost.module(name, check=check, **given)
    assert result.get("failed"), result
    assert result["msg"].startswith(f"{lost.params['state_db']}: is not there, and instances were made on node ")
    assert f"cp -p {backups.copies(lost.params['state_db'])[-1]} {lost.params['state_db']} and then" in result["msg"]
    assert "ansible-playbook hetero.compute.reconcile" in result["msg"]
    assert not Path(lost.params["state_db"]).exists(), "an empty one would hide the loss"
    assert lost.outlets()["1"] == "on"


@pytest.mark.parametrize("main", [reap.main, backup.main])
def test_no_verb_of_the_node_goes_on_without_it(lost, main):
    """Lost: the word that anything is wrong, in the journal of a node that ends no lease and keeps no copy."""
    lost.tftp.mkdir(exist_ok=True)
    shutil.copy(lost.params["boards_file"], lost.tftp / "tilera_boards")
    with pytest.raises(HeteroError, match="is not there, and instances were made on node "):
        main(["--config", lost.params["config"]])


def test_what_the_timer_could_not_do_is_said_with_its_own_remedy(jackie, monkeypatch, capfd):
    """Lost: the one remedy that helps, between another one for what nobody foresaw and a promise that does not hold."""
    jackie.tftp.mkdir(exist_ok=True)
    shutil.copy(jackie.params["boards_file"], jackie.tftp / "tilera_boards")

    def damaged(*_words):
        raise HeteroError("is damaged", "state.db", "put a copy back")

    monkeypatch.setattr(reap, "reap", damaged)
    assert reap.main(["--config", jackie.params["config"]]) == 0
    said = "".join(capfd.readouterr())
    assert said == "all boards: state.db: is damaged: put a copy back; each board is freed by itself\n"


def test_what_is_printed_brings_everything_back(lost):
    """Lost: what a copy knows and no record does, such as a board that an operator took out of use."""
    lost_there = dict(reconcile(lost))
    assert lost_there["failed"], "an empty database forgets which boards are out of use"
    Path(f"{lost.params['state_db']}-wal").write_bytes(b"of the lost one")
    follow(reconcile(lost)["msg"])
    assert not reconcile(lost).get("failed")
    assert lost.what_is_there() == lost.running("jackie")
    assert (lost.state / "backups" / "state.db-wal").read_bytes() == b"of the lost one"


def test_without_a_copy_reconcile_goes_on_and_says_so(jackie):
    lose(jackie)
    said = jackie.module("board_info")["msg"]
    assert "no copy of it is there: ansible-playbook hetero.compute.reconcile makes it anew" in said
    result = reconcile(jackie)
    assert not result.get("failed"), result
    assert "is not there, and instances were made on node " in result["warnings"][0]
    assert jackie.what_is_there() == jackie.running("jackie")
    assert "warnings" not in reconcile(jackie)


def test_a_new_node_has_no_database_to_miss(site):
    """Lost: the first request on a proxy that was just set up, or where everything was given back."""
    assert not site.module("board_info").get("failed")
    assert not any(result.get("failed") for result in [*site.provision(), *site.terminate()])
    lose(site)
    assert not site.module("board_info").get("failed")
    assert not any(result.get("failed") for result in site.provision())


def test_the_way_back_also_holds_where_a_record_cannot_be_read(lost):
    """Lost: the instance of whom only a copy of the database tells, for want of a word how to take the copy's."""
    record = lost.state / "claims" / "board0.json"
    record.write_text("{")
    said = lost.module("board_info")["msg"]
    assert f"which cannot read {record}, and takes the copy's word for it by ansible-playbook hetero.compute" in said
    follow(said)
    assert not reconcile(lost, adopt=["jackie"]).get("failed")
    assert lost.what_is_there() == lost.running("jackie")
    with lost.proxy() as proxy:
        assert proxy.store.kept(0).claim.instance == "jackie"


def test_status_shows_a_record_that_cannot_be_read(jackie):
    """Lost: the time until her lease does not end, which is when anybody hears of it."""
    record = jackie.state / "claims" / "board0.json"
    record.write_text("{")
    with jackie.proxy() as proxy:
        proxy.store.move(0, "running", "busy")
    note = jackie.module("board_info")["boards"][0]["note"]
    typed = "ansible-playbook hetero.compute.reconcile -e adopt=jackie"
    assert note == f"busy; {record}: what it says of a claim cannot be read: {typed}"
    assert not reconcile(jackie, adopt=["jackie"]).get("failed")
    assert jackie.module("board_info")["boards"][0]["note"] == "busy"


def test_reconcile_names_the_copy_that_knows_whose_a_board_is(lost):
    """Lost: the same, where an empty database was made already: the newest copy may be one of that."""
    knows = backups.copies(lost.params["state_db"])[-1]
    record = lost.state / "claims" / "board0.json"
    record.write_text("{")
    kept = lost.folder / "kept.db"
    Path(knows).rename(kept)  # no copy there: so that it is made anew
    assert not reconcile(lost).get("failed")
    kept.rename(knows)
    with lost.proxy() as proxy:
        proxy.store.event(1, "note", "later")
    assert backups.make(lost.params["state_db"]) != knows
    (found,) = reconcile(lost)["boards"][0]["found"]
    assert f"the copy {knows} says that it is jackie's" in found["found"]
    assert "reconcile -e adopt=jackie" in found["found"]
    assert found["done"] is None


def restart(site, *boards):
    """The node starts again: the roots are mounted, and its server has the exports that `hetero restore` tells it."""
    for point in site.mounts():
        unmount(point)
    with site.proxy() as proxy:
        said = []
        exports = restore.restore(proxy, said.append)
    known = {str(one.id): dict(path=one.path, pseudo=one.pseudo, clients=list(one.clients)) for one in exports}
    (site.folder / "ganesha.json").write_text(json.dumps(known))
    return said


def test_what_a_copy_does_not_know_is_exported_again_by_its_record(jackie):
    """Lost: bob's root, at the node's next start before anybody ran reconcile on the copy that was put back."""
    backups.make(jackie.params["state_db"])
    assert not any(result.get("failed") for result in jackie.provision("bob"))
    there = jackie.running("jackie", "bob")
    lose(jackie)
    follow(jackie.module("board_info")["msg"])
    said = restart(jackie)
    assert said[:2] == ["board0 of jackie: root mounted", "board1 of bob: root mounted"]
    assert said[2].startswith("board1 of bob: exported by the record of its claim, of which the database does not tell")
    now = jackie.what_is_there()
    assert (now["exports"], now["mounts"]) == (there["exports"], there["mounts"])
    assert now["claims"] == {"jackie": 0}, "nothing is adopted by it"
    assert not reconcile(jackie).get("failed")
    assert jackie.what_is_there() == there


def found_of(site):
    """What is found of board 0."""
    return reconcile(site)["boards"][0]["found"]


UNSERVED = (
    "its root is not {missing}, so no login on it can succeed: ansible-playbook hetero.compute.reconcile -e "
    "adopt=jackie takes its record's word, and puts that back; or run on node {node}: systemctl restart nfs-ganesha, "
    "by which `hetero restore` mounts and exports it as its record says (boards wait meanwhile, and an export that no "
    "record bears out ends: adopt those first), then run this again"
)


@pytest.mark.parametrize("missing", ["mounted and not exported", "exported", ""])
def test_who_cannot_log_in_for_want_of_a_root_is_not_sent_to_the_plug(jackie, missing):
    """Lost: the day of who looks for a swapped plug, while all that run on the node wait for their files."""
    jackie.wire(0, fake=dict(tftp=0.0, nfs=0.0, running=86400.0))
    lose(jackie)
    if missing:
        (jackie.folder / "ganesha.json").write_text("{}")
    for point in jackie.mounts() if "mounted" in missing else ():
        unmount(point)
    ((said, done),) = [(one["found"], one["done"]) for one in found_of(jackie)]
    assert done is None
    assert "its outlet is on, and it does not show its key: not adopted, nothing of it is touched: " in said
    assert said.endswith(UNSERVED.format(missing=missing, node=os.uname().nodename)) == bool(missing), said
    assert ("look at its plug" in said) == (not missing)
    if missing:
        restart(jackie)
        (again,) = found_of(jackie)
        assert "look at its plug" in again["found"], "that was put back by it"
    assert not reconcile(jackie, adopt=["jackie"]).get("failed")
    assert jackie.what_is_there() == jackie.running("jackie")


def test_it_is_put_back_by_a_word_as_well(jackie):
    """Lost: her root, where the way that is printed does not bring it back."""
    jackie.wire(0, fake=dict(tftp=0.0, nfs=0.0, running=86400.0))
    lose(jackie)
    (jackie.folder / "ganesha.json").write_text("{}")
    assert "systemctl restart nfs-ganesha" in found_of(jackie)[0]["found"]
    adopted = reconcile(jackie, adopt=["jackie"])["boards"][0]["found"]
    assert [entry["done"] for entry in adopted][:2] == ["adopted", "put back"]
    assert jackie.what_is_there() == jackie.running("jackie")
