# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A site of any size, made up: boards files, what `status` saw last, and the same hosts as an INI and a YAML file.

The INI file is written from the boards, by what the inventory plugin promises, and not from what the plugin shows.
"""

from __future__ import annotations

import ast
import functools
import json
import shlex
import time
from pathlib import Path

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.board_records import Record
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import Claim
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.info import board_fields, claim_fields
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import board_states
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.boards_file import COLUMNS, parse, render
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import Wire
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.snapshots import snapshots

SAMPLE = Path(__file__).resolve().parents[1] / "roles" / "lab" / "files" / "tilera_boards"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBench0000000000000000000000000000000000000"
ARM = {"vendor": "arm", "arch": "aarch64", "features": ["neon", "crc32"], "topology": {"cores": "16"}}
#: Of 50 boards on a proxy the first ones are so, the next 18 are running, all others are off.
TROUBLE = (
    (board_states.ERROR, "stalled at tftp after 41 s, twice"),
    (board_states.MAINTENANCE, "fan"),
    (board_states.BOOTING, ""),
)
RUNNING = range(len(TROUBLE), 21)
GPUS = 4


def boards(number, first=0):
    """`number` boards with addresses of their own, two in three like the sample's first, one in three an ARM board."""
    tilera = parse(SAMPLE.read_text())[0]
    lines = []
    for board in range(number):
        high, middle, low = (first + board).to_bytes(3, "big")
        columns = dict(tilera.columns, id=board, ip=f"10.{high}.{middle}.{low}")
        columns.update(mac=f"02:00:00:{high:02x}:{middle:02x}:{low:02x}")
        if board % 3 == 2:
            columns.update(cpu_info=ARM, hypervisor_type="none")
        lines.append(" ".join(str(columns[key]) for key in COLUMNS[:-1]) + f" {json.dumps(columns['cpu_info'])}")
    return parse("\n".join(lines))


def record(board, now):
    """What a proxy would have recorded of a board."""
    place = board.id % 50
    if place < len(TROUBLE):
        state, note = TROUBLE[place]
        return Record(board.id, state, now - 41, power="on", power_seen=now - 3, note=note)
    if place not in RUNNING:
        return Record(board.id, power="off", power_seen=now - 3)
    name = f"i-{board.ip.replace('.', '-')}"
    flavor = {"name": "tp64.8x8", "memory_mb": 16384}
    claim = Claim(board.id, name, name, "jackie", flavor, "debian-12", KEY, now - 7200, now + 7200, KEY)
    return Record(board.id, board_states.RUNNING, now - 7190, power="on", power_seen=now - 3, claim=claim)


def proxy_answer(name, of_proxy, now):
    """What board_info returns on a proxy node, as a loop's result."""
    records = [record(board, now) for board in of_proxy]
    wiring = [Wire(pdu=f"pdu-{board.id // 24}", outlet=str(board.id % 24 + 1)) for board in of_proxy]
    return {
        "item": name,
        "boards": [board_fields(board, its, now, wire) for board, its, wire in zip(of_proxy, records, wiring)],
        "claims": [
            claim_fields(board, record, record.claim) for board, record in zip(of_proxy, records) if record.claim
        ],
    }


def host_answer(name):
    """What host_info returns on a GPU host, as a loop's result."""
    gpu = {"model": "Tesla C2050", "arch": "fermi", "healthy": True, "why_unhealthy": None, "unsupported": None}
    gpus = [dict(gpu, address=f"0000:{5 + card:02x}:00.0", holder=None, instance=None) for card in range(GPUS)]
    capacity = {key: {"total": 65536, "free": 65536} for key in ("memory_mb", "vcpus", "local_gb")}
    more = {"claims": [], "hypervisor": "LXC", "cpu_arch": "x86_64", "unsupported": None, "devices": []}
    return {"item": name, "gpus": gpus, "instances": [], "capacity": capacity, **more}


class Site:
    """What there is: `proxies` name → boards, `answers` of board_info, `seen` name → snapshot; GPU hosts likewise."""

    def __init__(self, proxies, boards_each, hosts):
        self.proxies = {f"proxy{number}": boards(boards_each, number * boards_each) for number in range(proxies)}
        now = round(time.time(), 3)
        self.answers = [proxy_answer(name, of_proxy, now) for name, of_proxy in self.proxies.items()]
        self.host_answers = [host_answer(f"gpu{number}") for number in range(hosts)]
        self.seen, self.seen_hosts = snapshots(self.answers), snapshots(self.host_answers, hosts=True)

    def hosts(self):
        """(name, groups, variables) of each host, as the documentation of the inventory plugin promises them."""
        for proxy, of_proxy in self.proxies.items():
            for board, seen in zip(of_proxy, self.seen[proxy]["boards"]):
                variables = {f"hetero_{key}": value for key, value in {**seen, "proxy": proxy}.items()}
                groups = [f"proxy_{proxy}", f"state_{board_state(seen)}", f"arch_{board.arch.lower()}"]
                yield f"{proxy}-{board.name}", groups, {"ansible_host": board.ip, **variables}
        for name, seen in self.seen_hosts.items():
            variables = {f"hetero_{key}": seen[key] for key in ("gpus", "instances", "capacity")}
            variables.update(hetero_hypervisor="lxc", hetero_gpus_total=GPUS, hetero_gpus_free=GPUS)
            yield name, ["hypervisor_lxc", "gpu_arch_fermi"], variables

    def write(self, folder, **options):
        """hetero.yml with its files, hosts.ini and hosts.yml; constructed.yml with `options` for these two."""
        (folder / "snapshots").mkdir(parents=True)
        for name, seen in {**self.seen, **self.seen_hosts}.items():
            # as playbook status writes them (to_nice_json)
            (folder / "snapshots" / f"{name}.json").write_text(json.dumps(seen, indent=4, sort_keys=True))
        for name, of_proxy in self.proxies.items():
            (folder / f"{name}.boards").write_text(render(of_proxy))
        hosts = [{"name": name, "hypervisor": "lxc"} for name in self.seen_hosts]
        proxies = [{"name": name, "boards_file": f"{name}.boards", "prefix": f"{name}-"} for name in self.proxies]
        ours = dict(plugin="hetero.compute.nodes", proxies=proxies, compute_hosts=hosts, snapshots="snapshots")
        # JSON is YAML
        (folder / "hetero.yml").write_text(json.dumps(dict(ours, snapshot_max_age=0, **options), indent=1))
        (folder / "constructed.yml").write_text(json.dumps(dict(plugin="constructed", **options), indent=1))
        (folder / "hosts.ini").write_text(self.ini())
        (folder / "hosts.yml").write_text(self.yaml())

    def ini(self):
        """Each host with its variables in its first group, and by name in the others."""
        first, others = {}, {}
        for name, groups, variables in self.hosts():
            line = " ".join([name, *(f"{key}={word(value)}" for key, value in variables.items())])
            first.setdefault(groups[0], []).append(line)
            for group in groups[1:]:
                others.setdefault(group, []).append(name)
        groups = [*first.items(), *others.items()]
        return "\n".join(line for group, lines in groups for line in (f"[{group}]", *lines, ""))

    def yaml(self):
        children = {}
        for name, groups, variables in self.hosts():
            children.setdefault(groups[0], {"hosts": {}})["hosts"][name] = variables
            for group in groups[1:]:
                children.setdefault(group, {"hosts": {}})["hosts"][name] = {}
        return json.dumps({"all": {"children": children}}, indent=1)


def board_state(seen):
    return seen["state"].replace(" ", "_")


def word(value):
    """A value as an INI inventory takes it: text as it is, unless it reads as something else, then as Python does."""
    return _text(value) if isinstance(value, str) else _quoted(repr(value))


@functools.lru_cache(maxsize=None)
def _text(value):
    try:
        ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return _quoted(value)
    return _quoted(repr(value))


def _quoted(text):
    """In double quotes where it has single ones, as people would."""
    return shlex.quote(text) if "'" not in text or set(text) & set('"\\$`') else f'"{text}"'
