# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a person sees while boards boot: real plays over a local connection, with boots that are played."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.plugin_utils.filters.status_table import status_table
from ansible_collections.hetero.compute.tests.builds import shared

PLAYBOOK = Path(sys.executable).with_name("ansible-playbook")
PLAY = """
- hosts: localhost
  gather_facts: false
  tasks:
    - hetero.compute.tilera_boot: {arguments}
      register: boot
      ignore_errors: true
    - hetero.compute.show:
        lines:
          - "  {{{{ boot.changed }}}} {{{{ boot.boards | map(attribute='state') | join(' ') }}}}"
          - "blame: {{{{ boot.blame }}}}  → done"
"""

pytestmark = pytest.mark.skipif(not PLAYBOOK.exists(), reason="ansible-playbook is not beside this Python")


class Play:
    """A running ansible-playbook; each line of its output with the time it came."""

    def __init__(self, site, *options, **arguments):
        arguments = dict(site.params, **arguments)
        playbook = site.folder / "play.yml"
        (site.folder / "ansible.cfg").write_text("[defaults]\n")
        playbook.write_text(PLAY.format(arguments=json.dumps(arguments)))
        environment = dict(
            os.environ,
            ANSIBLE_COLLECTIONS_PATH=os.environ["PYTHONPATH"],
            ANSIBLE_LOCAL_TEMP=str(site.folder / "tmp"),
            ANSIBLE_REMOTE_TEMP=str(site.folder / "tmp"),
            ANSIBLE_LOCALHOST_WARNING="false",
            ANSIBLE_CONFIG=str(site.folder / "ansible.cfg"),
            PYTHONUNBUFFERED="1",
            **shared(),
        )
        argv = [str(PLAYBOOK), "-i", "localhost,", "-c", "local", "-e", f"ansible_python_interpreter={sys.executable}"]
        self.process = subprocess.Popen(
            [*argv, *options, str(playbook)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
            start_new_session=True,
        )
        self.lines = []

    def read(self, until=None):
        """Read on until a line holds `until`, or to the end."""
        for line in self.process.stdout:
            self.lines.append((time.time(), line.rstrip("\n")))
            if until and until in line:
                return self
        self.process.stdout.close()
        self.process.wait(300)
        return self

    @property
    def text(self):
        return "\n".join(line for _at, line in self.lines)

    def at(self, part):
        return next(at for at, line in self.lines if part in line)


def test_phases_are_printed_as_they_happen(site):
    """A person in front of a silent screen does not know whether to wait or to pull the plug."""
    site.claim(0, 2)
    site.play(0, tftp=0.5, nfs=1000, running=2000)
    site.play(2, tftp=0.2, nfs=0.4, running=0.6)
    play = Play(site, boards=[0, 2], timeout=300).read(until="board2  running")
    assert not {"nfs", "running"} & {event.phase for event in site.events(0)}, "lines were kept until the end"
    site.later(0, 1000)
    play.read(until="board0  nfs")
    site.later(0, 1000)
    play.read()
    assert play.process.returncode == 0, play.text
    for number, name in ((0, "board0"), (2, "board2")):
        for event in site.events(number):
            assert play.at(f"vm{number}     {name}  {event.phase}") >= event.time, f"{event.phase} of {name}"
    assert "  True running running\n" in play.text
    assert "blame: None  → done" in play.text or "blame:   → done" in play.text
    assert play.at("PLAY RECAP") - site.events(0)[-1].time < 60, "the end was not seen, but the boot's deadline"


def test_second_run_says_that_it_runs(site):
    """No change must not look like no answer; and old events must not be shown again as if they were new."""
    site.claim(0)
    site.run("start", 0)
    play = Play(site, boards=[0]).read()
    assert "vm0     board0  running   already running, ssh answers with its own host key" in play.text
    assert "off → on" not in play.text
    assert "changed=0" in play.text


def test_check_mode_prints_what_would_be_done(site):
    """A dry run without words is no use."""
    site.claim(0)
    play = Play(site, "--check", "--diff", boards=[0]).read()
    assert "vm0     board0  power     pdu-a outlet 5 is off: off → on" in play.text
    assert "vmlinux_0 root=/dev/nfs" in play.text
    assert (site.power(0), site.events(0)) == ("off", [])


def test_a_failure_keeps_its_lines_and_results(site):
    """The play decides by `blame` and the boards' results what to do next; the person reads the lines."""
    site.claim(0, 2)
    site.play(0, stall="tftp")
    play = Play(site, boards=[0, 2], timeout=1, retries=0).read()
    assert "vm0     board0  error     kept out of use: no boot request within 1 s" in play.text
    assert "  True error running\nblame: board" in play.text


def test_bad_arguments_fail_before_the_background(site):
    """The message would end in a file that nobody reads."""
    play = Play(site, boards=[77]).read()
    assert "board 77: no such board" in play.text
    assert not (Path(site.config["run_folder"]) / "jobs").exists()


def test_a_killed_play_leaves_its_work_running(site):
    """kill -9 in the middle of a boot: the board would be left half on, and the rerun would begin anew."""
    site.claim(0)
    site.play(0, tftp=0.3, nfs=1000, running=2000)
    first = Play(site, boards=[0], timeout=300).read(until="board0  power")
    os.killpg(first.process.pid, signal.SIGKILL)
    first.process.wait(60)
    first.process.stdout.close()
    assert site.record(0).state == "booting"
    second = Play(site, boards=[0], timeout=300).read(until="board0  wait      held by start")
    site.later(0, 1000)
    second.read(until="board0  nfs")
    site.later(0, 1000)
    second.read()
    assert second.process.returncode == 0, second.text
    assert "changed=0" in second.text
    assert [event.phase for event in site.events(0)] == ["power", "wait", "tftp", "nfs", "running"]


def test_a_killed_worker_is_reported(site):
    """The play would wait until its limit, an hour or more, for a process that is gone."""
    site.claim(0)
    site.play(0, stall="running")
    play = Play(site, boards=[0], timeout=300).read(until="board0  nfs")
    holder = json.loads((Path(site.config["run_folder"]) / "locks" / "board0").read_text())
    os.kill(holder["pid"], signal.SIGKILL)
    start = time.monotonic()
    play.read()
    assert time.monotonic() - start < 60
    assert "was killed or broke" in play.text


TYPES = {
    "tp64.8x8": dict(
        memory_mb=16384, vcpus=1, local_gb=500, flavorid=302, cpu_arch="tilepro64", cpu_info={"geometry": "8x8"}
    )
}


def test_status_table():
    """Tour, section 2: one glance tells who has what."""
    board = dict(
        name="board0", arch="TILEPro64", geometry="8x8", vcpus=10, memory_mb=16218, local_gb=917, state="running",
        cpu_info={"arch": "TILEPro64", "features": ["8x8Grid"]}, instance="jackie", since_seconds=130.0, note="",
        owner="jo", ip="10.0.2.1", image="debian-12",
    )  # fmt: skip
    rows = [
        board,
        dict(board, name="board1", state="power off", instance=None, owner=None, image=None, since_seconds=None),
        dict(
            board,
            name="board4",
            state="error",
            instance=None,
            owner=None,
            image=None,
            since_seconds=3700.0,
            note="stalled twice",
        ),
        dict(board, name="board9", memory_mb=8109, state="booting", instance="ml", since_seconds=3 * 86400 + 5),
    ]
    assert status_table(rows, TYPES) == [
        "NODE    KIND   ARCH       FITS      STATE      INSTANCE  OWNER  ADDRESS   IMAGE      SINCE  NOTE",
        "board0  board  TILEPro64  tp64.8x8  running    jackie    jo     10.0.2.1  debian-12  2 min",
        "board1  board  TILEPro64  tp64.8x8  power off  -         -      10.0.2.1  -          -",
        "board4  board  TILEPro64  tp64.8x8  error      -         -      10.0.2.1  -          1 h    stalled twice",
        "board9  board  TILEPro64  -         booting    ml        jo     10.0.2.1  debian-12  3 d",
    ]


def test_boards_of_several_proxies_are_told_apart():
    """Each proxy node has a board0, and a user would take the one for the other."""
    board = dict(name="board0", arch="TILEPro64", state="power off", vcpus=1, memory_mb=1, local_gb=1, cpu_info={})
    seen = {
        "proxy1": {"boards": [board]},
        "proxy2": {"boards": [dict(board, instance="gx", state="running")]},
        "proxy3": {"boards": [], "error": "did not answer"},
    }
    one, two, silent, why = status_table(seen)[1:]
    assert [line.split("  ")[0] for line in (one, two, silent)] == ["board0 of proxy1", "board0 of proxy2", "proxy3"]
    assert ["gx" in line.split() for line in (one, two)] == [False, True]
    assert "not asked" in silent
    assert why == "    did not answer (mend that, or leave it out: -e without=proxy3)"
    alone = {"proxy3": dict(seen["proxy3"], error="damaged: run x.")}
    assert status_table(alone)[-1].strip().endswith("damaged: run x"), "nobody is left to ask without the only node"
    assert status_table({"proxy1": seen["proxy1"]})[1].split("  ")[0] == "board0"
    for wrong in ("board0", [{"name": "board0"}], {"proxy1": {}}):
        with pytest.raises(AnsibleFilterError, match="needs a list of boards"):
            status_table(wrong)
