# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbook move_in, from a table to the set-up's own check. If these fail, what is written is taken by nobody."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.tests.unit.moving.moves import MARKER, SAMPLES
from ansible_collections.hetero.compute.tests.unit.moving.netboxes import TOKEN, netbox, rack
from ansible_collections.hetero.compute.tests.unit.plays.proxies import Playbooks, changed
from ansible_collections.hetero.compute.tests.unit.plays.test_set_up_mistakes import OF_THE_MACHINE, mistakes, set_up

ANSWERS = {"proxy": {"name": "p1", "server": "10.0.2.254"}, "boards": {"jackie": {"disk": "none"}}}


@pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")
def test_from_a_table_to_the_set_ups_check(proxies):
    """The set-up finds nothing to say of boards, wiring and credentials; only that this folder is no machine."""
    _folders, plays = proxies
    rc, output = plays.play("move_in", source="csv", src=str(SAMPLES / "boards.csv"), folder="new")
    assert (rc, changed(output)) == (0, 1), output
    assert "? the proxy node: name, server → answers.yml, proxy" in output
    (plays.folder / "answers.yml").write_text(json.dumps(ANSWERS))
    rc, output = plays.play("move_in", source="csv", src=str(SAMPLES / "boards.csv"))
    assert (rc, changed(output)) == (0, 1), output
    assert "files/boards: board0 is jackie" in output
    assert "! vaulted_pdu_a_community is to be in a vault" in output
    assert MARKER not in output
    rc, output = plays.play("move_in", source="csv", src=str(SAMPLES / "boards.csv"))
    assert (rc, changed(output)) == (0, 0), output
    _rc, output = set_up(plays, "proxy", vaulted_pdu_a_community="private", tftp_proxy_server="10.0.2.254")
    said = mistakes(output)
    assert said, output
    assert [line for line in said if line.partition(":")[0] not in OF_THE_MACHINE] == []


def test_boards_of_the_file_are_hosts_of_the_inventory(tmp_path):
    plays = Playbooks(tmp_path, [])
    (tmp_path / "answers.yml").write_text(json.dumps(ANSWERS))
    rc, output = plays.play("move_in", source="csv", src=str(SAMPLES / "boards.csv"))
    assert rc == 0, output
    (tmp_path / "hetero.yml").write_text(
        json.dumps({"plugin": "hetero.compute.nodes", "proxies": [{"name": "p1", "boards_file": "files/boards"}]})
    )
    argv = ["-i", "inventory.yml", "-i", "hetero.yml", "--list"]
    done = subprocess.run(
        [str(Path(os.sys.executable).parent / "ansible-inventory"), *argv], cwd=tmp_path, env=plays.env,
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["proxies"]["hosts"] == ["p1"]
    hosts = said["_meta"]["hostvars"]
    assert hosts["board0"]["hetero_mac"] == "00:1a:ca:00:58:98"
    assert hosts["p1"]["tftp_proxy_boards"]["0"] == {"pdu": "pdu-a", "outlet": 6, "disk": "none"}


def test_a_token_of_the_environment_is_never_shown(tmp_path):
    plays = Playbooks(tmp_path, [])
    with netbox(rack()) as (url, asked):
        plays.env["NETBOX_TOKEN"] = TOKEN
        extra = dict(source="netbox", url=f"{url}/dcim/devices/?role=board", folder="site")
        rc, output = plays.play("move_in", "-vvv", "--diff", **extra)
        assert rc == 0, output
        assert "files/boards: board0 is jackie" in output
        assert {token for _path, token in asked} == {f"Token {TOKEN}"}
        assert TOKEN not in output
        plays.env["NETBOX_TOKEN"] = "WRONG-TOKEN"
        rc, output = plays.play("move_in", "-vvv", **extra)
    assert rc == 2
    assert "refuses the token (403)" in output
    assert "WRONG-TOKEN" not in output


def test_a_dry_run_shows_and_writes_nothing(tmp_path):
    plays = Playbooks(tmp_path, [])
    rc, output = plays.play(
        "move_in", "--check", "--diff", source="csv", src=str(SAMPLES / "boards.csv"), folder="site"
    )
    assert (rc, changed(output)) == (0, 1), output
    assert "+0 10.0.2.2 00:1A:CA:00:58:98 4 8192 60 0 0 none 1" in output
    assert not (tmp_path / "site").exists()
