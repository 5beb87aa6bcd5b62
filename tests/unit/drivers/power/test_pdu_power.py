# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module pdu_power as users run it: packed by Ansible, started on the system's Python, talking to a PDU over telnet."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.modules import pdu_power
from ansible_collections.hetero.compute.tests.builds import shared
from ansible_collections.hetero.compute.tests.unit.drivers.power.emulated_pdu import PASSWORD, alive, boards

COLLECTIONS = Path(pdu_power.__file__).parents[5]


@lru_cache(maxsize=1)
def system_python():
    """A node's own Python where it has pexpect, which is where the module runs; else the one of the tests."""
    probe = subprocess.run(["/usr/bin/python3", "-c", "import pexpect"], capture_output=True, check=False)
    return "/usr/bin/python3" if probe.returncode == 0 else sys.executable


def run(folder, check=False, module="pdu_power", **arguments):
    """(result, all that Ansible printed) of the module."""
    argv = [sys.executable, "-m", "ansible", "adhoc", "localhost", "-i", "localhost,", "-c", "local", "--diff"]
    argv += ["-e", f"ansible_python_interpreter={system_python()}", "-m", f"hetero.compute.{module}"]
    argv += ["-a", json.dumps(arguments), *(["--check"] if check else [])]
    environment = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
        "ANSIBLE_LOCAL_TEMP": str(folder / "ansible"),
        "ANSIBLE_NOCOLOR": "1",
        **shared(),
    }
    done = subprocess.run(argv, capture_output=True, text=True, env=environment, timeout=3000, check=False)
    _head, found, text = done.stdout.partition(" => ")
    assert found, done.stdout + done.stderr
    return json.JSONDecoder().raw_decode(text)[0], done.stdout + done.stderr


def test_on_twice(node, tmp_path):
    """Without it, a second run of a play could cut power, or a dry run could."""
    pdu, arguments = node(outlets=boards(tmp_path, "3"))
    result, text = run(tmp_path, check=True, outlets=["3", "4"], state="on", **arguments)
    assert result["changed"] is True
    assert result["outlets"]["3"] == {"before": "off", "after": "on", "seconds": result["outlets"]["3"]["seconds"]}
    assert '-    "power": "off"\n+    "power": "on"' in text
    assert pdu.outlets["3"]["state"] == "off"
    result, text = run(tmp_path, outlets=["3", "4"], state="on", **arguments)
    assert result["changed"] is True
    assert result["dialect"] == "cli"  # beside the menus
    assert alive(pdu.outlets["3"]["pid"])
    assert PASSWORD not in text
    result, _text = run(tmp_path, outlets=["3", "4"], state="on", **arguments)
    assert result["changed"] is False
    result, _text = run(tmp_path, module="pdu_info", **arguments)
    assert {outlet for outlet, seen in result["outlets"].items() if seen["after"] == "on"} == {"3", "4"}


def test_cycled_changes_each_time(node, tmp_path):
    """Without it, a cycle of a board that is on would be skipped as already done."""
    pdu, arguments = node(outlets={"3": {**boards(tmp_path, "3")["3"], "state": "on"}})
    first = pdu.outlets["3"]["pid"]
    result, text = run(tmp_path, outlets=["3"], state="cycled", **arguments)
    assert result["changed"] is True
    assert (result["outlets"]["3"]["before"], result["outlets"]["3"]["after"]) == ("on", "on")
    assert '"power": "on, cycled"' in text
    assert not alive(first)


def test_part_of_a_batch_fails(node, tmp_path):
    """Without it, one bad outlet would hide what became of the others."""
    for seconds in (5, 50):  # a busy machine needs longer to read it again
        _pdu, arguments = node(faults={"stuck": ["3"]})
        result, _text = run(tmp_path, outlets=["3", "4", "77"], state="on", **{**arguments, "timeout": seconds})
        if "still off" in result["msg"]:
            break
    assert "outlet 3 of pdu-t: still off" in result["msg"]
    assert result["changed"] is True
    assert result["outlets"]["4"]["after"] == "on"
    assert result["outlets"]["3"]["before"] == result["outlets"]["3"]["after"] == "off"
    assert "no such outlet" in result["outlets"]["77"]["error"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"pdu": "a", "state": "off"}, "all of the following are missing: outlets"),
        ({"pdu": "a", "state": "off", "outlets": ["1"], "config": "/nowhere/proxy.json"}, "hetero.compute.proxy"),
    ],
)
def test_wrong_arguments_are_told(tmp_path, arguments, words):
    """Without it, `state: off` without outlets might mean all of them."""
    result, _text = run(tmp_path, **arguments)
    assert words in result["msg"]


def test_status_is_told_as_ever_and_named_as_what_goes(node, tmp_path):
    """Without it, plays that ask by the module that switches would break, now or at a release without a word."""
    _pdu, arguments = node()
    told = run(tmp_path, module="pdu_info", **arguments)[0]["outlets"]
    for given in ({}, {"state": "status"}, {"state": "status", "outlets": ["3"]}):
        result, text = run(tmp_path, **arguments, **given)
        assert result["changed"] is False
        assert result["outlets"] == {outlet: told[outlet] for outlet in given.get("outlets", told)}
        assert "module hetero.compute.pdu_info tells them" in " ".join(text.split())
