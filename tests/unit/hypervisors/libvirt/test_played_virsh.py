# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The libvirt that tests play: what looks.sh answers is what virsh.py answers. If this fails, a slip in one of the two
is a verb's fault in a hundred tests."""

from __future__ import annotations

import os
import subprocess

import pytest

from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.conftest import DOMAIN
from ansible_collections.hetero.compute.tests.unit.hypervisors.libvirt.virsh import program

LOOKS = (["domstate"], ["dominfo"], ["dumpxml"], ["dumpxml", "--inactive"])
UUID = "22222222-2222-2222-2222-222222222222"


@pytest.fixture
def answers(tmp_path):
    """The answers of both to a command, each with what it has noted of it."""
    whole = program(tmp_path, os.getpid())
    begin, end = whole.index("defined="), whole.index("exec ")
    programs = []
    for name, text in (("looks", whole), ("python", whole[:begin] + whole[end:])):
        path = tmp_path / name
        path.write_text(text)
        path.chmod(0o755)
        programs.append(path)

    def ask(*words):
        found = []
        for one in programs:
            noted = tmp_path / "virsh"
            noted.write_text("")
            done = subprocess.run([one, "-q", "-c", "qemu:///system", *words], check=False, capture_output=True)
            found.append((done.returncode, done.stdout, done.stderr, noted.read_text()))
        return found

    return ask


def put(folder, name, before="", after=""):
    folder.mkdir(parents=True, exist_ok=True)
    text = DOMAIN.format(name=name, uuid=UUID if name == "a b" else name)
    (folder / f"{name}.xml").write_text(f"{before}{text}{after}\n")


@pytest.mark.parametrize("there", ["none", "defined", "running", "running alone", "forgotten", "failing"])
def test_both_answer_alike(tmp_path, answers, there):
    """Lost: hours, to a verb that is taken for wrong."""
    defined, running = tmp_path / "etc/libvirt/qemu", tmp_path / "run/libvirt/qemu"
    if there not in ("none", "running alone"):
        put(defined, "win", before="<!-- libvirt's\n own -->\n")
        put(defined, "a b")
    if there.startswith("running"):
        put(running, "win", "<domstatus state='running'>\n  ", "</domstatus>")
        put(defined / "autostart", "win")
    if there == "forgotten":
        (tmp_path / "forgot").touch()
    if there == "failing":
        for command in ("list", "domstate", "dominfo", "dumpxml"):
            (tmp_path / f"fail-{command}").write_text("no connection\n")
    asked = [["list", "--all", "--name"]]
    asked += [[command, name, *rest] for name in ("win", "a b", UUID, "no") for command, *rest in LOOKS]
    for words in asked:
        one, other = answers(*words)
        assert one == other, words
        assert one[3] == " ".join(words) + "\n"
