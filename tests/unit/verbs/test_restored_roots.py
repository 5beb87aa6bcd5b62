# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Roots at a restart of a proxy, and roots that are their instances' own.

If these fail, a tenant is locked out of a root, or one cannot be ended.
"""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.files.mounts import mounts_below
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import restore
from ansible_collections.hetero.compute.tests.unit.verbs.test_roots_in_others_places import (
    folder,
    is_refused,
    numbers,
    swap,
    two,
)

__all__ = ["two"]


def test_restore_goes_on_with_the_others(two):
    swap(two)
    said = []
    with two.proxy() as proxy:
        exports = restore.restore(proxy, said.append)
    assert exports == [], (exports, said)
    assert len(said) == 2, said
    swap(two)
    said.clear()
    with two.proxy() as proxy:
        assert len(restore.restore(proxy, said.append)) == 2, said


def test_lost_database_and_adoption(two):
    for name in os.listdir(two.state):
        if name.startswith("state.db"):
            (two.state / name).unlink()
    said = two.module("board_reconcile", timeout=10)
    with two.proxy() as proxy:
        got = sorted(claim.instance for claim in proxy.store.claims())
    assert got == ["bob", "jackie"], said
    assert not is_refused(two.provision("jackie"))
    assert (folder(two, 0) / "root" / "data").read_text() == "jackie's"
    assert not is_refused(two.terminate("jackie"))


def test_database_and_records_lost(two):
    for name in os.listdir(two.state):
        if name.startswith("state.db"):
            (two.state / name).unlink()
    subprocess.run(["rm", "-rf", str(two.state / "claims")], check=True)
    said = two.module("board_reconcile", timeout=10)
    with two.proxy() as proxy:
        got = sorted(claim.instance for claim in proxy.store.claims())
    print(got, json.dumps(said)[:3000])


def test_made_json_lost_and_told_anew(two):
    (folder(two, 0) / "made.json").unlink()
    results = two.provision("jackie")
    assert not is_refused(results), results
    assert (folder(two, 0) / "root" / "data").read_text() == "jackie's"
    assert (folder(two, 0) / "made.json").exists()


def test_made_json_lost_and_anothers_file_is_not_mounted(two):
    swap(two)
    (folder(two, 0) / "made.json").unlink()
    results = two.provision("jackie")
    assert is_refused(results)
    assert not (folder(two, 0) / "root" / "data").exists()
    mounted = [point for number in (0, 1) for point in mounts_below(str(folder(two, number)))]
    assert mounted == []


def test_half_removed(two):
    os.rename(folder(two, 0) / "made.json", folder(two, 0) / "removed.json")
    results = two.terminate("jackie")
    assert not is_refused(results), results
    assert not folder(two, 0).exists()


def test_half_removed_and_anothers_file_and_word_lost(two):
    """A removal that was cut off after its first step; bob's file lies there since; removed.json is damaged."""
    swap(two)
    (folder(two, 0) / "made.json").unlink()
    (folder(two, 0) / "removed.json").write_text("")
    bobs = (folder(two, 0) / "root.ext4").stat().st_ino
    results = two.terminate("jackie")
    assert bobs in numbers(two), results


@pytest.mark.parametrize("how", ["truncated", "garbage"])
def test_a_root_whose_superblock_is_gone_can_be_ended(two, how):
    with open(folder(two, 0) / "root.ext4", "r+b") as file:
        if how == "truncated":
            file.truncate(100)
        else:
            file.write(b"\xff" * 4096)
    results = two.terminate("jackie")
    assert not is_refused(results), results
