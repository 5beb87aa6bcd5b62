# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A whole proxy in a folder (sweep/proxy_site.py) whose modules run as processes, and hands that change things."""

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import gone_boards
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import reconciliation
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.tests.unit.sweep.killing import Points
from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import Site


def pytest_collection_modifyitems(items):
    if os.geteuid() == 0:
        return
    for item in items:
        if "/verbs/" in str(item.fspath):
            item.add_marker(pytest.mark.skip(reason="overlay mounts need root: run as root"))


class VerbSite(Site):
    """The proxy, and hands that change things behind its back."""

    def module(self, name, **given):
        """A module that is to come to its end, with errors or without."""
        result = self._module(name, **given)
        assert result is not None, "killed"
        assert not result.get("broken"), result["msg"]
        return result

    def wire(self, board, **fields):
        path = self.folder / "proxy.json"
        config = json.loads(path.read_text())
        config["boards"][str(board)].update(fields)
        path.write_text(json.dumps(config))

    def pdu(self, faults=None, **outlets):
        """Turn outlets by hand (`board0="on"`), and set how the PDU misbehaves."""
        path = self.folder / "pdu-a.json"
        data = json.loads(path.read_text())
        data["outlets"].update({str(int(name[5:]) + 1): state for name, state in outlets.items()})
        path.write_text(json.dumps(dict(data, faults=faults or {})))

    def cut(self, board):
        """Turn an outlet off by hand, and with it the board that it feeds."""
        self.pdu(**{f"board{board}": "off"})
        boot = self.run_folder / "fake-boots" / f"board{board}"
        boot.write_text(json.dumps(dict(json.loads(boot.read_text()), on=None)))

    def copy_when_off(self):
        """A copy of the database, which has seen two boards off."""
        with self.proxy() as proxy:
            for board in range(2):
                proxy.store.power_seen(board, "off")
        return backups.make(self.params["state_db"])

    def lease(self, hours, **given):
        """Jackie's lease ends so many hours from now."""
        return self.module("board_lease", instance="jackie", hours=hours, **given)

    def turn(self):
        """One turn of the reaper, which came to its end."""
        (result,) = self.reap()
        assert not result.get("broken"), result
        return result

    def record(self, board):
        with self.proxy() as proxy:
            return proxy.store.record(board)

    def events(self, board, phase):
        with self.proxy() as proxy:
            boards = None if board is None else [board]
            return [event for event in proxy.store.events(boards=boards) if event.phase == phase]


@pytest.fixture(autouse=True)
def answering(monkeypatch):
    """Addresses at which a machine answers; what this machine's own network says of them is nobody's."""
    found = set()
    monkeypatch.setattr(gone_boards.ssh, "alive", lambda ip, limit: ip in found)
    return found


def played(folder, monkeypatch, boards):
    place = VerbSite(folder, Points(), boards)
    # A played boot answers at once or never.
    monkeypatch.setattr(reconciliation, "PATIENCE", 0.3)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_GANESHA", str(folder / "ganesha.json"))
    return place


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Two boards, two images, nobody's."""
    place = played(tmp_path, monkeypatch, 2)
    yield place
    place.tear_down()


@pytest.fixture
def ten(tmp_path, monkeypatch):
    """The same with ten boards."""
    place = played(tmp_path, monkeypatch, 10)
    yield place
    place.tear_down()


@pytest.fixture
def jackie(site):
    """The same, with jackie running on board 0."""
    assert not any(result.get("failed") for result in site.provision())
    return site
