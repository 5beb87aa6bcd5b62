# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Devices that keep a module waiting, by plays as users write them. If these fail, a person looks at a still screen for
as long as a PDU or a disk hangs, and ends a play that would have ended by itself; or a module lost by the line that it
is told by what it gave without it.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.action import node_tools
from ansible_collections.hetero.compute.plugins.plugin_utils import telling
from ansible_collections.hetero.compute.tests.builds import shared
from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT


@pytest.fixture
def hung_pdu():
    """The port of a PDU that takes connections and never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def played(tmp_path):
    """A function that begins a play of these tasks on this machine, and returns its process; its output is a pipe."""
    begun = []

    def play(*tasks, **play):
        book = tmp_path / "book.json"
        book.write_text(json.dumps([dict(hosts="localhost", gather_facts=False, tasks=tasks, **play)]))
        argv = [sys.executable, "-m", "ansible", "playbook", "-i", "localhost,", "-c", "local", str(book)]
        argv += ["-e", f"ansible_python_interpreter={sys.executable}"]
        env = dict(os.environ, ANSIBLE_NOCOLOR="1", ANSIBLE_LOCAL_TEMP=str(tmp_path / "local"), **shared())
        env.update(ANSIBLE_COLLECTIONS_PATH=str(ROOT / "build"), ANSIBLE_REMOTE_TEMP=str(tmp_path / "remote"))
        env.update(ANSIBLE_ASYNC_DIR=str(tmp_path / "jobs"), COLUMNS="1000")
        pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        begun.append(subprocess.Popen(argv, cwd=tmp_path, env=env, **pipes))
        return begun[-1]

    yield play
    for process in begun:
        process.kill()
        process.communicate()


def lines_until(process, text):
    """What a play printed up to a line with this text, or to its end."""
    said = []
    for line in process.stdout:
        said.append(line)
        if text in line:
            break
    return "".join(said)


def test_a_pdu_that_takes_calls_and_never_answers_is_named(played, hung_pdu):
    """Lost: which PDU hangs, for a minute and a half by default; and that its module's option goes with 1.0.0."""
    pdu = dict(host="127.0.0.1", port=hung_pdu, username="apc", password="hunter2", outlets=[3, 4], timeout=4)
    off = {"hetero.compute.pdu_power": {"state": "off"}, "ignore_errors": True}
    old = {"hetero.compute.pdu_power": {"timeout": 0.1}, "ignore_errors": True}
    said, _none = played(off, old, module_defaults={"hetero.compute.pdu_power": pdu}).communicate(timeout=600)
    told = re.search(r"^localhost: power off of outlets 3, 4 at PDU 127.0.0.1 has taken \d+ s so far$", said, re.M)
    assert told, said
    assert told.start() < said.index("it took the connection and asks for no login")
    assert "state=status of module hetero.compute.pdu_power: module hetero.compute.pdu_info tells them" in said
    assert "hunter2" not in said


def test_a_disk_that_hangs_is_named_by_the_file(played, tmp_path):
    """Lost: at which file a set-up hangs; what lies on a server that does not answer is waited for without an end."""
    os.mkfifo(tmp_path / "source")  # whose open waits for a writer, as an open of a hung server's file waits for it
    files = [{"path": str(tmp_path / "kept"), "source": str(tmp_path / "source")}]
    process = played({"hetero.compute.node_files": {"files": files}})
    told = lines_until(process, " s so far")
    assert f"localhost: look at file {tmp_path}/kept has taken " in told
    (tmp_path / "source").write_bytes(b"whole")
    assert "failed=0" in process.communicate(timeout=600)[0]
    assert (tmp_path / "kept").read_bytes() == b"whole"


def test_what_a_module_gave_without_a_line_it_gives_with_one(played):
    """Lost: fact hetero_gpus, which plays compute with; or a task in the background."""
    tasks = [
        {"hetero.compute.gpu_facts": {}, "register": "looked"},
        {"ansible.builtin.assert": {"that": ["hetero_gpus == looked.ansible_facts.hetero_gpus"]}},
        {"hetero.compute.pci_info": {}, "async": 600, "poll": 0, "register": "job"},
        {
            "ansible.builtin.async_status": {"jid": "{{ job.ansible_job_id }}"},
            "register": "seen",
            "until": "seen.finished",
            "retries": 600,
            "delay": 1,
        },
        {"ansible.builtin.assert": {"that": ["seen.devices is defined"]}},
    ]
    process = played(*tasks)
    said, _none = process.communicate(timeout=900)
    assert process.returncode == 0, said


def test_a_copy_that_is_sent_slowly_is_told(monkeypatch):
    """Lost: why the first set-up of a node far away stands still: its copy of the collection has some megabytes."""
    told, first = [], threading.Event()
    monkeypatch.setattr(telling, "tell", lambda text: (told.append(text), first.set()))
    monkeypatch.setattr(telling, "FIRST", 0.01)
    monkeypatch.setattr(node_tools.ActionBase, "run", lambda self, tmp, task_vars: {})

    class Slow(node_tools.ActionModule):
        def _sent(self, task_vars):
            assert first.wait(300)
            return dict(changed=True)

    one = Slow.__new__(Slow)
    one._task = SimpleNamespace(delegate_to=None, args={})
    assert one.run(None, dict(inventory_hostname="p1")) == dict(changed=True)
    assert told[0] == "p1: sending of the copy of the collection has taken 0 s so far"
