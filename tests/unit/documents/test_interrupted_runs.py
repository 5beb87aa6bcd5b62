# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests/run brought up is down when it ends, however it ends: by itself, by Ctrl-C, or with its terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from labs import Lab
from runner import labs_left

from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT

#: tests/run with one stage, whose lab no tool takes down, and which does not end; and a lab of a stage not begun.
RUN = """
import signal, sys
from pathlib import Path
from runner import labs_left, lanes, main, said, tools
from runner.places import environment

folder = Path(sys.argv[1])
labs_left.LABS, labs_left.BIN = folder / "lab", folder
lanes.LOGS = said.LOGS = folder
lanes.ROOT = folder

def never_ends(log):
    tools.tool(log, ["sh", "-c", f"mkdir -p {folder}/lab/fake && touch {folder}/lab/fake/lab.json && sleep 60"])

lanes.STAGES["molecule-fake"] = main.STAGES["molecule-fake"] = never_ends
signal.signal(signal.SIGINT, signal.SIG_IGN)  # as where a script began it in the background
sys.exit(main.main(["molecule-fake"]))
"""
#: In place of ansible-playbook: what lab_down leaves of a lab.
DOWN = """#!/bin/sh
for word in "$@"; do case $word in lab_folder=*) rm -r "${word#lab_folder=}" ;; esac; done
"""


@pytest.fixture
def play(tmp_path):
    """The program that plays lab_down, and a lab of another run."""
    program = tmp_path / "ansible-playbook"
    program.write_text(DOWN)
    program.chmod(0o755)
    other = tmp_path / "lab" / "other"
    other.mkdir(parents=True)
    (other / "lab.json").touch()
    return program


def ended(tmp_path, number, more=()):
    """How that run ended after the signal: its exit code, what it printed."""
    argv = [sys.executable, "-c", RUN, tmp_path, *more]
    env = dict(os.environ, PYTHONPATH=f"{ROOT / 'tests'}:{os.environ['PYTHONPATH']}", TMPDIR=str(tmp_path))
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env, text=True) as run:
        until = time.monotonic() + 300
        while not (tmp_path / "lab" / "fake" / "lab.json").exists() and run.poll() is None:
            assert time.monotonic() < until
            time.sleep(0.05)
        run.send_signal(number)
        printed, _nothing = run.communicate(timeout=300)
    return run.returncode, printed


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_its_labs_are_down_and_no_others(tmp_path, play, number):
    """Lost: a machine without the boards, mounts and networks of a run that somebody ended in its middle."""
    code, printed = ended(tmp_path, number)
    assert code == 130, printed
    assert not (tmp_path / "lab" / "fake").exists(), printed
    assert (tmp_path / "lab" / "other" / "lab.json").exists(), "another run's"
    if number == signal.SIGHUP:
        return  # there may be no terminal any more
    assert "Traceback" not in printed
    for line in ("lab_down-fake            a lab was left up, and is down", "interrupted              1 of 1 stages"):
        assert f"test    {line}" in printed, printed


def test_a_lab_that_stays_up_is_told_with_the_way_to_end_it(tmp_path, play):
    """Lost: the same, by who believes that it was taken down."""
    play.write_text("#!/bin/sh\nexit 2\n")
    code, printed = ended(tmp_path, signal.SIGINT)
    assert code == 130
    folder = tmp_path / "lab" / "fake"
    assert f"FAILED: {folder} is still up: ansible-playbook hetero.compute.lab_down -e lab_folder={folder}" in printed


def test_which_labs_are_a_stages(tmp_path, monkeypatch):
    """Lost: a lab of an interrupted stage; or one that is another run's, from under its tests."""
    monkeypatch.setattr(labs_left, "LABS", tmp_path)
    for name in ("e2e", "e2e-disk", "nfsd", "attack", "disk", "gpu_lxc"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "lab.json").touch()
    (tmp_path / "uboot").mkdir()
    for stages, labs in (
        (["ruff", "unit-code"], []),
        (["e2e"], ["e2e", "e2e-disk", "nfsd"]),
        (["e2e-whole", "e2e"], ["e2e", "e2e-disk", "nfsd"]),
        (["attack-whole", "molecule-gpu_lxc"], ["attack", "gpu_lxc"]),
        (["molecule-uboot", "molecule-tilera"], []),
    ):
        assert [folder.name for folder in labs_left.left_up(stages)] == labs


def test_no_play_of_an_interrupted_test_goes_on_beside_lab_down(tmp_path, monkeypatch):
    """Lost: a lab that is down, as its lab_up went on after lab_down."""
    monkeypatch.setattr(Lab, "argv", lambda _lab, name, **_extra: ["sleep", "0" if name == "lab_down" else "60"])
    lab = Lab(tmp_path)
    ups = [lab.start("lab_up"), lab.start("provision_instance")]
    assert lab.play("lab_down").rc == 0
    assert [up.returncode for up in ups] == [-signal.SIGKILL] * 2
