# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`pdu_mgr IP OUTLET MODE` as role tftp_proxy installs it: a file with its code beside it, on the system's Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.claim_records import (
    FOLDER,
    ClaimRecords,
    Fed,
    Kept,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import ClaimTerms, Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.outlets import session
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import pdu_mgr as pdu_mgr_command
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
    done = subprocess.run(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600, check=False)
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
        done = subprocess.run(argv, cwd="/", env=env, capture_output=True, text=True, timeout=600, check=False)
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
        (
            ("10.9.9.9", "3", "1"),
            "no such PDU (known: hubs, 10.0.0.1 (pdu-a), 10.0.0.2 (pdu-b), 10.0.0.2 (pdu-c)): name one of these",
        ),
        (("10.0.0.2", "3", "1"), "10.0.0.2: is the address of pdu-b, pdu-c: name one of them"),
        (("10.0.0.1", "3", "4"), "invalid choice: '4'"),
        (("10.0.0.1",), "required: MODE: usage: pdu_mgr"),
    ],
)
def test_wrong_arguments_are_told_and_are_no_state(pdu_mgr, arguments, words):
    """Without it, a typing error would end with 2, which says that the outlet is off."""
    hosts = {"pdu-a": "10.0.0.1", "pdu-b": "10.0.0.2", "pdu-c": "10.0.0.2"}
    pdus = {name: {"driver": "apc", "host": host} for name, host in hosts.items()}
    pdus["hubs"] = {"driver": "uhubctl"}
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


ROW = "{} 10.0.2.{} 00:1a:ca:00:57:9{} 10 16218 917 476 1 tilera_hv 1 {{}}\n"


@pytest.fixture
def node(emulated, tmp_path):
    """pdu-a, whose outlets 3 and 4 feed boards 0 and 1, and pdu-b, whose outlet 3 feeds board 2."""
    first, second = (emulated(dialect="cli", outlets=boards(tmp_path, "3", "4")) for _name in range(2))
    wiring = {"0": ("pdu-a", 3), "1": ("pdu-a", "4"), "2": ("pdu-b", 3)}
    (tmp_path / "tilera_boards").write_text("".join(ROW.format(number, number + 1, number) for number in range(4)))
    more = dict(tftp_root=str(tmp_path), state_folder=str(tmp_path / "state"))
    more["boards"] = {number: dict(pdu=pdu, outlet=outlet) for number, (pdu, outlet) in wiring.items()}
    pdus = {"pdu-a": first.settings, "pdu-b": {**second.settings, "host": "localhost"}}
    return (pdus, {"pdu-a": first.secrets, "pdu-b": second.secrets}), more


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("127.0.0.1", "3", "1", ">>", "pdu_output"), "pdu-a outlet 3: on\n"),
        (("10.0.2.2", "1"), "pdu-a outlet 4: on\n"),
        (("localhost", "1"), "pdu-b outlet 3: on\n"),
        (("localhost", "1", ">>", "pdu_output"), "pdu-b outlet 3: on\n"),
    ],
)
def test_the_calls_of_nova(pdu_mgr, node, tmp_path, words, said):
    """Lost: each power-on of a Nova whose tile_pdu_mgr is this command."""
    known, more = node
    assert pdu_mgr(*known, *words, **more) == (0, said, "")
    assert not (tmp_path / "pdu_output").exists()


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("127.0.0.1", "127.0.0.1: feeds 2 boards, and no outlet is given: name the outlet behind it, or give a"),
        ("10.0.2.4", "10.0.2.4: is a board's that no outlet is configured for"),
        ("10.0.2.9", "10.0.2.9: no such PDU (known: "),
    ],
)
def test_an_outlet_is_not_guessed(pdu_mgr, node, address, said):
    """Lost: another board's power."""
    known, more = node
    code, output, errors = pdu_mgr(*known, address, "1", **more)
    assert (code, output) == (1, "")
    assert said in errors


def test_a_board_of_an_instance_is_not_switched(pdu_mgr, node, tmp_path):
    """Lost: a tenant's power, to a Nova that thinks it has the board."""
    known, more = node
    (tmp_path / "state").mkdir()
    with Store(str(tmp_path / "state" / "state.db")) as store:
        store.claim("jackie", ["jackie"], ClaimTerms("ann", {"name": "tp64.8x8"}, "debian-12", "key"), [1])
    known[0]["pdu-z"] = dict(known[0]["pdu-a"])
    for words in (("pdu-a", "4", "2"), ("pdu-a", "04", "2"), ("pdu-z", "4", "2"), ("10.0.2.2", "3")):
        code, output, errors = pdu_mgr(*known, *words, **more)
        assert (code, output) == (1, "")
        assert ": feeds board1, which jackie of ann has" in errors
        assert "stop_instance -e instance=jackie, or add --force" in errors
    assert pdu_mgr(*known, "10.0.2.2", "9", **more) == (2, "pdu-a outlet 4: off\n", "")
    assert pdu_mgr(*known, "pdu-a", "3", "1", **more) == (0, "pdu-a outlet 3: on\n", "")
    assert pdu_mgr(*known, "10.0.2.2", "1", "--force", **more) == (0, "pdu-a outlet 4: on\n", "")


def test_a_board_whose_plug_was_moved_in_the_wiring_alone_is_not_switched(pdu_mgr, node, tmp_path):
    """Lost: a tenant's power, where its board is still fed by the outlet that the wiring named before."""
    known, more = node
    (tmp_path / "state").mkdir()
    records = str(tmp_path / "state" / FOLDER)
    with Store(str(tmp_path / "state" / "state.db"), records=records) as store:
        (claim,) = store.claim("jackie", ["jackie"], ClaimTerms("ann", {"name": "tp64.8x8"}, "debian-12", "key"), [1])
    ClaimRecords(records).write(1, Kept(claim, "running", ran=True, fed=Fed("pdu-a", "4", None)))
    more["boards"]["1"] = dict(pdu="pdu-a", outlet="5")
    for outlet in "45":
        code, output, errors = pdu_mgr(*known, "pdu-a", outlet, "2", **more)
        assert (code, output) == (1, "")
        assert "feeds board1, which jackie of ann has" in errors


def test_a_board_that_is_claimed_while_the_pdu_is_waited_for_is_not_switched(node, tmp_path, monkeypatch):
    """Lost: a tenant's power, which a provision switched on while this command waited for the PDU's lock."""
    (pdus, secrets), more = node
    (tmp_path / "state").mkdir()
    path = str(tmp_path / "state" / "state.db")
    Store(path).close()
    (tmp_path / "secrets.json").write_text(json.dumps(secrets))
    files = dict(pdus=pdus, credentials=str(tmp_path / "secrets.json"), run_folder=str(tmp_path / "run"))
    (tmp_path / "proxy.json").write_text(json.dumps({**files, **more}))

    @contextmanager
    def waits(*words):
        with Store(path) as store:
            store.claim("jackie", ["jackie"], ClaimTerms("ann", {"name": "tp64.8x8"}, "debian-12", "key"), [1])
        with session(*words) as opened:
            yield opened

    monkeypatch.setattr(pdu_mgr_command, "session", waits)
    with pytest.raises(Refused, match="feeds board1, which jackie of ann has"):
        pdu_mgr_command.main(["--config", str(tmp_path / "proxy.json"), "pdu-a", "4", "1"])
