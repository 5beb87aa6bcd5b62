# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An inventory that grows: the same as an INI file says, and no more work for a board when there are more boards.

bench/inventory.py measures seconds; here calls are counted, which no busy machine changes.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from ansible_collections.hetero.compute.bench.big_site import Site

#: Reads each inventory in turn; prints of each what it shows, all calls, and how often Jinja compiled something.
READER = """
import cProfile, json, pstats, sys
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader
init_plugin_loader()
for path in sys.argv[1:]:
    profile = cProfile.Profile()
    found = profile.runcall(InventoryManager, DataLoader(), sources=[path])
    statistics = pstats.Stats(profile)
    compiled = sum(
        entry[1]
        for (file, _line, name), entry in statistics.stats.items()
        if name == "compile_expression" and file.endswith("jinja2/environment.py")
    )
    hosts = {name: dict(host.vars, inventory_file=None) for name, host in found.hosts.items()}
    groups = {name: sorted(map(str, members)) for name, members in found.get_groups_dict().items() if members}
    shown = {"hosts": hosts, "groups": groups, "calls": statistics.total_calls, "compiled": compiled}
    print(json.dumps(shown, default=str))
"""


@pytest.fixture
def read(tmp_path, monkeypatch):
    """A function: inventory files → what is shown of each, and the work that it took."""
    monkeypatch.setenv("ANSIBLE_CONFIG", str(tmp_path / "ansible.cfg"))
    monkeypatch.setenv("ANSIBLE_HOME", str(tmp_path / "home"))
    (tmp_path / "ansible.cfg").touch()

    def reading(*paths):
        command = [sys.executable, "-c", READER, *map(str, paths)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=3000, check=False)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return reading


def test_boards_files_and_snapshots_show_what_an_ini_file_would(tmp_path, read):
    """Who moves from INI files must find each host, group and variable again, and the benchmark must compare these."""
    Site(proxies=2, boards_each=55, hosts=2).write(tmp_path / "site")
    ours, ini, yaml = read(*(tmp_path / "site" / name for name in ("hetero.yml", "hosts.ini", "hosts.yml")))
    assert len(ours["hosts"]) == 112
    assert ours["hosts"]["proxy1-board3"]["hetero_instance"] == "i-10-0-0-58"
    assert ours["hosts"] == ini["hosts"] == yaml["hosts"]
    assert ours["groups"] == ini["groups"] == yaml["groups"]


def test_a_board_costs_the_same_among_many(tmp_path, read):
    """Ten thousand boards would take hours if each cost more the more there are; Jinja is the dearest part of it."""
    keyed = {"keyed_groups": [{"key": "hetero_geometry", "prefix": "geometry"}]}
    composed = {"compose": {"cores": "hetero_vcpus * 4"}, "groups": {"large": "hetero_local_gb > 900"}, **keyed}
    for name, proxies, options in (
        ("start", 1, {}),
        # what is made up is the same on each proxy node
        ("few", 3, {}),
        ("more", 6, {}),
        ("many", 12, {}),
        ("keyed", 1, keyed),
        ("composed", 1, composed),
    ):
        Site(proxies, boards_each=50, hosts=0).write(tmp_path / name, **options)
    names = ("start", "few", "more", "many", "keyed", "composed")
    seen = dict(zip(names, read(*(tmp_path / name / "hetero.yml" for name in names))))
    calls = {name: one["calls"] for name, one in seen.items()}
    assert calls["many"] - calls["more"] < 2.1 * (calls["more"] - calls["few"]), calls
    assert seen["many"]["compiled"] == seen["keyed"]["compiled"] == 0
    assert "geometry_8x8" in seen["keyed"]["groups"]
    assert seen["composed"]["compiled"] == 50 * 2, "two expressions, and a name"
    assert seen["composed"]["hosts"]["proxy0-board0"]["cores"] == 40
