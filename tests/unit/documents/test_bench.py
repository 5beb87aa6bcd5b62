# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measurements still run on the code as it is. If this fails, `make bench` ends without some of its numbers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from ansible_collections.hetero.compute.bench import played_storm, storm
from ansible_collections.hetero.compute.bench.simulated_boots import Board
from ansible_collections.hetero.compute.tests.unit.documents.pages import guide, named

PROJECT = Path(__file__).resolve().parents[3]


def test_a_claim_is_measured(tmp_path):
    """With few boards; those of many need the time of `make bench`."""
    env = dict(os.environ, BENCH_RECORDS=str(tmp_path / "records"))
    words = [sys.executable, "bench/claim.py", "10"]
    said = subprocess.run(words, cwd=PROJECT, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert said.returncode == 0, said.stderr
    assert re.search(r"^ +10 boards +[0-9.]+ +[0-9.]+$", said.stdout, re.MULTILINE)


def test_records_of_a_year_are_measured(tmp_path):
    """A board and four days stand for ten boards and a year."""
    env = dict(os.environ, BENCH_RECORDS=str(tmp_path / "records"))
    words = [sys.executable, "bench/records.py", "1", "4"]
    said = subprocess.run(words, cwd=PROJECT, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert said.returncode == 0, said.stderr
    assert re.search(r"^ +4 +624 +[0-9.]+ +[0-9.]+ +28$", said.stdout, re.MULTILINE), said.stdout
    assert (tmp_path / "records").read_text().count("measured") == 2


def test_the_page_has_what_is_simulated():
    """Lost: a site's links and proxy nodes, to a table of another release."""
    words = [sys.executable, "bench/storm.py"]
    said = subprocess.run(words, cwd=PROJECT, capture_output=True, text=True, timeout=1800, check=False)
    assert said.returncode == 0, said.stderr
    page = guide("playbooks")
    told = f"{named(page, 'storm')}\n{named(page, 'storm-others')}"
    assert told == said.stdout, "write the page anew: python3 bench/storm.py"


def test_a_site_of_ones_own_is_simulated(capsys):
    storm.main(["--boards", "30", "--link", "10000", "--at-once", "24", "--firmware", "40", "--inrush", "2"])
    assert re.search(r"10 Gbit/s +30 +24 .* 1$", capsys.readouterr().out, re.MULTILINE)


def test_a_start_of_played_boards_is_measured_beside_the_simulated_one(monkeypatch, capsys):
    """Boards that take a second; those of the lab need the time of `make bench`."""
    monkeypatch.setattr(played_storm, "BOARD", Board(firmware=0.4, kernel=3e6, root=3e6))
    monkeypatch.setattr(played_storm, "SETTINGS", ((1, None),))
    played_storm.main([3])
    found = re.search(r"^ +3 +1 +- +([0-9.]+) s +([0-9.]+) s +([0-9.]+) s +([0-9.]+) s$", capsys.readouterr().out, re.M)
    measured, simulated = float(found[2]), float(found[4])
    assert measured >= 2.4, "each waited until the one before had its kernel, 0.7 s after its power"
    assert 2.4 <= simulated <= 3.0
