# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files by which people reach their instances, written by a real ansible."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from ansible_collections.hetero.compute.tests.builds import shared
from ansible_collections.hetero.compute.tests.turns import in_turns

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBench0000000000000000000000000000000000000"
BOARDS = [{"instance": f"jackie-{n}", "ip": f"10.0.2.{n}", "known_hosts": f"10.0.2.{n} {KEY}"} for n in (1, 2)]


@pytest.fixture
def ways(tmp_path):
    """A function that runs the task; returns its result."""

    def run(*options, **arguments):
        arguments = {"folder": str(tmp_path / "ssh"), "instances": BOARDS, **arguments}
        argv = [sys.executable, "-m", "ansible", "adhoc", "localhost", "-i", "localhost,", *options]
        argv += ["-m", "hetero.compute.ssh_config", "-a", json.dumps(arguments)]
        environment = {
            **os.environ,
            "ANSIBLE_COLLECTIONS_PATH": os.environ["PYTHONPATH"],
            "ANSIBLE_LOCAL_TEMP": str(tmp_path / "ansible"),
            "ANSIBLE_NOCOLOR": "1",
            **shared(),
        }
        done = subprocess.run(argv, capture_output=True, text=True, env=environment, timeout=600, check=False)
        return json.JSONDecoder().raw_decode(done.stdout.partition(" => ")[2])[0]

    return run


def test_the_way_in_for_each_of_a_batch(ways, tmp_path):
    """Without it, nobody could log in, or ssh would take any machine at the address for his."""
    assert ways("--check")["changed"] is True
    assert not (tmp_path / "ssh").exists()
    assert ways(options=["ProxyJump proxy1"])["changed"] is True
    file = tmp_path / "ssh" / "jackie-2"
    assert file.stat().st_mode & 0o777 == 0o600
    said = subprocess.run(["ssh", "-G", "-F", file, "jackie-2"], capture_output=True, text=True, check=True).stdout
    for line in ("hostname 10.0.2.2", "user root", "stricthostkeychecking true", "proxyjump proxy1"):
        assert line in said.splitlines()
    assert f"knownhostscommand /usr/bin/echo 10.0.2.2 {KEY}" in said
    assert ways(options=["ProxyJump proxy1"])["changed"] is False
    file.chmod(0o644)
    assert ways(options=["ProxyJump proxy1"])["changed"] is True
    assert file.stat().st_mode & 0o777 == 0o600
    (file.with_name("other")).write_text("")
    file.chmod(0o644)
    gone = ways(state="absent", instances=[{"instance": "jackie-1"}, {"instance": "jackie-2"}])
    assert gone["changed"] is True
    assert os.listdir(tmp_path / "ssh") == ["other"]
    assert ways(state="absent")["changed"] is False


@pytest.mark.parametrize("name", in_turns(["config", "rc", "environment"], days=3))
def test_a_file_that_is_no_instances_is_left_alone(ways, tmp_path, name):
    """Lost: an instance called config, in ~/.ssh, would take the place of a user's own settings, or end them."""
    (tmp_path / "ssh").mkdir()
    file = tmp_path / "ssh" / name
    for mode in (0o600, 0o644):
        file.write_text("Host *\n  User jo\n")
        file.chmod(mode)
        for state in ("present", "absent"):
            result = ways(state=state, instances=[{**BOARDS[0], "instance": name}])
            assert f"ssh/{name} is no file of an instance" in result["msg"]
            assert file.read_text() == "Host *\n  User jo\n"


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"instance": "../authorized_keys"}, "is no name of an instance"),
        ({"known_hosts": f"10.0.2.1 {KEY}\nProxyCommand reboot"}, "known_hosts is not one line"),
        ({"ip": None}, "ip is not one line"),
        ({"ip": "fe80::1%h$(touch${IFS}x)"}, "jackie-1: ip is no address or host name ('fe80::1%h$(touch${IFS}x)')"),
        ({"ip": "-oProxyCommand=x"}, "ip is no address or host name"),
        ({"known_hosts": "10.0.2.1 ssh-rsa ${HOME}"}, "known_hosts is no line of known_hosts"),
    ],
)
def test_an_owner_that_lies_writes_no_option(ways, tmp_path, bad, words):
    """Without it, a proxy node that was broken into could have a command of its own run by its users' ssh."""
    result = ways(instances=[{**BOARDS[0], **bad}])
    assert words in result["msg"]
    assert not (tmp_path / "ssh").exists()
