# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Driver snmp with net-snmp's own commands: on the lab's PDU, and version 3 on net-snmp's own agent."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
import stat
import subprocess
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError, TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import outlets as power
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.snmp import Snmp
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.snmp_tables import TABLES
from ansible_collections.hetero.compute.tests.unit.drivers.power.emulated_pdu import alive, boards

COMMUNITY = 'pri"vate \\17 #'
KINDS = {
    "rPDU": "1.3.6.1.4.1.318.1.3.4.5",
    "rPDU2": "1.3.6.1.4.1.318.1.3.4.6",
    "MasterSwitch": "1.3.6.1.4.1.318.1.3.2.11",
    "MasterSwitch Plus": "1.3.6.1.4.1.318.1.3.4.4",
}


def start(emulated, version="1", community=COMMUNITY, tables=tuple(KINDS), kind=KINDS["rPDU"], **settings):
    """(PDU, its settings, its secrets)."""
    assert shutil.which("snmpset"), "snmpset (Debian: snmp) is not installed: run tools/setup test"
    agent = {"port": 0, "write": COMMUNITY, "tables": list(tables), "object_id": kind}
    pdu = emulated(snmp=agent, **settings)
    port = int(pdu.process.stdout.readline().split()[-1])
    found = {"driver": "snmp", "host": "127.0.0.1", "port": port, "snmp_version": version}
    return pdu, found, {"community": community}


@contextlib.contextmanager
def opened(settings, secrets, folder, seconds=90.0):
    deadline = Deadline(seconds)
    with power.session("pdu-t", settings, secrets, deadline, str(folder)) as session:
        yield session, deadline


def batch(settings, secrets, folder, wanted, seconds=90.0, **options):
    with opened(settings, secrets, folder, seconds) as (session, deadline):
        return session.dialect, power.set_outlets(session, wanted, deadline, **options)


@pytest.mark.parametrize("version", ["1", "2c"])
@pytest.mark.parametrize("table", KINDS)
def test_each_table_switches_real_processes(emulated, tmp_path, table, version):
    """Without it, a PDU whose states are reversed would be called off while its boards run."""
    pdu, settings, secrets = start(
        emulated, version, tables=[table], kind=KINDS[table], outlets=boards(tmp_path, "1", "3")
    )
    dialect, results = batch(settings, secrets, tmp_path, {"1": "on", "3": "on", "2": "off"})
    assert dialect == table
    assert {outlet: (seen["before"], seen["after"]) for outlet, seen in results.items()} == {
        "1": ("off", "on"),
        "3": ("off", "on"),
        "2": ("off", "off"),
    }
    pid = pdu.outlets["1"]["pid"]
    assert alive(pid)
    _dialect, results = batch(settings, secrets, tmp_path, {"1": "off", "3": "cycled"})
    assert results["1"]["after"] == "off"
    assert not alive(pid)
    assert (tmp_path / "3.log").read_text().count("--- power on ---") == 2
    with opened(settings, secrets, tmp_path) as (session, _deadline):
        assert session.status() == {**dict.fromkeys(map(str, range(1, 9)), "off"), "3": "on"}


@pytest.mark.parametrize(
    ("kind", "dialect"),
    [
        (KINDS["rPDU"], "rPDU"),
        (KINDS["rPDU2"], "rPDU2"),
        (KINDS["MasterSwitch Plus"], "MasterSwitch Plus"),
        ("1.3.6.1.4.1.9.1", "rPDU2"),
    ],
)
def test_a_pdu_with_all_tables_is_asked_in_its_own(emulated, tmp_path, kind, dialect):
    """Without it, a PDU that shows an old table for old clients might be switched in one that does nothing."""
    _pdu, settings, secrets = start(emulated, kind=kind)
    with opened(settings, secrets, tmp_path) as (session, _deadline):
        assert session.dialect == dialect


def test_success_that_is_none_is_found_out(emulated, tmp_path):
    """Without it, a board with a stuck relay would be called off while its tenant still runs on it."""
    _pdu, settings, secrets = start(emulated, faults={"stuck": ["2"]})
    with pytest.raises(power.OutletsFailed, match="outlet 2 of pdu-t: still off") as caught:
        batch(settings, secrets, tmp_path, {"1": "on", "2": "on"}, window=0.3)
    assert set(caught.value.results) == {"1"}


@pytest.mark.parametrize("version", ["1", "2c"])
def test_a_community_that_may_only_read(emulated, tmp_path, version):
    """Without it, somebody with the wrong community would look for a broken relay."""
    pdu, settings, secrets = start(emulated, version, community="public")
    with pytest.raises(power.OutletsFailed, match=r"(noSuchName|noAccess).*check what this account may do"):
        batch(settings, secrets, tmp_path, {"1": "on"})
    assert pdu.outlets["1"]["state"] == "off"


def test_an_unknown_community_ends_at_the_deadline(emulated, tmp_path):
    """Without it, a mistyped community would hold a play for ever, or be taken for a dead PDU."""
    _pdu, settings, secrets = start(emulated, community="hush-hush-7")
    for seconds in (1.0, 15.0):  # beside other load snmpget may not be at its end when the first is up
        begun = time.monotonic()
        with pytest.raises(TimedOut) as caught:
            batch(settings, secrets, tmp_path, {"1": "on"}, seconds=seconds)
        assert time.monotonic() - begun < seconds + 60
        if "Timeout: No Response" in str(caught.value):
            break
    assert caught.match(r"Timeout: No Response.*community")
    assert "hush-hush-7" not in repr(caught.value.failure)


def test_a_pdu_without_outlets_is_told_from_a_dead_one(emulated, tmp_path):
    """Without it, the person would check the cable of a PDU that answers, but is no APC."""
    _pdu, settings, secrets = start(emulated, tables=[])
    with pytest.raises(HeteroError, match=r"no outlets in the tables of PoE, rPDU2, .*318\.1\.3\.4\.5\)"):
        batch(settings, secrets, tmp_path, {"1": "on"})


def test_reading_does_not_wait_for_the_lock_and_switching_does(emulated, tmp_path):
    """Without it, `status` would hang behind a play of minutes, or two plays would switch one PDU at once."""
    pdu, settings, secrets = start(emulated)
    lock = tmp_path / "locks" / "pdu-pdu-t"
    lock.parent.mkdir()
    with open(lock, "w", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with opened(settings, secrets, tmp_path) as (session, deadline):
            assert session.status()["1"] == "off"
            assert power.set_outlets(session, {"1": "on"}, deadline, check=True)["1"]["after"] == "on"
            deadline.seconds = deadline.spent + 0.3
            with pytest.raises(TimedOut, match="still held by"):
                power.set_outlets(session, {"1": "on"}, deadline)
    assert pdu.outlets["1"]["state"] == "off"
    batch(settings, secrets, tmp_path, {"1": "on"})
    assert pdu.outlets["1"]["state"] == "on"


def test_the_telnet_place_is_not_needed(emulated, tmp_path):
    """Without it, an operator's open terminal would keep SNMP from seeing what is on."""
    pdu, settings, secrets = start(emulated)
    with socket.create_connection(("127.0.0.1", pdu.port), 5) as colleague:
        colleague.recv(100)
        assert batch(settings, secrets, tmp_path, {"1": "on"})[1]["1"]["after"] == "on"


def test_the_community_is_in_no_process_list_and_leaves_nothing(emulated, tmp_path, monkeypatch):
    """Without it, everybody with a shell on the proxy could switch off any board."""
    programs, log = tmp_path / "bin", tmp_path / "log"
    programs.mkdir()
    for name in ("snmpget", "snmpset", "snmpwalk"):
        # what `ps` shows of the program, and what its own user can read of its environment
        text = f'#!/bin/sh\ncat /proc/$$/cmdline /proc/$$/environ >>{log}\nexec {shutil.which(name)} "$@"\n'
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    _pdu, settings, secrets = start(emulated)
    with opened(settings, secrets, tmp_path / "run") as (session, deadline):
        (folder,) = tmp_path.glob("hetero-snmp-*")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE((folder / "snmp.conf").stat().st_mode) == 0o600
        assert "vate" in (folder / "snmp.conf").read_text()
        power.set_outlets(session, {"1": "cycled"}, deadline)
    seen = log.read_bytes()
    assert all(word in seen for word in (b"snmpget", b"snmpset", b"snmpwalk", b"SNMPCONFPATH=" + bytes(folder)))
    # where net-snmp would write what it knows of the PDU, else in this user's home
    assert b"SNMP_PERSISTENT_DIR=" + bytes(folder) in seen
    assert b"vate" not in seen
    assert not list(tmp_path.glob("hetero-snmp-*"))
    nowhere = {**settings, "host": "no-host.invalid"}
    with pytest.raises(HeteroError, match="cannot be reached"), opened(nowhere, secrets, tmp_path / "run"):
        pytest.fail("opened")
    assert not list(tmp_path.glob("hetero-snmp-*"))


class TestVersion3:
    """Users, passphrases and encryption, on net-snmp's own agent, which plays a MasterSwitch."""

    @pytest.fixture
    def agent(self, tmp_path):
        """Settings of a running snmpd with user `watt`, whose passphrases are `one two "3"` and `four five 6`."""
        assert shutil.which("snmpd"), "snmpd (Debian: snmpd) is not installed: run tools/setup test"
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as place:
            place.bind(("127.0.0.1", 0))
            port = place.getsockname()[1]
        (column,) = [table.state for table in TABLES if table.name == "MasterSwitch"]
        lines = [f"override -rw .{column}.{outlet} integer 2" for outlet in (1, 2)]
        lines += [
            'createUser watt SHA "one two 3" AES "four five 6"',
            "rwuser watt priv .1.3.6.1",
            "rouser watt auth .1.3.6.1",
        ]
        (tmp_path / "snmpd.conf").write_text("\n".join([*lines, ""]))
        argv = ["snmpd", "-f", "-Lo", "-C", "-c", str(tmp_path / "snmpd.conf"), "-m", "", f"udp:127.0.0.1:{port}"]
        env = {**os.environ, "SNMP_PERSISTENT_DIR": str(tmp_path), "SNMPCONFPATH": str(tmp_path)}
        with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            try:
                for line in process.stdout:
                    if "NET-SNMP version" in line:
                        break
                yield {"driver": "snmp", "host": "127.0.0.1", "port": port, "snmp_version": "3"}
            finally:
                process.kill()

    def test_switches_with_encryption(self, agent, tmp_path):
        """Without it, sites that have switched versions 1 and 2c off would have no power control."""
        secrets = {"username": "watt", "password": "one two 3", "privacy_password": "four five 6"}
        dialect, results = batch(agent, secrets, tmp_path, {"1": "on", "2": "cycled"})
        assert dialect == "MasterSwitch"
        assert [(seen["before"], seen["after"]) for seen in results.values()] == [("off", "on"), ("off", "on")]

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"username": "nobody"}, "refuses the SNMP user: .*nknown user name"),
            ({"password": "wrong-wrong"}, "refuses the SNMP user: .*Authentication failure"),
        ],
    )
    def test_a_wrong_credential_is_said_at_once(self, agent, tmp_path, change, words):
        """Without it, a mistyped passphrase would be waited for until the deadline, and be called a dead PDU."""
        secrets = {"username": "watt", "password": "one two 3", "privacy_password": "four five 6", **change}
        begun = time.monotonic()
        with pytest.raises(HeteroError, match=words) as caught, opened(agent, secrets, tmp_path):
            pytest.fail("opened")
        assert time.monotonic() - begun < 60
        assert "wrong-wrong" not in repr(caught.value.failure)

    def test_a_wrong_privacy_password_is_silence(self, agent, tmp_path):
        """Without it, a community would be corrected that version 3 does not have."""
        secrets = {"username": "watt", "password": "one two 3", "privacy_password": "wrong-wrong"}
        for seconds in (1.0, 15.0):  # as above
            with pytest.raises(TimedOut) as caught, opened(agent, secrets, tmp_path, seconds=seconds):
                pytest.fail("opened")
            if "(Timeout" in caught.value.what:
                break
        assert caught.value.what.startswith("no answer by SNMP (Timeout")
        assert "another privacy_password or protocol" in caught.value.remedy


@pytest.mark.parametrize(
    ("settings", "secrets", "words"),
    [
        ({}, {}, "no community is known for it: give community"),
        ({}, {"community": "a\nb"}, "control character"),
        ({"snmp_version": "2"}, {"community": "x"}, "no such SNMP version: 2"),
        ({"host": "-h"}, {"community": "x"}, "'-h' is no host"),
        ({"host": "a b"}, {"community": "x"}, "'a b' is no host"),
        ({"snmp_version": "3"}, {}, "no username is known"),
        ({"snmp_version": "3"}, {"username": "u", "password": "short"}, "shorter than 8"),
        ({"snmp_version": "3"}, {"username": "u", "privacy_password": "long enough"}, "without a password"),
        ({"snmp_version": "3", "auth_protocol": "A B"}, {"username": "u", "password": "12345678"}, "no auth_protocol"),
    ],
)
def test_what_cannot_work_is_said_before_the_pdu_is_asked(tmp_path, settings, secrets, words):
    """Without it, a typing error in the inventory would be net-snmp's usage text, or a second line in its file."""
    settings = {"driver": "snmp", "host": "127.0.0.1", "port": 9, **settings}
    with pytest.raises(BadInput, match=words), Snmp("pdu-t", settings, secrets, Deadline(60)):
        pytest.fail("opened")
