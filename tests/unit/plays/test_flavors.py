# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbook flavors, and flavors by their ids. If these fail, people ask for what nobody has to learn what there is."""

from __future__ import annotations

import json
import os
import time

import pytest

from ansible_collections.hetero.compute.plugins.plugin_utils.filters.flavors import flavors
from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR, changed

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")


def test_what_is_free_of_each(proxies):
    """Of a flavor the free ones and all that could serve it; one that nobody can serve is there all the same."""
    folders, plays = proxies

    def listed():
        rc, output = plays.play("flavors", json="true")
        assert (rc, changed(output)) == (0, 0), output
        (line,) = [line for line in output.splitlines() if line.startswith("{")]
        return {one["name"]: one for one in json.loads(line)["flavors"]}

    before = listed()
    there = before[FLAVOR]["most"]
    assert before[FLAVOR]["free"] == there > 1
    assert (before["tgx.8x8"]["free"], before["tgx.8x8"]["most"], before["tgx.8x8"]["flavorid"]) == (0, 0, 305)
    rc, output = plays.play("provision_instance", instance="jackie", flavor=str(before[FLAVOR]["flavorid"]))
    assert rc == 0, output
    assert f"wants {FLAVOR}: " in output
    assert listed()[FLAVOR] == {**before[FLAVOR], "free": there - 1}
    rc, output = plays.play("flavors")
    assert rc == 0, output
    (row,) = [line.split() for line in output.splitlines() if line.startswith(f"{FLAVOR} ")]
    assert row[:4] == [FLAVOR, str(before[FLAVOR]["flavorid"]), str(there - 1), str(there)]
    for folder in folders.values():
        (folder.folder / "down").touch()
    rc, output = plays.play("flavors")
    assert rc != 0
    assert "Could not be asked: p1, p2" in output
    assert "\nFLAVOR" not in output, "a table of zeros says nothing"
    for folder in folders.values():
        (folder.folder / "down").unlink()
    rc, output = plays.play("provision_instance", instance="bob", flavor="999")
    assert rc != 0
    assert "999 is no flavor: " in output


def test_what_is_reserved_for_others_is_not_free(proxies):
    """A board that flavors shows as free is one that a request gets."""
    folders, plays = proxies
    path = folders["p1"].folder / "etc" / "hetero" / "proxy.json"
    begin, end = (time.strftime("%Y-%m-%d %H:%MZ", time.gmtime(time.time() + 3600 * hours)) for hours in (-1, 9))
    entry = {"owner": "ann", "from": begin, "until": end, "flavor": FLAVOR, "count": 9}
    own = {FLAVOR: flavors(None)[FLAVOR]}
    path.write_text(json.dumps(dict(json.loads(path.read_text()), reservations={"table": [entry], "flavors": own})))

    def row(**more):
        rc, output = plays.play("flavors", **more)
        assert rc == 0, output
        (found,) = [line.split()[2:4] for line in output.splitlines() if line.startswith(f"{FLAVOR} ")]
        return [int(one) for one in found], [line for line in output.splitlines() if line.startswith(f"{FLAVOR}: ")]

    (free, most), told = row()
    assert 0 < free < most
    (line,) = told
    assert line.startswith(f"{FLAVOR}: {most - free} more free on p1, not for you: reserved: 9 {FLAVOR} for ann from ")
    assert row(owner="ann") == ([most, most], [])
