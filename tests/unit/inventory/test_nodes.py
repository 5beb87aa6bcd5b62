# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory plugin as a user meets it: files in a folder, and the real ansible-inventory over them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import ansible
import pytest

ROOT = Path(__file__).resolve().parents[3]
SAMPLE = ROOT / "roles" / "lab" / "files" / "tilera_boards"


@pytest.fixture
def site(tmp_path):
    """A folder with the sample's boards file, and the inventory tool run in it."""
    collection = tmp_path / "collections" / "ansible_collections" / "hetero"
    collection.mkdir(parents=True)
    (collection / "compute").symlink_to(ROOT)
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "tilera_boards").write_bytes(SAMPLE.read_bytes())
    return Site(folder, tmp_path)


class Site:
    def __init__(self, folder, home):
        self.folder = folder
        (home / "ansible.cfg").touch()
        self.environment = dict(
            {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
            ANSIBLE_COLLECTIONS_PATH=str(home / "collections"),
            ANSIBLE_CONFIG=str(home / "ansible.cfg"),
            ANSIBLE_HOME=str(home / "ansible"),
            ANSIBLE_NOCOLOR="1",
            LC_ALL="C.UTF-8",
            # under ansible-test, ansible is importable here without being installed
            PYTHONPATH=str(Path(ansible.__file__).parents[1]),
        )

    def run(self, tool, *arguments):
        return subprocess.run(
            [sys.executable, "-m", f"ansible.cli.{tool}", *arguments],
            # away from the inventory's folder, so that relative paths are seen to start there
            cwd="/",
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    def write(self, name="hetero.yml", **config):
        # JSON is YAML
        path = self.folder / name
        path.write_text(json.dumps(dict(config, plugin="hetero.compute.nodes")))
        return str(path)

    def list(self, **config):
        """(groups, host variables, what was said on standard error)"""
        done = self.run("inventory", "-i", self.write(**config), "--list")
        assert done.returncode == 0, done.stderr
        groups = json.loads(done.stdout)
        hosts = groups.pop("_meta")["hostvars"]
        return {name: group.get("hosts", group) for name, group in groups.items()}, hosts, done.stderr

    def fails(self, name="hetero.yml", **config):
        self.environment["ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED"] = "1"
        # one plugin, so that other plugins' opinions of the file are not in the way
        self.environment["ANSIBLE_INVENTORY_ENABLED"] = "hetero.compute.nodes"
        done = self.run("inventory", "-i", self.write(name, **config), "--list")
        assert done.returncode != 0
        return " ".join(done.stderr.split())

    def snapshot(self, proxy, taken_at, *boards):
        (self.folder / "seen").mkdir(exist_ok=True)
        (self.folder / "seen" / f"{proxy}.json").write_text(json.dumps({"taken_at": taken_at, "boards": boards}))


def test_the_sample_as_hosts_groups_and_variables(site):
    """The least configuration must show every board with its address, its columns and its groups."""
    groups, hosts, said = site.list(boards_files=["tilera_boards"])
    names = [f"board{number}" for number in range(10)]
    assert said == ""
    assert list(hosts) == names
    assert groups["arch_tilepro64"] == groups["state_unknown"] == groups["proxy_proxy"] == names
    board9 = dict(hosts["board9"])
    assert board9.pop("hetero_cpu_info")["topology"] == {"cores": "64"}
    assert board9 == {
        "ansible_host": "10.0.2.10",
        "hetero_arch": "TILEPro64",
        "hetero_geometry": "8x8",
        "hetero_hypervisor_type": "tilera_hv",
        "hetero_hypervisor_version": "1",
        "hetero_id": 9,
        "hetero_instance": None,
        "hetero_ip": "10.0.2.10",
        "hetero_local_gb": 1000,
        "hetero_local_gb_used": 0,
        "hetero_mac": "00:1a:ca:00:58:38",
        "hetero_memory_mb": 16385,
        "hetero_memory_mb_used": 0,
        "hetero_proxy": "proxy",
        "hetero_state": "unknown",
        "hetero_vcpus": 10,
    }


def test_proxies_states_compute_hosts_and_the_users_own_groups(site):
    """One inventory for several proxies and hosts, with what was last seen; an old snapshot must not be believed."""
    site.snapshot(
        "proxy1",
        datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        {"id": 0, "state": "running", "instance": "jackie", "owner": "ann", "ip": "6.6.6.6", "Bad Key": 1},
        {"id": 1, "state": "power off"},
    )
    site.snapshot("proxy2", time.time() - 3600, {"id": 0, "state": "running", "instance": "old"})
    (site.folder / "seen" / "proxy3.json").write_text("{half a fi")
    groups, hosts, said = site.list(
        proxies=[
            {"name": "proxy1", "boards_file": "tilera_boards"},
            {"name": "proxy2", "boards_file": str(SAMPLE), "prefix": "p2-"},
            {"name": "proxy3", "boards_file": str(SAMPLE), "prefix": "p3-"},
        ],
        compute_hosts=[
            {"name": "gpu1", "hypervisor": "lxc", "vars": {"ansible_host": "192.0.2.7"}},
            {"name": "kvm1", "hypervisor": "kvm"},
            {"name": "bare1"},
        ],
        snapshots="seen",
        compose={"double": "hetero_vcpus * 2"},
        groups={"large": "hetero_local_gb | default(0) >= 1000"},
        keyed_groups=[{"key": "hetero_geometry", "prefix": "geometry"}],
    )
    assert groups.get("state_running") == ["board0"], said
    assert groups["state_power_off"] == ["board1"]
    assert groups["proxy_proxy2"] == [f"p2-board{number}" for number in range(10)]
    assert groups["hypervisor_lxc"] == ["gpu1"]
    assert groups["hypervisor_kvm"] == ["kvm1"]
    assert groups["large"] == ["board9", "p2-board9", "p3-board9"]
    assert len(groups["geometry_8x8"]) == 30
    board0 = hosts["board0"]
    assert (board0["hetero_instance"], board0["hetero_owner"], str(board0["double"])) == ("jackie", "ann", "20")
    assert (board0["hetero_ip"], board0["ansible_host"]) == ("10.0.2.1", "10.0.2.1")
    assert not any("Bad" in name for name in board0)
    assert (hosts["p2-board0"]["hetero_state"], hosts["p2-board0"]["hetero_instance"]) == ("unknown", None)
    assert hosts["gpu1"] == {"ansible_host": "192.0.2.7", "hetero_hypervisor": "lxc"}
    assert "bare1" in groups["ungrouped"]
    assert "proxy3.json" in said
    assert "are shown as unknown" in " ".join(said.split())


GPUS = [
    {"address": "0000:05:00.0", "model": "M2090", "arch": "fermi", "healthy": True, "holder": "ml-7"},
    {"address": "0000:06:00.0", "model": "M2090", "arch": "fermi", "healthy": True, "holder": None},
    {"address": "0000:07:00.0", "model": "{{ 6 * 7 }}", "arch": "kepler", "healthy": False, "holder": None},
    {"address": "0000:03:00.0", "arch": None, "healthy": True, "holder": None, "unsupported": "is shown only"},
]


def test_gpus_of_compute_hosts_by_their_snapshots(site):
    """Who asks for group gpu_arch_fermi gets the hosts that have one, also when status was last run yesterday."""
    seen = site.folder / "seen"
    seen.mkdir()

    def snapshot(host, taken_at, **more):
        content = dict({"gpus": GPUS, "instances": [{"instance": "ml-7"}], "capacity": {}, "error": None}, **more)
        (seen / f"{host}.json").write_text(json.dumps(dict(content, taken_at=taken_at)))

    snapshot("gpu1", time.time())
    snapshot("gpu2", time.time() - 86400)
    snapshot("gpu3", time.time(), gpus=[], error="did not answer")
    snapshot("gpu4", time.time(), gpus="many")
    hosts = [{"name": f"gpu{number}", "hypervisor": "lxc"} for number in range(1, 6)]
    assert site.list(accelerator_hosts=hosts, snapshots="seen") == site.list(compute_hosts=hosts, snapshots="seen")
    groups, hosts, said = site.list(compute_hosts=hosts, snapshots="seen")
    assert groups["gpu_arch_fermi"] == groups["gpu_arch_kepler"] == ["gpu1", "gpu2"]
    gpu1, gpu2 = hosts["gpu1"], hosts["gpu2"]
    assert (gpu1["hetero_gpus_total"], gpu1["hetero_gpus_free"]) == (3, 1)
    assert [gpu["holder"] for gpu in gpu1["hetero_gpus"]] == ["ml-7", None, None, None]
    assert gpu1["hetero_gpus"][2]["model"] == {"__ansible_unsafe": "{{ 6 * 7 }}"}
    assert gpu1["hetero_instances"] == [{"instance": "ml-7"}]
    assert (gpu2["hetero_gpus_total"], gpu2["hetero_gpus_free"], gpu2["hetero_instances"]) == (3, None, None)
    assert {(gpu["holder"], gpu["healthy"]) for gpu in gpu2["hetero_gpus"]} == {("unknown", None)}
    assert hosts["gpu3"] == hosts["gpu4"] == hosts["gpu5"] == {"hetero_hypervisor": "lxc"}
    assert "gpu4.json: is not" in " ".join(said.split())
    assert "gpu3.json" not in said


def test_a_snapshots_age_is_the_users_choice(site):
    """Who takes a snapshot once a day wants to see it; a time zone must not make it old."""
    taken = datetime.now(timezone(timedelta(hours=5))) - timedelta(hours=2)
    site.snapshot("proxy", taken.isoformat(), {"id": 3, "state": "error"})
    config = {"boards_files": ["tilera_boards"], "snapshots": "seen"}
    assert "state_error" not in site.list(**config)[0]
    assert site.list(**config, snapshot_max_age=8000)[0]["state_error"] == ["board3"]
    assert site.list(**config, snapshot_max_age=0)[0]["state_error"] == ["board3"]


def test_words_from_outside_are_never_templates(site):
    """A tenant who names an instance must not run code on the controller; an author's own templates must work."""
    site.snapshot("proxy", time.time(), {"id": 0, "state": "running", "instance": "{{ 6 * 7 }}"})
    text = SAMPLE.read_text(encoding="utf-8").replace("TILEmpower", "{{ 6 * 7 }}", 1)
    (site.folder / "tilera_boards").write_text(text)
    config = site.write(
        boards_files=["tilera_boards"],
        snapshots="seen",
        compute_hosts=[{"name": "gpu1", "vars": {"mine": "{{ 6 * 7 }}"}}],
    )
    message = "{{ hetero_instance }}|{{ hetero_cpu_info.model }}|{{ hostvars['gpu1'].mine }}"
    done = site.run("adhoc", "board0", "-i", config, "-m", "ansible.builtin.debug", "-a", json.dumps({"msg": message}))
    assert '"msg": "{{ 6 * 7 }}|{{ 6 * 7 }}|42"' in done.stdout, done.stdout + done.stderr


def test_words_from_outside_say_not_what_stands_for_braces(site):
    """Lost: the controller, to the root of a node, or to whom it lends a board: without a brace, by the first line of a
    template, which says what else begins one."""
    theirs = "#jinja2:variable_start_string:'[[',variable_end_string:']]'\n[[ 6 * 7 ]]"
    site.snapshot("proxy", time.time(), {"id": 0, "state": "running", "note": theirs, "disks": [theirs]})
    config = site.write(boards_files=["tilera_boards"], snapshots="seen")
    said = {"msg": "{{ hetero_note == theirs }} {{ hetero_disks[0] == theirs }}"}
    more = ["-e", json.dumps({"theirs": {"__ansible_unsafe": theirs}})]
    done = site.run("adhoc", "board0", "-i", config, "-m", "ansible.builtin.debug", "-a", json.dumps(said), *more)
    assert '"msg": "True True"' in done.stdout, done.stdout + done.stderr


def test_every_defect_of_every_file_is_told(site):
    """Mending files one defect a run is what the parser is there to spare an operator."""
    (site.folder / "one").write_text('0 10.0.2.300 zz 1 1 1 1 1 hv 1 {"arch":"x"}\n')
    (site.folder / "two").write_text("0 10.0.2.1\n")
    said = site.fails(boards_files=["one", "two", "three"])
    assert "one:1:3: ip is not an IPv4 address: '10.0.2.300'" in said
    assert "one:1:14: mac is not a MAC address: 'zz'" in said
    assert "two:1:11: 2 columns where 11 are needed" in said
    assert "three: cannot be read: No such file or directory" in said


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (
            {"proxies": [{"name": name, "boards_file": "tilera_boards"} for name in ("proxy1", "proxy2")]},
            "two hosts would be called board0: one from tilera_boards of proxy proxy1, "
            "one from tilera_boards of proxy proxy2: list its file under proxies with a prefix",
        ),
        (
            {"boards_files": ["tilera_boards"], "compute_hosts": [{"name": "board7"}]},
            "two hosts would be called board7: one from tilera_boards of proxy proxy, one from compute_hosts",
        ),
        (
            {"proxies": [{"name": "a", "boards_file": "x"}, {"name": "a", "boards_file": "y"}]},
            "two proxies are called a",
        ),
        ({"proxies": None}, "name some proxies, boards_files or compute_hosts"),
        ({"proxies": [{"name": "../etc", "boards_file": "x"}]}, "'../etc' cannot be in a name"),
        ({"proxies": [{"name": "a", "boardsfile": "x"}]}, "missing required arguments: boards_file found in proxies"),
        ({"compute_hosts": [{"name": "a", "hypervisor": "xen"}]}, "value of hypervisor must be one of: lxc, kvm"),
    ],
)
def test_a_wrong_inventory_file_says_what_to_change(site, config, text):
    """Two boards under one name would be one host, and a play would reach the wrong machine."""
    assert text in site.fails(**config)


def test_an_option_that_is_none_is_a_warning(site):
    """Lost: the hosts, or the states, that a misspelt option names; nothing else said that it was not read."""
    hosts = dict(compute_host=[{"name": "gpu1"}], boards_files=["tilera_boards"], snapshot="snapshots", x_y="z")
    _groups, found, said = site.list(strict=False, keyed_groups=[], cache=False, **hosts)
    said = " ".join(said.split())
    assert len(found) == 10
    assert "compute_host is no option of this plugin, and says nothing: write compute_hosts" in said
    assert "snapshot is no option of this plugin, and says nothing: write snapshots" in said
    assert "x_y is no option of this plugin, and says nothing: leave it out" in said
    assert said.count("is no option") == 3, said
    assert "boards_file is no option of this plugin, and says nothing: write boards_files" in " ".join(
        site.fails(boards_file=["tilera_boards"]).split()
    )


@pytest.mark.parametrize("text", ["", "# none yet\n"])
@pytest.mark.parametrize("cache", [False, True])
def test_a_boards_file_without_boards_is_a_warning(site, text, cache):
    """Lost: the only sign of a file that was cut off; its boards are no hosts any more, and no play says so."""
    (site.folder / "empty").write_text(text)
    proxies = [{"name": "p1", "boards_file": "empty"}, {"name": "p2", "boards_file": "tilera_boards"}]
    cached = dict(cache=True, cache_plugin="jsonfile", cache_connection=str(site.folder / "cache")) if cache else {}
    for _time in range(1 + cache):
        _groups, hosts, said = site.list(proxies=proxies, **cached)
        assert len(hosts) == 10
        said = " ".join(said.split())
        assert f"{site.folder}/empty of proxy p1 names no boards: add a line for each board: id ip mac" in said
        assert "of proxy p2" not in said


def test_other_files_are_left_alone(site):
    """A folder as inventory has files of other plugins in it."""
    site.environment["ANSIBLE_INVENTORY_ENABLED"] = "hetero.compute.nodes"
    said = site.run("inventory", "-i", site.write("boards.yml", boards_files=["tilera_boards"]), "--list").stderr
    assert "Unable to parse" in said
    config = site.write("my.hetero.yml", boards_files=["tilera_boards"])
    assert json.loads(site.run("inventory", "-i", config, "--host", "board3").stdout)["hetero_id"] == 3


def test_cache_is_used_until_flushed_or_pointed_elsewhere(site):
    """Large files on a slow share are read once; a new path in the inventory file is not answered from the cache."""
    cached = {"cache": True, "cache_plugin": "jsonfile", "cache_connection": str(site.folder / "cache")}
    config = dict(cached, boards_files=["tilera_boards"])
    assert len(site.list(**config)[1]) == 10
    first = SAMPLE.read_text(encoding="utf-8").splitlines(keepends=True)[:5]
    (site.folder / "tilera_boards").write_text("".join(first))
    groups, hosts, said = site.list(**config)
    assert (len(hosts), len(groups["arch_tilepro64"]), said) == (10, 10, "")
    assert hosts["board9"]["hetero_cpu_info"]["vendor"] == "tilera"
    play = site.folder / "play.yml"
    play.write_text('[{"hosts": "all"}]')
    site.run("playbook", "-i", site.write(**config), "--flush-cache", "--list-hosts", str(play))
    assert list(site.list(**config)[1]) == ["board0"]
    (site.folder / "other").write_bytes(SAMPLE.read_bytes())
    assert len(site.list(**dict(cached, boards_files=["other"]))[1]) == 10
