# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbook cabling with learn=, from outlets that nobody named to a file of variables. PDU and boards are played."""

from __future__ import annotations

import json
import os

import pytest
import yaml

from ansible_collections.hetero.compute.tests.unit.boards.cabling.conftest import racked
from ansible_collections.hetero.compute.tests.unit.plays.proxies import Playbooks, Proxy, changed

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")


def test_the_wiring_is_learned_and_written(tmp_path):
    """Lost: the wiring of a lab that moves in; or a file of its people, by a second run."""
    tmp_path.chmod(0o755)
    proxy = Proxy(tmp_path / "p1", 1, boards=3)
    etc = proxy.folder / "etc" / "hetero"
    try:
        config = json.loads((etc / "proxy.json").read_text())
        config["boards"] = {"0": {"driver": "fake", "disk": "none"}, "1": {"driver": "fake"}, "2": {"driver": "fake"}}
        (etc / "proxy.json").write_text(json.dumps(config))
        rack = {"pdu-a": {"1": [1], "3": [0]}}
        with racked({"pdu-a": etc / "pdu.json"}, proxy.folder / "run" / "hetero" / "fake-boots", rack):
            plays, words = Playbooks(tmp_path, ["p1"]), dict(learn="pdu-a:1-3", seconds=5, write="wiring.yml")
            rc, output = plays.play("cabling", "--check", **words)
            assert (rc, changed(output)) == (0, 1), output
            assert "pdu-a outlet 3 would be switched on until a board asks to boot, then off" in output
            assert not (tmp_path / "wiring.yml").exists()
            rc, output = plays.play("cabling", **words)
            assert (rc, changed(output)) == (0, 2), output
            again, refused = plays.play("cabling", **words)
    finally:
        proxy.remove()
    for said in (
        "pdu-a outlet 1: on, read back; who asks to boot?",
        "pdu-a outlet 1 feeds board1 (00:1a:ca:00:01:01): boot request after",
        "pdu-a outlet 2 feeds nothing that boots: no boot request within 5 s",
        "3 of 3 outlets tested: 2 boards found",
        '  0: {"pdu": "pdu-a", "outlet": "3", "driver": "fake", "disk": "none"}',
        "# 2: no outlet was found that feeds board2",
        "wiring.yml has them, as tftp_proxy_boards of p1",
    ):
        assert said in output, output
    assert output.index("outlet 1: on") < output.index("outlet 2: on"), "as it happens"
    assert yaml.safe_load((tmp_path / "wiring.yml").read_text()) == {
        "tftp_proxy_boards": {
            0: {"pdu": "pdu-a", "outlet": "3", "driver": "fake", "disk": "none"},
            1: {"pdu": "pdu-a", "outlet": "1", "driver": "fake"},
            2: {"driver": "fake"},
        }
    }
    assert again == 2
    assert "is there, and stays" in refused, refused
    assert "outlet 1: on" not in refused
    assert set(json.loads((etc / "pdu.json").read_text())["outlets"].values()) == {"off"}
