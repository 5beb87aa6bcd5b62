# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`pdu_mgr IP OUTLET MODE` as role tftp_proxy installs it: a file with its code beside it, on the system's Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from ansible_collections.hetero.compute.tests.builds import shared
from ansible_collections.hetero.compute.tests.unit.drivers.power.emulated_pdu import PASSWORD, alive, boards
from ansible_collections.hetero.compute.tests.unit.drivers.power.test_pdu_power import COLLECTIONS, system_python


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    """The command as module node_tools puts it onto a node."""
    folder = tmp_path_factory.mktemp("node")
    path = folder / "pdu_mgr"
    argv = [sys.executable, "-m", "ansible", "adhoc", "localhost", "-i", "localhost,", "-c", "local"]
    argv += ["-e", f"ansible_python_interpreter={system_python()}", "-m", "hetero.compute.node_tools"]
    argv += ["-a", json.dumps({"folder": str(folder / "lib"), "commands": {str(path): "pdu_mgr"}})]
    env = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS), **shared()}
    env["ANSIBLE_LOCAL_TEMP"] = str(folder / "ansible")
    done = subprocess.run(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
    assert path.exists(), done.stdout
    return path


@pytest.fixture
def pdu_mgr(command, tmp_path):
    """A function that runs the command on a configuration; returns (exit code, output, errors)."""
    config, credentials = tmp_path / "proxy.json", tmp_path / "credentials.json"

    def run(pdus, secrets, *words, **more):
        credentials.write_text(json.dumps(secrets))
        text = {"pdus": pdus, "credentials": str(credentials), "run_folder": str(tmp_path / "run"), **more}
        config.write_text(json.dumps(text))
        env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        argv = [system_python(), "-I", command, "--config", config, *words]
        done = subprocess.run(argv, cwd="/", env=env, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout, done.stderr

    return run


def test_the_modes_of_the_blueprint(pdu_mgr, emulated, tmp_path):
    """Without it, people and scripts that know the blueprint's command would have no power control by hand."""
    pdu = emulated(dialect="cli", outlets=boards(tmp_path, "3"))
    node = {"pdu-a": pdu.settings}, {"pdu-a": pdu.secrets}
    assert pdu_mgr(*node, "127.0.0.1", "3", "9") == (2, "pdu-a outlet 3: off\n", "")
    assert pdu_mgr(*node, "127.0.0.1", "3", "1") == (0, "pdu-a outlet 3: on\n", "")
    first = pdu.outlets["3"]["pid"]
    assert alive(first)
    assert pdu_mgr(*node, "pdu-a", "3", "9") == (0, "pdu-a outlet 3: on\n", "")
    assert pdu_mgr(*node, "127.0.0.1", "3", "3") == (0, "pdu-a outlet 3: on\n", "")
    assert not alive(first)
    assert alive(pdu.outlets["3"]["pid"])
    assert pdu_mgr(*node, "127.0.0.1", "3", "2") == (0, "pdu-a outlet 3: off\n", "")
    assert pdu.outlets["3"]["state"] == "off"


def test_success_that_is_none_is_a_failure(pdu_mgr, emulated):
    """Without it, a script would go on with a board that still has power."""
    pdu = emulated(dialect="cli", faults={"stuck": ["3"]})
    words = pdu_mgr({"pdu-a": pdu.settings}, {"pdu-a": pdu.secrets}, "127.0.0.1", "3", "1", "--timeout", "50")
    assert words[:2] == (1, "")
    assert "pdu_mgr: outlet 3 of pdu-a: still off" in words[2]
    assert PASSWORD not in words[2]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("10.9.9.9", "3", "1"), "10.9.9.9: no such PDU (known: 10.0.0.1 (pdu-a), 10.0.0.2 (pdu-b), 10.0.0.2 (pdu-c))"),
        (("10.0.0.2", "3", "1"), "10.0.0.2: is the address of pdu-b, pdu-c: name one of them"),
        (("10.0.0.1", "3", "4"), "invalid choice: '4'"),
        (("10.0.0.1", "3"), "required: MODE: usage: pdu_mgr"),
    ],
)
def test_wrong_arguments_are_told_and_are_no_state(pdu_mgr, arguments, words):
    """Without it, a typing error would end with 2, which says that the outlet is off."""
    hosts = {"pdu-a": "10.0.0.1", "pdu-b": "10.0.0.2", "pdu-c": "10.0.0.2"}
    pdus = {name: {"driver": "apc", "host": host} for name, host in hosts.items()}
    code, output, errors = pdu_mgr(pdus, {}, *arguments)
    assert (code, output) == (1, "")
    assert words in errors
    assert "Traceback" not in errors


def test_a_script_as_the_pdus_driver(pdu_mgr, tmp_path):
    """Without it, a driver that knows only the outlets that feed boards could not be asked by hand."""
    mine = tmp_path / "mine"
    mine.write_text("#!/bin/sh\necho on\n")
    mine.chmod(0o755)
    pdus = {"pdu-a": {"driver": "command", "host": "10.0.0.1", "script": str(mine)}}
    wiring = {"0": {"pdu": "pdu-a", "outlet": 7}, "1": {"pdu": "pdu-b", "outlet": "8"}, "2": {}}
    assert pdu_mgr(pdus, {}, "10.0.0.1", "7", "9", boards=wiring) == (0, "pdu-a outlet 7: on\n", "")
    assert "no such outlet (it has 7)" in pdu_mgr(pdus, {}, "10.0.0.1", "8", "9", boards=wiring)[2]
