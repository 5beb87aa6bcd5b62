# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays, and calls of modules, that are forked (tests/warm). If these fail, tests see what no user gets."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.tests.unit.plays.proxies import LIB, Playbooks, Proxy, kept_copy
from ansible_collections.hetero.compute.tests.warm import plays as warm

ROOT = Path(__file__).parents[3]
#: What a play with -v says of a node whose copy did not run.
SENT = "board_info is sent with all that it imports"


@pytest.fixture
def forked(tmp_path, monkeypatch):
    """(a Proxy p1, the playbooks for it, each of which is forked)."""
    tmp_path.chmod(0o755)
    if not os.environ.get("HETERO_BUILDS"):
        monkeypatch.setenv("HETERO_BUILDS", str(tmp_path))
    monkeypatch.setattr(warm, "FEW", 0)
    monkeypatch.setattr(warm, "SERVERS", {})
    proxy = Proxy(tmp_path / "p1", 1)
    try:
        yield proxy, Playbooks(tmp_path, ["p1"])
    finally:
        warm.close_servers()
        proxy.remove()


def parent_of(pid):
    return int(re.search(r"^PPid:\s(\d+)", Path(f"/proc/{pid}/status").read_text(), re.M)[1])


def test_it_says_and_ends_as_the_command_does(forked, monkeypatch):
    """Lost: all that tests of plays show, where a play that was forked does something else."""
    _proxy, plays = forked
    asked = (("status", {}), ("repair", dict(node="bord3")), ("provision_instance", dict(instance="all")))
    ends = [plays.play(playbook, **extra) for playbook, extra in asked]
    assert len(warm.SERVERS) == 1
    monkeypatch.setattr(warm, "FEW", 1000)
    for (playbook, extra), end in zip(asked, ends):
        rc, said = plays.play(playbook, **extra)
        assert (end[0], timeless(end[1])) == (rc, timeless(said))
    assert [rc for rc, _said in ends] == [0, 2, 2]


def test_what_is_measured_is_what_a_user_waits_for(forked):
    """Lost: what a status costs, where bench says what it costs without the start of ansible-playbook."""
    _proxy, plays = forked
    plays.alone()
    assert plays.play("status")[0] == 0
    assert not warm.SERVERS
    benches = [path.read_text() for path in (ROOT / "bench").glob("*.py")]
    timed = [text for text in benches if "Playbooks(" in text and "perf_counter" in text]
    assert timed
    assert all(".alone()" in text for text in timed)


def timeless(text):
    """Its lines, less those that only a busy machine has."""
    return [line for line in text.splitlines() if " s so far" not in line]


def test_it_is_a_child_with_its_own_environment_and_folders(forked):
    """Lost: tests that end or kill a play, and those in which several of them differ; and folders pile up in ~."""
    _proxy, plays = forked
    plays.env["ANSIBLE_HOME"] = str(plays.folder / "home")
    local = plays.folder / "home" / "tmp"
    task = {"ansible.builtin.command": f"ls {local}", "register": "seen"}
    says = {"ansible.builtin.debug": {"msg": "{{ lookup('env', 'PROXY_LATENCY') }} of {{ seen.stdout }}"}}
    play = dict(hosts="localhost", gather_facts=False, tasks=[task, says])
    (plays.folder / "says.yml").write_text(json.dumps([play]))
    started = []
    for number in range(2):
        plays.env["PROXY_LATENCY"] = f"0.{number}"
        started.append(plays.start_file("says.yml"))
    assert [parent_of(play.pid) for play in started] == [os.getpid()] * 2
    for number, play in enumerate(started):
        rc, said = plays.end(play)
        assert rc == 0, said
        assert f'"0.{number} of ' in said
        assert f"ansible-local-{play.pid}" in said
        assert not list(local.glob(f"ansible-local-{play.pid}*"))
    killed = plays.start("status")
    plays.kill(killed)
    assert plays.end(killed)[0] == -signal.SIGKILL


def test_a_call_of_a_module_is_forked(forked, monkeypatch):
    """Lost: a third of the time that a play takes, as nothing says that calls are not served any more."""
    _proxy, plays = forked
    assert SENT not in plays.play("status", "-v")[1]
    assert len(warm.SERVERS) == 1
    servers = next(iter(warm.SERVERS.values()))
    monkeypatch.setitem(servers.more, "HETERO_NODE_CALLS", "/nowhere")
    assert SENT in plays.play("status", "-v")[1]


@pytest.mark.parametrize("own", ["copy", "Python"])
def test_a_node_with_something_of_its_own_is_called_with_that(forked, own):
    """Lost: tests of nodes whose copy is damaged, or whose Python is another: the one that all share would do."""
    proxy, plays = forked
    begun = proxy.root / "begun"
    if own == "copy":
        (shared,) = kept_copy().iterdir()
        copy = proxy.root / LIB / shared.name
        warm.subprocess.run(["umount", proxy.root / LIB], check=True)
        warm.subprocess.run(["cp", "-a", shared, copy.parent], check=True)
        call = copy / warm.CALL
        call.write_text(call.read_text().replace("def main()", "open('/begun', 'w').close()\n\n\ndef main()"))
    else:
        python = proxy.root / "usr" / "bin" / "python3"
        python.unlink()
        python.write_text('#!/bin/sh\ntouch /begun\nexec /usr/bin/python3.11 "$@"\n')
        python.chmod(0o755)
    rc, said = plays.play("status")
    assert rc == 0, said
    assert begun.exists()
