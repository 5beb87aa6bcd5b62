# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What lab_up says: at its end how to go on, and of a lab that is up with other options."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.tests.builds import shared
from ansible_collections.hetero.compute.tests.warm.plays import run

ROOT = Path(__file__).resolve().parents[3]

PROGRAM = Path(sys.executable).parent / "ansible-playbook"
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="the lab needs root")


def played(folder, *argv, **options):
    """What ansible-playbook printed, typed in this folder, and how it ended."""
    env = dict(os.environ, PWD=str(folder), ANSIBLE_COLLECTIONS_PATH=str(ROOT / "build"), **shared())
    given = json.dumps({"ansible_python_interpreter": sys.executable, **options})
    rc, out, errors = run([PROGRAM, *argv, "-e", given], folder, env, 3000)
    return rc, out + errors


NEXT = [
    {
        "hosts": "localhost",
        "gather_facts": False,
        "tasks": [{"ansible.builtin.include_role": {"name": "hetero.compute.lab", "tasks_from": "next.yml"}}],
    }
]
KINDS = {"nvme", "virtio-scsi-pci", "scsi-hd", "sd-card"}
ASK = "hetero.compute.provision_instance -e instance=jackie -e flavor="


@pytest.mark.parametrize(
    ("argv", "options", "says"),
    [
        (
            ["-i", "localhost,"],
            {},
            [
                "next     ansible-playbook hetero.compute.proxy -i .lab/inventory",
                f"then     ansible-playbook {ASK}tp64.8x8 -i .lab/inventory",
                "to end   ansible-playbook hetero.compute.lab_down",
            ],
        ),
        (
            ["-i", ".lab/inventory"],
            {"lab_proxy": "none", "lab_gpu_hosts": [{"name": "gpu1"}]},
            [
                "next     ansible-playbook hetero.compute.gpu_host",
                f"then     ansible-playbook {ASK}cg1.xlarge",
                "to end   ansible-playbook hetero.compute.lab_down",
            ],
        ),
        (
            ["-i", "localhost,"],
            {"lab_folder": "/srv/two labs"},
            [
                "next     ansible-playbook hetero.compute.proxy -i '/srv/two labs/inventory'",
                f"then     ansible-playbook {ASK}tp64.8x8 -i '/srv/two labs/inventory'",
                "to end   ansible-playbook hetero.compute.lab_down -e 'lab_folder=\"/srv/two labs\"'",
            ],
        ),
    ],
    ids=["from the archive", "in a clone, with GPUs", "elsewhere"],
)
def test_its_last_lines_are_the_next_commands(tmp_path, argv, options, says):
    """Lost: who has the collection's archive alone sees that the lab is up, and no page to hand on what to type."""
    (tmp_path / ".lab" / "inventory").mkdir(parents=True)
    (tmp_path / ".lab" / "inventory" / "lab.yml").write_text("all: {}\n")
    (tmp_path / "next.yml").write_text(json.dumps(NEXT))
    code, said = played(tmp_path, *argv, "next.yml", **options)
    assert code == 0, said
    assert [line[8:] for line in said.splitlines() if line.startswith("lab     ")] == says


def test_a_board_has_disks_by_several_buses_each_by_its_own_name(tmp_path):
    """Lost: a disk that no wipe touches, since the proxy knows it by a name that the board has no disk by."""
    disks = [{"board": 0, "bus": bus} for bus in ("nvme", "scsi", "sd", "nvme", "scsi")]
    role = ROOT / "roles" / "lab"
    template = {"src": str(role / "templates" / "lab.json.j2"), "dest": str(tmp_path / "lab.json")}
    names = {"content": "{{ _lab_wires | map(attribute='disks') | to_json }}", "dest": str(tmp_path / "names")}
    play = json.loads(json.dumps(NEXT))
    play[0]["connection"] = "local"
    play[0]["tasks"][0]["ansible.builtin.include_role"]["public"] = True
    play[0]["tasks"] += [{"ansible.builtin.template": template}, {"ansible.builtin.copy": names}]
    (tmp_path / "disks.yml").write_text(json.dumps(play))
    code, said = played(tmp_path, "-i", "localhost,", "disks.yml", lab_disks=disks, role_path=str(role))
    assert code == 0, said
    board, *others = json.loads((tmp_path / "names").read_text())
    assert board == ["/dev/nvme0n1", "/dev/sda", "/dev/mmcblk0", "/dev/nvme1n1", "/dev/sdb"]
    assert [names for names in others if names] == []
    outlets = json.loads((tmp_path / "lab.json").read_text())["pdus"]["pdu-a"]["outlets"]
    argv = outlets["5"]["argv"]
    devices = [word.split(",")[0] for word in argv[argv.index("-drive") :] if word.split(",")[0] in KINDS]
    assert devices == ["nvme", "virtio-scsi-pci", "scsi-hd", "sd-card", "nvme", "scsi-hd"]


def machine_lab(folder, targets):
    """The record of a lab whose proxy node is a machine, with these files on its disk."""
    (folder / "nodes" / "proxy1").mkdir(parents=True)
    (folder / "nodes" / "proxy1" / "disk").touch()
    node = {"kind": "machine", "binds": [{"source": "/somewhere", "target": target} for target in targets]}
    lab = {"folder": str(folder), "namespace": "hetero-none", "nodes": {"proxy1": node}, "images": []}
    lab["pdus"] = {"pdu-a": {}, "pdu-b": {}}
    (folder / "lab.json").write_text(json.dumps(lab))
    return (folder / "lab.json").read_text()


HAS = ["/srv/images/debian-12.tar", "/var/log/hetero/consoles"]


@AS_ROOT
@pytest.mark.parametrize(
    ("asked", "lacks"),
    [
        ({"lab_disks": [{"board": 7}]}, "proxy1: /srv/images/ram.tar"),
        ({"lab_kvm_hosts": [0]}, "proxy1: /srv/images/debian-12-kvm.tar"),
    ],
    ids=["a disk", "a KVM host"],
)
def test_a_node_that_is_up_is_asked_for_no_image_that_it_cannot_get(tmp_path, asked, lacks):
    """Lost: a lab that worked, whose next set-up ends with `no such file or folder`."""
    before = machine_lab(tmp_path, HAS)
    given = {"lab_folder": str(tmp_path), "lab_proxy": "machine", **asked}
    code, said = played(ROOT, "-i", "localhost,", "hetero.compute.lab_up", **given)
    words = " ".join(said.split())
    assert code == 2, said
    assert f"got no mount for when it started ({lacks}): end it first (make lab-down, or" in words, said
    assert (tmp_path / "lab.json").read_text() == before
    assert sorted(os.listdir(tmp_path)) == ["lab.json", "nodes"]


@AS_ROOT
def test_another_disk_where_there_is_one_is_added(tmp_path):
    """Lost: what a lab that is up could take until now. A dry run goes as far as the lab's folders."""
    machine_lab(tmp_path, [*HAS, "/srv/images/ram.tar"])
    given = {"lab_folder": str(tmp_path), "lab_proxy": "machine", "lab_disks": [{"board": 7}, {"board": 8}]}
    _code, said = played(ROOT, "-i", "localhost,", "hetero.compute.lab_up", "--check", **given)
    assert "TASK [hetero.compute.lab : Folders]" in said, said
    assert "got no mount" not in said


@AS_ROOT
def test_a_lab_that_is_up_is_not_forgotten(tmp_path):
    """Lost: the memory and the ports of nodes and PDUs that run on, and that lab_down does not find any more."""
    lab = {"folder": str(tmp_path), "namespace": "hetero-none", "images": [], "pdus": {"pdu-a": {}, "pdu-b": {}}}
    before = json.dumps(dict(lab, nodes={"proxy1": {"kind": "container"}, "gpu1": {"kind": "container"}}))
    (tmp_path / "lab.json").write_text(before)
    given = {"lab_folder": str(tmp_path), "lab_proxy": "none", "lab_gpu_hosts": [{"name": "gpu1"}]}
    code, said = played(ROOT, "-i", "localhost,", "hetero.compute.lab_up", **given)
    assert code == 2, said
    assert "A lab with proxy1, pdu-a, pdu-b is up in" in said.replace("\n", " "), said
    assert (tmp_path / "lab.json").read_text() == before
    assert sorted(os.listdir(tmp_path)) == ["lab.json"]


@AS_ROOT
def test_a_node_that_is_up_is_made_no_other_kind(tmp_path):
    """Lost: a container that runs on after lab_down, which looks for a machine then."""
    before = machine_lab(tmp_path, HAS)
    code, said = played(ROOT, "-i", "localhost,", "hetero.compute.lab_up", "--check", lab_folder=str(tmp_path))
    assert code == 2, said
    why = f"A lab is up in {tmp_path}, and of it proxy1 is a machine, and no container: end it first (make lab-down, or"
    assert why in " ".join(said.split()), said
    assert (tmp_path / "lab.json").read_text() == before
    assert sorted(os.listdir(tmp_path)) == ["lab.json", "nodes"]


@AS_ROOT
@pytest.mark.parametrize("kind", ["container", "machine"])
def test_lab_down_ends_what_runs_of_a_node_whatever_kind_its_file_says(tmp_path, kind):
    """Lost: the memory of a node that an older lab_up made another kind in the lab's file."""
    machine_lab(tmp_path, HAS)
    lab = json.loads((tmp_path / "lab.json").read_text())
    lab["nodes"]["proxy1"]["kind"] = kind
    (tmp_path / "lab.json").write_text(json.dumps(lab))
    (tmp_path / "run").mkdir()
    program = ["/usr/bin/python3", ROOT / "roles" / "lab" / "files" / "lab.py", tmp_path / "lab.json"]

    def output(*words):
        done = subprocess.run([*program, *words], check=False, stdout=subprocess.PIPE, text=True)
        return done.returncode, done.stdout

    node = subprocess.Popen(["sleep", "300"])
    started = Path(f"/proc/{node.pid}/stat").read_text().rpartition(")")[2].split()[19]
    (tmp_path / "run" / "proxy1.pid").write_text(f"{node.pid} {started}\n")
    try:
        assert output("leftovers") == (1, "node proxy1\n")
        assert "proxy1 stopped" in output("nodes", "down")[1]
        assert node.wait(timeout=200) == -15
        assert output("leftovers") == (0, "\n")
    finally:
        node.kill()
        node.wait()


DAMAGED = {
    "cut off": '{"folder": "/x", "namesp',
    "empty": "",
    "none of lab_up's": "[]",
    "without nodes": '{"folder": "/x", "namespace": "hetero-none", "images": [], "pdus": {}}',
    "without images": '{"folder": "/x", "namespace": "hetero-none", "pdus": {}, "nodes": {}}',
    "odd": '{"folder": "/x", "namespace": "none", "images": [], "pdus": {}, "nodes": {"proxy1": {"kind": "cloud"}}}',
    "odder": '{"folder": "/x", "namespace": "none", "images": [], "pdus": {}, "nodes": {"proxy1": 5}}',
}


@AS_ROOT
@pytest.mark.parametrize(
    ("playbook", "text"),
    [("lab_up", DAMAGED["cut off"]), *(("lab_down", text) for text in DAMAGED.values())],
    ids=["cut off, up", *DAMAGED],
)
def test_a_lab_whose_file_is_damaged_says_which_file_and_what_to_do(tmp_path, playbook, text):
    """Lost: what to do about a traceback of Python's; or the folder of a lab that runs on."""
    (tmp_path / "lab.json").write_text(text)
    code, said = played(ROOT, "-i", "localhost,", f"hetero.compute.{playbook}", lab_folder=str(tmp_path))
    words = " ".join(said.split())
    assert code == 2, said
    assert f"{tmp_path}/lab.json is damaged (" in words, said
    assert "move it away, bring the lab up once more with the options that it had" in words, said
    assert "JSONDecodeError" not in said
    assert "Traceback" not in said
    assert (tmp_path / "lab.json").read_text() == text


@AS_ROOT
@pytest.mark.parametrize("playbook", ["lab_up", "lab_down"])
def test_a_lab_that_was_copied_is_not_the_other_one(tmp_path, playbook):
    """Lost: the nodes of the lab in the first clone, to lab_down in a copy of that clone."""
    first, second = tmp_path / "first", tmp_path / "second"
    (first / "nodes").mkdir(parents=True)
    lab = {"folder": str(first), "namespace": "hetero-none", "images": [], "pdus": {}, "nodes": {}}
    (first / "lab.json").write_text(json.dumps(lab))
    shutil.copytree(first, second)
    code, said = played(ROOT, "-i", "localhost,", f"hetero.compute.{playbook}", "--check", lab_folder=str(second))
    assert code == 2, said
    why = f"{second}/lab.json is the file of the lab in {first}, copied or moved: nothing is done to that one from here"
    assert why in " ".join(said.split()), said


@AS_ROOT
@pytest.mark.parametrize("left", ["run/pdu-a.pid", "nodes/proxy1/config", "nodes/board3/disk"])
def test_lab_down_removes_no_lab_whose_file_is_gone(tmp_path, left):
    """Lost: the pids of PDUs and boards that run on; and nodes that do, by the folder in which they run."""
    (tmp_path / left).parent.mkdir(parents=True)
    (tmp_path / left).write_text("1 1\n")
    code, said = played(ROOT, "-i", "localhost,", "hetero.compute.lab_down", lab_folder=str(tmp_path))
    assert code == 2, said
    assert f"{tmp_path}/lab.json is gone, and it alone says what the lab consists of" in " ".join(said.split()), said
    assert f"something of it may run ({tmp_path / left})" in " ".join(said.split()), said
    (tmp_path / left).unlink()
    code, said = played(ROOT, "-i", "localhost,", "hetero.compute.lab_down", lab_folder=str(tmp_path))
    assert code == 0, said
    assert not tmp_path.exists()


@AS_ROOT
@pytest.mark.parametrize("playbook", ["lab_up", "lab_down"])
def test_a_folder_with_a_blank_in_its_name_is_refused_before_anything_is_made(tmp_path, playbook):
    """Lost: the mode of another folder, that of the name before the blank."""
    (tmp_path / "my").mkdir(mode=0o755)
    (tmp_path / "my clone").mkdir()
    folder = f"{tmp_path}/my clone/.lab"
    code, said = played(ROOT, "-i", "localhost,", f"hetero.compute.{playbook}", "--check", lab_folder=folder)
    words = " ".join(said.split())
    assert code == 2, said
    assert f"lab_folder is {folder}: a name with a blank in it is none that all of the lab's programs take" in words
    assert (tmp_path / "my").stat().st_mode & 0o777 == 0o755
    assert os.listdir(tmp_path / "my clone") == []


@AS_ROOT
def test_a_lab_of_an_older_release_is_ended_first(tmp_path):
    """Lost: an hour with consoles that nobody serves, and a set-up that ends at a package that its node has not."""
    lab = {"folder": str(tmp_path), "namespace": "hetero-none", "images": []}
    lab["nodes"] = {"proxy1": {"kind": "container"}}
    lab["pdus"] = {"pdu-a": {"outlets": {"5": {"name": "board0", "argv": ["true"]}}}, "pdu-b": {}}
    before = json.dumps(lab)
    (tmp_path / "lab.json").write_text(before)
    code, said = played(ROOT, "-i", "localhost,", "hetero.compute.lab_up", lab_folder=str(tmp_path))
    assert code == 2, said
    assert "did not serve its boards' consoles: end it first" in " ".join(said.split()), said
    assert (tmp_path / "lab.json").read_text() == before
