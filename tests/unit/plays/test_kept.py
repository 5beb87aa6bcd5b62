# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asking again for an instance that ran and does not come up any more. If this fails, its user's work is removed, or
they get an empty root on another board and are told that all is well.
"""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.tests.turns import in_turns
from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR, Playbooks, Proxy, changed

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")


def wire(proxy, **fake):
    """How board 0 boots from now on."""
    path = proxy.folder / "etc" / "hetero" / "proxy.json"
    config = json.loads(path.read_text())
    config["boards"]["0"]["fake"] = fake
    path.write_text(json.dumps(config))


def cut(proxy):
    """A power cut: the PDU came back with its outlets off."""
    path = proxy.folder / "etc" / "hetero" / "pdu.json"
    pdu = json.loads(path.read_text())
    path.write_text(json.dumps(dict(pdu, outlets=dict.fromkeys(pdu["outlets"], "off"))))
    boot = proxy.folder / "run" / "hetero" / "fake-boots" / "board0"
    boot.write_text(json.dumps(dict(json.loads(boot.read_text()), on=None)))


@pytest.mark.parametrize("stall", in_turns(["tftp", "nfs"], 2))
def test_an_instance_that_ran_keeps_its_root_and_its_board(tmp_path, stall):
    tmp_path.chmod(0o755)
    proxy = Proxy(tmp_path / "p1", 1)
    plays = Playbooks(tmp_path, ["p1"])
    try:
        rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR)
        assert rc == 0, output
        work = proxy.root / "var" / "lib" / "hetero" / "board-roots" / "fs_0" / "root" / "root" / "work"
        work.write_text("a week of it")
        cut(proxy)
        wire(proxy, stall=stall)
        for _turn in range(2):
            rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR, hetero_boot_timeout=2)
            assert rc != 0
            assert "jackie ran here before, so its root and this board stay its own" in output
            assert work.read_text() == "a week of it"
            with Store(proxy.state_db) as store:
                assert [(claim.instance, claim.board) for claim in store.claims()] == [("jackie", 0)]
        wire(proxy)
        for verb in ("stop_instance", "start_instance"):
            rc, output = plays.play(verb, instance="jackie")
            assert rc == 0, output
        assert work.read_text() == "a week of it"
        rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR)
        assert (rc, changed(output)) == (0, 0), output
    finally:
        proxy.remove()


@pytest.mark.parametrize(("owner", "shown"), [("ann", " -e owner=ann brings"), ("x;id", " brings")])
def test_the_way_back_is_as_it_was_asked_and_runs_nothing(tmp_path, owner, shown):
    """Lost: the start that is pasted, which is refused as another's; or a shell, to an owner of words that it obeys."""
    tmp_path.chmod(0o755)
    proxy = Proxy(tmp_path / "p1", 1)
    plays = Playbooks(tmp_path, ["p1"])
    try:
        rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR, owner=owner)
        assert rc == 0, output
        rc, output = plays.play("stop_instance", instance="jackie", owner=owner)
        assert rc == 0, output
        assert f"hetero.compute.start_instance -e instance=jackie{shown} it up" in output
    finally:
        proxy.remove()
