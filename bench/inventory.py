# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Time and memory of an inventory of 10,000 boards, from boards files and snapshots, beside the same as an INI file.

`bench/inventory.py [PROXIES [BOARDS_EACH [TURNS]]]`, from the repository's root. That both show the same hosts, groups
and variables is looked at first. All ways take turns, so that a busy machine is busy for each of them.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, "build")

from big_site import Site
from goals import record, say
from measured import run

BIN = Path(sys.executable).parent
LIST = (str(BIN / "ansible-inventory"), "--list")
READ = """
import sys
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader
init_plugin_loader()
InventoryManager(DataLoader(), sources=sys.argv[2::2])
"""
TASKS = {"read": (sys.executable, "-c", READ), "--list": LIST}
GPU_HOSTS = 20
OURS, INI = "boards files and snapshots", "the same as INI"
#: Options that the user may add; INI has them from plugin constructed.
KEYED = {"keyed_groups": [{"key": "hetero_geometry", "prefix": "geometry"}]}
COMPOSED = {
    "compose": {"cores": "hetero_vcpus | default(1) * 4"},
    "groups": {"large": "hetero_local_gb | default(0) > 900"},
}


class Way:
    """One way to the same hosts: its files, the settings Ansible needs, and what was measured."""

    def __init__(self, folder, *files, **settings):
        self.sources = [word for file in files for word in ("-i", str(folder / file))]
        self.settings = settings
        self.output = folder / f"{files[0]}.output"
        self.seen = {}

    def measure(self, task, environment):
        seen = run([*TASKS[task], *self.sources], self.output, env=dict(environment, **self.settings))
        self.seen.setdefault(task, []).append(seen)
        return seen

    def median(self, task, what):
        return statistics.median(one[what] for one in self.seen[task])

    def shown(self):
        """What its --list printed last: {group: its hosts and groups}, {host: its variables}"""
        groups = json.loads(self.output.read_text())
        hosts = groups.pop("_meta")["hostvars"]
        return {name: sorted(itertools.chain(*members.values())) for name, members in groups.items()}, hosts


def environment(folder):
    """Nobody's settings; what a play would have."""
    (folder / "ansible.cfg").touch()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    more = {"ANSIBLE_COLLECTIONS_PATH": str(Path("build").resolve()), "ANSIBLE_HOME": str(folder / "home")}
    return dict(kept, **more, ANSIBLE_CONFIG=str(folder / "ansible.cfg"), LC_ALL="C.UTF-8")


def same(ways):
    """How many hosts there are, if the ways have listed the same ones; else it ends here, and says what differs."""
    (first, wanted), *others = ((name, way.shown()) for name, way in ways.items())
    for name, found in others:
        for what, ours, theirs in zip(("group", "host"), wanted, found):
            for key in sorted({*ours, *theirs}):
                if ours.get(key) != theirs.get(key):
                    sys.exit(f"{what} {key} is not the same\n{first}: {ours.get(key)}\n{name}: {theirs.get(key)}")
    return len(wanted[1])


def take_turns(ways, tasks, turns, environment):
    """Every task of every way, turn by turn."""
    for turn in range(turns):
        for task in tasks:
            for name, way in ways.items():
                seen = way.measure(task, environment)
                say(f"turn {turn + 1} of {turns}: {name}, {task}: {seen['seconds']:.1f} s, {seen['peak_mb']:.0f} MB")


def table(ways):
    print(f"\n{'':48}{'':8}{'seconds: median':>17}{'best':>8}{'worst':>8}{'processor':>11}{'peak MB':>9}")
    for name, way in ways.items():
        for task in way.seen:
            seconds = [one["seconds"] for one in way.seen[task]]
            numbers = f"{statistics.median(seconds):17.2f}{min(seconds):8.2f}{max(seconds):8.2f}"
            print(f"{name:48}{task:8}{numbers}{way.median(task, 'processor_seconds'):11.2f}"
                  f"{way.median(task, 'peak_mb'):9.0f}")  # fmt: skip
    print()


def beside(goal, ours, theirs, task):
    """Record the seconds that a task took in two ways; met where ours is no slower."""
    mine, other = (way.median(task, "seconds") for way in (ours, theirs))
    record(goal, f"{mine:.1f} s beside {other:.1f} s", mine <= other)


def ways_to(site, folder):
    """{name: way} in groups that show the same: as it is; with a keyed group; with compose and groups."""
    cache = {"ANSIBLE_INVENTORY_CACHE": "1", "ANSIBLE_INVENTORY_CACHE_PLUGIN": "ansible.builtin.jsonfile"}
    cache["ANSIBLE_INVENTORY_CACHE_CONNECTION"] = str(folder / "cache")
    plain, keyed, composed = folder / "plain", folder / "keyed", folder / "composed"
    for place, options in ((plain, {}), (keyed, KEYED), (composed, COMPOSED)):
        site.write(place, **options)
    (plain / "cached.hetero.yml").write_bytes((plain / "hetero.yml").read_bytes())
    return (
        {
            OURS: Way(plain, "hetero.yml"),
            INI: Way(plain, "hosts.ini"),
            "ours from the cache (the first turn writes it)": Way(plain, "cached.hetero.yml", **cache),
            "the same as YAML": Way(plain, "hosts.yml"),
        },
        {
            "ours with a keyed group": Way(keyed, "hetero.yml"),
            "INI and a keyed group (constructed)": Way(keyed, "hosts.ini", "constructed.yml"),
        },
        {
            "ours with compose and groups": Way(composed, "hetero.yml"),
            "INI, compose and groups (constructed)": Way(composed, "hosts.ini", "constructed.yml"),
        },
    )


def main(proxies=100, boards_each=100, turns=5):
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        settings = environment(folder)
        for group in ways_to(Site(3, 50, 2), folder / "small"):
            take_turns(group, ["--list"], 1, settings)
            say(f"{same(group)} hosts, and they are the same: {', '.join(group)}")
        say(f"{proxies * boards_each} boards behind {proxies} proxies, and {GPU_HOSTS} GPU hosts, are made up")
        plain, keyed, composed = ways_to(Site(proxies, boards_each, GPU_HOSTS), folder / "big")
        ours, ini, cached = list(plain.values())[:3]
        take_turns({OURS: ours, INI: ini}, TASKS, turns, settings)
        say(f"{same({OURS: ours, INI: ini})} hosts, and they are the same: {OURS}, {INI}")
        others = {name: way for group in (plain, keyed, composed) for name, way in group.items() if not way.seen}
        take_turns(others, ["read"], min(turns, 3), settings)
    table({**plain, **keyed, **composed})
    beside("10,000 boards read from their files", ours, ini, "read")
    beside("the same by ansible-inventory --list", ours, ini, "--list")
    peaks = [way.median("--list", "peak_mb") for way in (ours, ini)]
    record("the same, peak memory", "{:.0f} MB beside {:.0f} MB".format(*peaks), peaks[0] <= peaks[1])
    beside("the same from the inventory's cache", cached, ini, "read")
    for name, ways in (("the same with a keyed group", keyed), ("the same with compose and groups", composed)):
        mine, other = ways.values()
        beside(name, mine, other, "read")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
