# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The newest record of jackie's claim lies in another place than hers, such as that of a board that the boards file
does not name, and her own place and the database have older ones. If this fails, she loses the later end of her lease
to the printed word "remove this one".
"""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import backups
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.this_node import THIS_NODE
from ansible_collections.hetero.compute.tests.unit.verbs.test_adopting import reconcile, record
from ansible_collections.hetero.compute.tests.unit.verbs.test_contradictions import put_back


def said_of(site, name):
    result = reconcile(site)
    said = result["others"] + [one["found"] for board in result["boards"] for one in board["found"]]
    return [text for text in said if name in text]


def extended(site, name):
    """Her extension is in a file of this name only."""
    site.lease(1)
    copy, older = backups.make(site.params["state_db"]), record(site).read_text()
    site.lease(100)
    shutil.copy(record(site), site.state / "claims" / name)
    put_back(site, copy)
    record(site).write_text(older)
    os.utime(record(site), (1, 1))  # put back with the file's time


@pytest.mark.parametrize("name", ["board77.json", "board0.json.~1~", "board1.json"])
def test_a_newer_one_is_not_said_to_go(jackie, name):
    extended(jackie, name)
    (text,) = said_of(jackie, name)
    assert "remove this one" not in text


def test_that_of_an_unnamed_board_has_a_command_that_brings_it_back(jackie):
    extended(jackie, "board77.json")
    (text,) = said_of(jackie, "board77.json")
    subprocess.run(["sh", "-ec", text.split(f"run on {THIS_NODE}: ")[1]], check=True, timeout=600)
    reconcile(jackie)
    with jackie.proxy() as proxy:
        assert proxy.store.claim_of("jackie").expires == proxy.store.kept(0).claim.expires
    assert not (jackie.state / "claims" / "board77.json").exists()


def test_a_copy_there_may_go(jackie):
    shutil.copy(record(jackie), jackie.state / "claims" / "board77.json")
    (text,) = said_of(jackie, "board77.json")
    assert "remove this one once nobody wants it" in text
