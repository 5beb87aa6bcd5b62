# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logs of consoles where the file system refuses something, with a real conserver. If these fail, what a tenant's board
says is written into the log of whoever had it before.

Tests boards/records/console_logs.py.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records import console_logs
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import console
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import consoles
from ansible_collections.hetero.compute.tests.unit.nodes.proxy.played_consoles import conserver

__all__ = ["conserver"]


def begun(conserver, monkeypatch):
    """A log with words of the tenant before, and one in its way that cannot be removed; the name it is set aside as."""
    monkeypatch.setattr(console_logs, "KEPT", 0)
    conserver.say("of who was before")
    os.mkdir(f"{conserver.log}-old")  # an operator's, and no log


def test_an_older_log_that_cannot_be_removed_keeps_no_boot_from_a_log_of_its_own(conserver, monkeypatch):
    """Lost: what the board says to its tenant, who finds an empty log, into the one that has the name of another."""
    begun(conserver, monkeypatch)
    conserver.site.claim(conserver.proxy)
    console.begin_anew(conserver.proxy, conserver.board)
    conserver.say("of its tenant")
    assert "of its tenant" in conserver.log.read_text()
    (said,) = [event.text for event in conserver.proxy.store.events() if event.phase == console.LOG]
    assert said.startswith(f"older logs beside {conserver.log} could not be removed: Is a directory")


def test_a_log_stays_where_no_new_one_can_be_made(conserver, monkeypatch):
    """Lost: the log, to a full disk: the console said that it is not there, and conserver wrote on elsewhere."""
    conserver.say("of who was before")

    def full(log):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), log)

    monkeypatch.setattr(console_logs, "_make", full)
    assert "No space left" in console_logs.begin_anew(conserver.proxy.config, conserver.board, None)
    assert console_logs.set_aside(str(conserver.log)) == []
    conserver.say("goes on")
    assert "of who was before" in conserver.log.read_text()


@pytest.mark.parametrize("name", [consoles.KEY, consoles.CERTIFICATE])
@pytest.mark.parametrize("way", ["gone", "empty"])
def test_a_half_of_the_key_is_made_anew(conserver, name, way):
    """Lost: all consoles, to a conserver that never starts again because its certificate is gone or empty."""
    path = Path(conserver.proxy.config.consoles_folder, name)
    path.unlink()
    if way == "empty":
        path.write_text("")
    user = console_user(conserver)
    assert consoles.written(conserver.proxy, user, check=True) == [str(path)]
    assert consoles.written(conserver.proxy, user, check=False) == [str(path)]
    assert "BEGIN CERTIFICATE" in path.read_text()
    assert consoles.written(conserver.proxy, user, check=False) == []


def console_user(conserver):
    """The account that the played conserver has."""
    return Path(conserver.proxy.config.consoles_folder, consoles.CONSERVER).owner()
