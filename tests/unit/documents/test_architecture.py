# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guide on how the collection is built: its picture, its states, and its recipes, followed in a copy.

If these fail, who adds something by the page touches the wrong files, or gets something that does not work. The recipes
for drivers are in test_guide_drivers.py.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys

import pytest
import tomllib

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host.host import Host
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.release import RELEASE
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import board_states, instance_states
from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT, guide, named
from ansible_collections.hetero.compute.tests.unit.images.packing import KEY, image_tar

GUIDE = guide("architecture")
PACKAGE = "ansible_collections.hetero.compute.plugins"
FLAVOR = dict(name="small", memory_mb=64, vcpus=1, extra_specs=dict(hypervisor="s== LXC"))


@pytest.fixture
def tree(tmp_path):
    """A copy of the plugins: a function that adds a block of the page to a file of it, and one that runs a program."""
    copy = tmp_path / "collections" / "ansible_collections" / "hetero" / "compute" / "plugins"
    shutil.copytree(ROOT / "plugins", copy, ignore=shutil.ignore_patterns("__pycache__"))
    house = copy / "module_utils" / "_hetero"

    class Tree:
        def add(self, block, path):
            file = house / path
            file.write_text((file.read_text() if file.exists() else "") + "\n\n" + named(GUIDE, block))

        def change(self, path, old, new):
            text = (copy / path).read_text()
            assert old in text
            (copy / path).write_text(text.replace(old, new))

        def run(self, argv, given=""):
            env = dict(os.environ, PYTHONPATH=str(tmp_path / "collections"), PYTHONDONTWRITEBYTECODE="1")
            python = [sys.executable, *argv]
            return subprocess.run(
                python, input=given, env=env, capture_output=True, text=True, timeout=600, check=False
            )

        def instance(self, **params):
            done = self.run(["-m", f"{PACKAGE}.modules.instance"], json.dumps({"ANSIBLE_MODULE_ARGS": params}))
            assert done.stdout.strip(), done.stderr
            return json.loads(done.stdout)

    return Tree()


def test_the_picture_shows_each_room_in_its_order():
    """Lost: the way down, to a reader who looks for a room where it no longer is."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    shown = re.findall(r"(?:^|  )(\w+)/(?= )", named(GUIDE, "house"), re.MULTILINE)
    tops = [name for name in shown if (ROOT / "plugins" / "module_utils" / "_hetero" / name).is_dir()]
    layers = [name for line in contracts[0]["layers"] for name in line.split(" | ")]
    assert [name for name in tops if name in layers] == [name for name in layers if name in tops]
    said = named(GUIDE, "house")
    assert [name for name in layers if f"{name}/" not in said] == []
    boards = next(one["layers"] for one in contracts if one.get("containers") == ["house.boards"])
    order = [GUIDE.index(f"``{name}``") for name in boards]
    assert order == sorted(order)


@pytest.mark.parametrize(
    ("name", "ways"), [("board-states", board_states.TRANSITIONS), ("instance-states", instance_states.TRANSITIONS)]
)
def test_the_ways_between_states_are_those_of_the_database(name, ways):
    """Lost: what an operator reads, before they do by hand what no verb does."""
    table = GUIDE[GUIDE.index(f":name: {name}") :].split("\n\n", 2)[1]
    cells = re.findall(r"^   (?:\* -|  -) (.*)$", table, re.MULTILINE)[2:]
    assert dict(zip(cells[::2], cells[1::2])) == {state: ", ".join(sorted(to)) for state, to in ways.items()}


def test_a_command_of_nodes(tree):
    tree.add("command", "nodes/proxy/release.py")
    tree.add("command-registry", "nodes/hetero.py")
    done = tree.run(["-c", f"from {PACKAGE}.module_utils._hetero.nodes.hetero import main; main(['release'])"])
    assert (done.stdout, done.stderr) == (f"{RELEASE}\n", "")


@pytest.mark.dear
def test_a_state_of_instances(tree, tmp_path):
    tree.add("verb", "compute_host/lifecycle.py")
    tree.change(
        "module_utils/_hetero/compute_host/lifecycle.py",
        "from ..core.deadline import Deadline\n",
        "from ..core.command import command\nfrom ..core.deadline import Deadline\n",
    )
    tree.add("verb-registry", "instances/kinds/compute_host.py")
    tree.change("module_utils/_hetero/core/argument_spec.py", '"extended", "absent"', '"extended", "absent", "frozen"')
    for name in ("run", "state"):
        (tmp_path / name).mkdir()
    section = dict(
        lxcpath=str(tmp_path / "lxc"),
        unprivileged=False,
        addresses=["10.0.81.10", "10.0.81.20"],
        default_image="debian",
    )
    host = dict(state_folder=str(tmp_path / "state"), run_folder=str(tmp_path / "run"), lxc=section)
    (tmp_path / "host.json").write_text(json.dumps(host))
    about = {"image.json": json.dumps(dict(arch=platform.machine()))}
    with Host(str(tmp_path / "host.json")) as opened:
        opened.images.import_image(image_tar(tmp_path / "debian.tar", **about), "debian")
    asked = dict(instance="ml", kind="container", config=str(tmp_path / "host.json"))
    claimed = tree.instance(**asked, state="present", flavor=FLAVOR, owner="jo", ssh_public_key=KEY)
    assert "failed" not in claimed, claimed
    assert "does not run, so nothing in it can stand still" in tree.instance(**asked, state="frozen")["msg"]


@pytest.mark.dear
def test_a_kind_of_instance(tree, tmp_path):
    tree.add("kind", "instances/kinds/jail.py")
    tree.add("kind-names", "site/kinds.py")
    tree.add("kind-registry", "instances/kinds/registry.py")
    asked = dict(instance="ml", kind="jail", config=str(tmp_path), owner="jo", background=True)
    for state, changed in (("running", True), ("running", False), ("absent", True), ("absent", False)):
        result = tree.instance(**asked, state=state)
        assert result.get("changed") is changed, result
        assert (tmp_path / "ml").is_dir() == (state == "running")
        assert result["instances"][0]["state"] == {"running": "running", "absent": "gone"}[state]
