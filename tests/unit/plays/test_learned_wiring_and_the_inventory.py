# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory has more of tftp_proxy_boards than the node's proxy.json: it was edited since playbook proxy ran last.
cabling with learn= and write= writes "all of it", as the node has it, and says: "put it in place of tftp_proxy_boards".
If this fails, who does so loses what he wrote, and `proxy --check --diff`, which the file's head names, shows nothing.
"""

from __future__ import annotations

import json
import os

import pytest
import yaml

from ansible_collections.hetero.compute.tests.unit.boards.cabling.conftest import racked
from ansible_collections.hetero.compute.tests.unit.plays.proxies import Playbooks, Proxy

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")

INVENTORY = {
    0: {"driver": "fake", "disk": "none"},
    1: {"driver": "fake", "console": "/var/log/board1"},  # since yesterday
    2: {"driver": "fake", "pdu": "pdu-a", "outlet": "4"},  # likewise
}


def test_what_the_inventory_says_is_in_what_is_to_take_its_place(tmp_path):
    """Lost: wiring and consoles of boards that were added to the inventory, and are on no node yet."""
    tmp_path.chmod(0o755)
    proxy = Proxy(tmp_path / "p1", 1, boards=3)
    etc = proxy.folder / "etc" / "hetero"
    try:
        config = json.loads((etc / "proxy.json").read_text())
        config["boards"] = {"0": {"driver": "fake", "disk": "none"}, "1": {"driver": "fake"}, "2": {"driver": "fake"}}
        (etc / "proxy.json").write_text(json.dumps(config))
        (tmp_path / "host_vars").mkdir()
        (tmp_path / "host_vars" / "p1.yml").write_text(yaml.safe_dump({"tftp_proxy_boards": INVENTORY}))
        with racked({"pdu-a": etc / "pdu.json"}, proxy.folder / "run" / "hetero" / "fake-boots", {"pdu-a": {"3": [0]}}):
            plays = Playbooks(tmp_path, ["p1"])
            rc, output = plays.play("cabling", learn="pdu-a:3", seconds=5, write="wiring.yml")
    finally:
        proxy.remove()
    assert rc == 0, output
    written = yaml.safe_load((tmp_path / "wiring.yml").read_text())["tftp_proxy_boards"]
    assert written[0] == {"pdu": "pdu-a", "outlet": "3", "driver": "fake", "disk": "none"}
    lost = {board: wire for board, wire in INVENTORY.items() if not wire.items() <= written.get(board, {}).items()}
    assert not lost, (lost, (tmp_path / "wiring.yml").read_text())
