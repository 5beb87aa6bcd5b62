# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Driver fence with Debian's own fence agents on the lab's PDU, and with agents that misbehave."""

from __future__ import annotations

import json
import shutil
import subprocess
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError, TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import outlets as power
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.fence import Fence
from ansible_collections.hetero.compute.tests.unit.drivers.power.emulated_pdu import PASSWORD, alive, boards, until


@pytest.fixture(autouse=True)
def _snmp_commands_keep_nothing(tmp_path, monkeypatch):
    """fence_apc_snmp's SNMP commands would make /var/lib/snmp on this machine."""
    monkeypatch.setenv("SNMP_PERSISTENT_DIR", str(tmp_path / "snmp"))


def batch(settings, secrets, folder, wanted, seconds=120.0, **options):
    deadline = Deadline(seconds)
    settings = {"driver": "fence", "host": "127.0.0.1", **settings}
    with power.session("pdu-t", settings, secrets, deadline, str(folder)) as session:
        return power.set_outlets(session, wanted, deadline, **options)


def status(settings, secrets, folder, seconds=120.0):
    settings = {"driver": "fence", "host": "127.0.0.1", **settings}
    with power.session("pdu-t", settings, secrets, Deadline(seconds), str(folder)) as session:
        return session.status()


def by_snmp(pdu):
    """Options of fence_apc_snmp that lead it to a PDU, and to the SNMP commands wherever they are."""
    assert shutil.which("snmpset"), "snmpset (Debian: snmp) is not installed: run tools/setup test"
    port = int(pdu.process.stdout.readline().split()[-1])
    return {"ipport": port, **{f"{name}_path": shutil.which(name) for name in ("snmpget", "snmpset", "snmpwalk")}}


def test_fence_apc_switches_a_real_process(emulated, tmp_path):
    """Without it, PDUs of the many kinds that only a fence agent speaks to could not be used."""
    pdu = emulated(dialect="cli", outlets=boards(tmp_path, "3"))
    settings = {"agent": "fence_apc", "port": pdu.port}
    seen = batch(settings, pdu.secrets, tmp_path, {"3": "on", "4": "off"})
    assert {outlet: (one["before"], one["after"]) for outlet, one in seen.items()} == {
        "3": ("off", "on"),
        "4": ("off", "off"),
    }
    assert alive(pdu.outlets["3"]["pid"])
    assert PASSWORD not in json.dumps(seen)


@pytest.mark.parametrize("kind", ["1.3.6.1.4.1.318.1.3.4.5", "1.3.6.1.4.1.318.1.3.4.6", "1.3.6.1.4.1.318.1.3.4.4"])
def test_fence_apc_snmp_unmodified(emulated, tmp_path, kind):
    """Without it, the lab's SNMP might be a fiction that only our own driver believes."""
    pdu = emulated(snmp={"port": 0, "object_id": kind}, outlets=boards(tmp_path, "3"))
    options = "".join(f"{name}={value}\n" for name, value in by_snmp(pdu).items())

    def fence(action):
        text = f"{options}ip=127.0.0.1\ncommunity=private\nplug=3\naction={action}\n"
        return subprocess.run(
            ["fence_apc_snmp"],
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )

    assert fence("status").returncode == 2
    assert fence("on").returncode == 0
    assert alive(pdu.outlets["3"]["pid"])
    assert fence("status").returncode == 0
    assert any(line.endswith("3,board3") for line in fence("list").stdout.splitlines())
    assert fence("off").returncode == 0
    assert pdu.outlets["3"]["state"] == "off"


def test_an_agent_that_lists_no_states_is_asked_for_the_outlets_that_are_named(emulated, tmp_path):
    """Without it, agents that list names alone would be no use, or would be run for each of 24 outlets."""
    pdu = emulated(snmp={"port": 0}, outlets=boards(tmp_path, "3"))
    settings = {"agent": "fence_apc_snmp", "agent_options": by_snmp(pdu), "outlets": ["3"]}
    assert batch(settings, {"community": "private"}, tmp_path, {"3": "on"})["3"]["after"] == "on"
    assert status(settings, {"community": "private"}, tmp_path) == {"3": "on"}


AGENT = """\
#!/usr/bin/env python3
import json, subprocess, sys, time
options = dict(line.rstrip("\\n").split("=", 1) for line in sys.stdin)
folder = {folder!r}
with open(folder + "/calls", "a") as file:
    file.write(json.dumps([sys.argv[1:], options]) + "\\n")
action, plug = options["action"], options.get("plug")
{body}
"""
OUTLETS = """\
if action == "list-status":
    print("1,a, b,ON\\n2,,OFF\\n3,c,UNKNOWN")
elif action == "status":
    sys.exit({"1": 0, "2": 2}.get(plug, 1))
else:
    print("Failed: Timed out waiting to power " + action.upper(), file=sys.stderr)
    sys.exit(1)
"""


MISREADS_ONCE = """\
import os
state = folder + "/state"
if action == "list-status":
    print("1,a,OFF" if not os.path.exists(state) else "1,a," + open(state).read().upper())
elif not os.path.exists(folder + "/misread"):
    open(folder + "/misread", "w").close()
    print("2026-11-25 12:00:00,000 ERROR: Failed: Unable to obtain correct plug status or plug is not available",
          file=sys.stderr)
    sys.exit(1)
else:
    open(state, "w").write(action)
"""


@pytest.fixture
def agent(tmp_path):
    """A function that writes an agent and returns (settings, function that tells how it was called)."""

    def write(body, **settings):
        path = tmp_path / "fence_t"
        path.write_text(AGENT.format(folder=str(tmp_path), body=body))
        path.chmod(0o755)
        calls = tmp_path / "calls"
        return (
            {"agent": str(path), **settings},
            lambda: [json.loads(line) for line in calls.read_text().splitlines()],
        )

    return write


def test_an_order_that_the_agent_misread_is_given_again(agent, tmp_path):
    """Lost: a boot, to fence_apc that took a late prompt for the end of its list, as it does where a PDU is slow."""
    settings, calls = agent(MISREADS_ONCE)
    assert batch(settings, {}, tmp_path, {"1": "on"})["1"]["after"] == "on"
    assert [options["action"] for _arguments, options in calls()].count("on") == 2


def test_options_by_standard_input(agent, tmp_path):
    """Without it, passwords would be in the process list, or arrive at the agent with their ends cut off."""
    settings, calls = agent(OUTLETS, port=2323, agent_options={"ssh": 1, "power_timeout": 5})
    secrets = {"username": "apc", "password": ' p"=w ', "privacy_password": "x y", "community": None}
    assert status(settings, secrets, tmp_path) == {"1": "on", "2": "off", "3": "unknown (nothing)"}
    assert [options["action"] for _arguments, options in calls()] == ["list-status", "status"]
    assert calls()[:1] == [
        [
            [],
            {
                "action": "list-status",
                "ip": "127.0.0.1",
                "ipport": "2323",
                "username": "apc",
                "password": '" p"=w "',
                "snmp_priv_passwd": "x y",
                "ssh": "1",
                "power_timeout": "5",
            },
        ]
    ]


def test_an_agent_that_fails_to_switch(agent, tmp_path):
    """Without it, the reason that the agent gives would be lost, or its word taken for the outlet's state."""
    settings, _calls = agent(OUTLETS)
    with pytest.raises(power.OutletsFailed, match=r"outlet 2 of pdu-t: still off .*Timed out waiting to power ON"):
        batch(settings, {}, tmp_path, {"1": "on", "2": "on"})


@pytest.mark.parametrize(("named", "seen"), [((), "lists no outlets"), (("1", "2"), {"1": "on", "2": "off"})])
def test_an_agent_that_cannot_list(agent, tmp_path, named, seen):
    """Without it, agents of one machine each (IPMI, virtual machines) could not be used."""
    body = OUTLETS.replace('print("1,a, b,ON\\n2,,OFF\\n3,c,UNKNOWN")', "sys.exit(1)")
    settings, _calls = agent(body, outlets=list(named))
    if named:
        assert status(settings, {}, tmp_path) == seen
    else:
        with pytest.raises(HeteroError, match=seen):
            status(settings, {}, tmp_path)


def test_a_login_that_fails_is_not_tried_again(agent, tmp_path):
    """Without it, our retries of a wrong password would lock the account for everybody."""
    words = "Unable to connect/login to fencing device"
    settings, calls = agent(f'sys.exit("Failed: {words}")', outlets=["1"])
    with pytest.raises(HeteroError, match=rf"outlet 1 of pdu-t: .*{words}"):
        status(settings, {}, tmp_path, seconds=60)
    assert len(calls()) == 2


def test_a_lost_connection_is_tried_again(agent, tmp_path):
    """Without it, one dropped packet would fail a play."""
    body = f"""\
with open({str(tmp_path)!r} + "/calls") as file:
    first = len(file.readlines()) == 1
if first:
    sys.exit("Connection lost")
print("1,a,ON")
"""
    settings, calls = agent(body)
    assert status(settings, {}, tmp_path) == {"1": "on"}
    assert len(calls()) == 2


def test_an_agent_that_hangs_is_ended_with_its_children(agent, tmp_path):
    """Without it, the telnet of a dead agent would keep the PDU's one place for ever."""
    body = f"""\
child = subprocess.Popen(["sleep", "60"])
with open({str(tmp_path)!r} + "/child", "w") as file:
    file.write(str(child.pid))
time.sleep(60)
"""
    settings, _calls = agent(body)
    for seconds in (3.0, 30.0):  # a busy machine needs longer to begin the child
        begun = time.monotonic()
        with pytest.raises(TimedOut, match=r"fence_t did not end within"):
            status(settings, {}, tmp_path, seconds=seconds)
        assert time.monotonic() - begun < seconds + 60
        if (tmp_path / "child").exists():
            break
    child = int((tmp_path / "child").read_text())
    assert until(lambda: not alive(child))


@pytest.mark.parametrize(
    ("settings", "secrets", "error", "words"),
    [
        ({}, {}, BadInput, "'' is no fence agent: name its agent"),
        ({"agent": "/bin/sh"}, {}, BadInput, "is no fence agent"),
        ({"agent": "fence_of_nobody"}, {}, HeteroError, "install the package that has fence_of_nobody"),
    ],
)
def test_an_agent_that_is_none(tmp_path, settings, secrets, error, words):
    """Without it, a typing error in the inventory would run some other program with the PDU's password."""
    with pytest.raises(error, match=words):
        status(settings, secrets, tmp_path)


def test_a_password_of_two_lines(agent, tmp_path):
    """Without it, a password could bring an option of its own."""
    settings, _calls = agent(OUTLETS)
    with pytest.raises(BadInput, match="its password has a line end or another control character"):
        status(settings, {"password": "a\naction=off"}, tmp_path)


@pytest.mark.parametrize(
    ("more", "name"),
    [({"identity_file": "a\naction=off"}, "identity_file"), ({"a\naction": "off"}, "a\naction"), ({"-x": "1"}, "-x")],
)
def test_an_option_of_two_lines(more, name):
    """Without it, an option of the inventory could bring another one, for which nobody asked."""
    fence = Fence("pdu-t", {"agent": "fence_apc", "host": "pdu-a", "agent_options": more}, {}, Deadline(60))
    with pytest.raises(BadInput, match=f"pdu-t: option {name} has a control character: correct it"):
        fence._options("status", "1")
