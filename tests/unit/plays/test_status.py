# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbook status. If these fail, programs cannot read it, the inventory is stale, or a dead proxy hides all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR, changed

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")


def test_one_answer_for_people_programs_and_the_inventory(proxies):
    """A board that was booted: the JSON has all of it, the snapshot is the same, and the page shows the boot."""
    folders, plays = proxies
    folder = plays.folder
    (folder / "snapshots").mkdir()
    for name in folders:
        # a played board is as quick as it is told, and who looks at its packets is to have a chance
        path = folder / name / "etc" / "hetero" / "proxy.json"
        config = json.loads(path.read_text())
        for wiring in config["boards"].values():
            wiring["fake"]["running"] = 2.0
        path.write_text(json.dumps(config))
    rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR)
    assert rc == 0, output
    flags = dict(json="true", html="boards.html", hetero_snapshot_folder=folder / "snapshots")
    rc, output = plays.play("status", **flags)
    assert (rc, changed(output)) == (0, 0), output
    (line,) = [line for line in output.splitlines() if line.startswith("{")]
    seen = json.loads(line)["proxies"]
    board = seen["p1"]["boards"][0]
    assert (board["state"], board["instance"], board["owner"]) == ("running", "jackie", "jo")
    assert (board["pdu"], board["outlet"], board["power"]) == ("pdu-a", "1", "on")
    assert [event["phase"] for event in board["events"] if event["seconds"] is not None][-4:] == [
        "power", "tftp", "nfs", "running",
    ]  # fmt: skip
    assert [claim["instance"] for claim in seen["p1"]["claims"]] == ["jackie"]
    for name in ("p1", "p2"):
        assert json.loads((folder / "snapshots" / f"{name}.json").read_text()) == seen[name]
    page = (folder / "boards.html").read_text()
    assert page.count('class="boot"') == 1
    assert all(f">{text}<" in page for text in ("p1", "p2", "jackie", "ssh answers"))
    (folder / "lab.hetero.yml").write_text(
        "plugin: hetero.compute.nodes\nsnapshots: snapshots\nproxies:\n"
        "  - {name: p1, boards_file: p1/tftpboot/tilera_boards}\n"
        "  - {name: p2, boards_file: p2/tftpboot/tilera_boards, prefix: p2-}\n"
    )
    listed = subprocess.run(
        [str(Path(sys.executable).parent / "ansible-inventory"), "-i", "lab.hetero.yml", "--list"],
        cwd=folder, env=plays.env, capture_output=True, text=True, check=True, timeout=600,
    )  # fmt: skip
    inventory = json.loads(listed.stdout)
    assert inventory["state_running"]["hosts"] == ["board0"]
    known = inventory["_meta"]["hostvars"]["board0"]
    assert (known["hetero_instance"], known["hetero_outlet"], "hetero_events" in known) == ("jackie", "1", False)


def test_what_a_form_left_empty_is_not_given(proxies):
    """Lost: status in AWX: a page was to be written to a file without a name. Or JSON, to a word that nobody knows."""
    _folders, plays = proxies
    rc, output = plays.play("status", json="", html="", events="")
    assert (rc, changed(output)) == (0, 0), output
    assert "TILEPro64" in output
    for given, said in (
        ({"json": "ja"}, "json is ja: give true or false"),
        ({"events": "many"}, "events is many: give a whole number from 0 to 999999, such as -e events=50"),
        ({"events": "-1"}, "events is -1: give a whole number"),
    ):
        rc, output = plays.play("status", **given)
        assert rc == 2, output
        assert said in " ".join(output.split())
        assert "TILEPro64" not in output


def test_a_proxy_that_does_not_answer_hides_no_other(proxies):
    """Its own line says why, the play fails, and what the others said is there."""
    folders, plays = proxies
    (folders["p2"].folder / "etc" / "hetero" / "proxy.json").write_text("{")
    rc, output = plays.play("status", html=plays.folder / "boards.html")
    assert rc != 0
    assert "board1  board  TILEPro64  tp64.8x8  power off  -         -" in output
    assert "/etc/hetero/proxy.json: is not JSON" in " ".join(output.split())
    assert "is not JSON" in (plays.folder / "boards.html").read_text()
    assert changed(output) == 0


def test_a_mistake_in_a_flavor_hides_nobodys_board(proxies):
    """Lost: who has what, at the place to which each message leads, for a slip in a file of flavors."""
    _folders, plays = proxies
    (plays.folder / "flavors.yml").write_text("mine: {memory_mb: 1, vcpus: 1, local_gb: 1, cpu_arhc: x86_64}\n")
    rc, output = plays.play("status", hetero_instance_types_file="flavors.yml")
    assert rc == 2, output
    rows = [line.split() for line in output.splitlines() if line.startswith("board0 of p")]
    assert [row[3:6] for row in rows] == [["board", "TILEPro64", "-"]] * 2, rows
    before, _task, last = output.partition("TASK [Say which owners could not be asked, and what is wrong with flavors]")
    assert "flavor mine: unknown key 'cpu_arhc'" in last
    assert "cpu_arhc" not in before, "it is said once, and nothing else failed"
