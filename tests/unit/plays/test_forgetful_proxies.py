# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbooks against a proxy whose state database is gone. If these fail, an operator is told that nothing is there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils import backups
from ansible_collections.hetero.compute.plugins.module_utils.boards.store import Store
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")


def test_status_and_terminate_say_that_the_database_is_gone(proxies):
    """Lost: the word of it. `terminate_instance --check` said "no such instance", rc 0, of one that runs."""
    folders, plays = proxies
    path = Path(folders["p1"].state_db)
    with Store(str(path), records=str(path.parent / "claims")) as store:
        store.claim("jackie", ["jackie"], "jo", {"name": "tp64.8x8"}, "debian", KEY, [0])
    copy = Path(backups.make(str(path))).name
    path.unlink()
    for playbook, flags in (("status", ()), ("terminate_instance", ("--check",)), ("reconcile", ("--check",))):
        rc, output = plays.play(playbook, *flags, instance="jackie")
        said = " ".join(output.split())
        assert rc != 0, output
        assert "/var/lib/hetero/state.db: is not there, and instances were made on this node" in said
        assert f"cp -p /var/lib/hetero/backups/{copy} /var/lib/hetero/state.db and then" in said
        assert "no such instance" not in said
    assert not path.exists()
