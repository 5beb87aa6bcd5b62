# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What net-snmp's commands say of a PDU, and what is made of it. Real agents are asked in test_snmp*.py."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, Lost
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import snmp

APC = "1.3.6.1.4.1.318"
TABLES = {table.name: table for table in snmp.TABLES if table.state.startswith(APC)}


@pytest.fixture
def pdu(monkeypatch):
    """Of this table, where its commands end so; `pdu.argv` is what was run last."""

    def make(code=0, out="", err="", left=60, version="2c", table="rPDU2"):
        one = snmp.Snmp("pdu-t", {"host": "pdu-a", "snmp_version": version}, {}, Deadline(left))
        one._folder, one._table = SimpleNamespace(name="/folder"), TABLES[table]

        def ended(argv, thing, remedy, limits, env):
            one.argv, one.limit, one.env = argv, limits.seconds, env
            if isinstance(code, Exception):
                raise code
            return SimpleNamespace(returncode=code, stdout=out, stderr=err)

        monkeypatch.setattr(snmp, "ended", ended)
        return one

    return make


NO_PLACE = "Failed object: iso.3.6.1\nCreated directory: /var/lib/snmp/mib_indexes\n"


@pytest.mark.parametrize(
    ("out", "err", "kind", "what", "remedy"),
    [
        ("", "Timeout: No Response from udp:pdu-a:161.\n", Lost, "no answer by SNMP (Timeout: No", "check its host"),
        (
            "",
            "snmpget: Unknown user name\n",
            HeteroError,
            "refuses the SNMP user: snmpget: Unk",
            "correct the credential",
        ),
        (
            "",
            "Authentication failure (incorrect password)",
            HeteroError,
            "refuses the SNMP user: Aut",
            "correct the cred",
        ),
        (
            "",
            "Error: Unsupported security level",
            HeteroError,
            "refuses the SNMP user: Err",
            "correct the credential of",
        ),
        (
            "",
            "Decryption error",
            HeteroError,
            "refuses the SNMP user: Decryption error",
            "correct the credential of pdu-t",
        ),
        (
            "",
            "snmpget: Unknown host (pdu-a)",
            HeteroError,
            "cannot be reached: snmpget: Unk",
            "check its host and port",
        ),
        ("", "sendto: No route to host", HeteroError, "cannot be reached: sendto: No r", "check its host and port"),
        ("", "Network is unreachable", HeteroError, "cannot be reached: Network is", "check its host and port"),
        ("", f"{NO_PLACE} Reason: noAccess \n\n", HeteroError, "Reason: noAccess", "check what this account may do"),
        ("said on the other side\n", "", HeteroError, "said on the other side", "check what this account may do"),
        ("", NO_PLACE, HeteroError, "snmpget ended with 2", "check what this account may do"),
        ("", "", HeteroError, "snmpget ended with 2", "check what this account may do"),
        ("", "one\n  two\n", HeteroError, "one two", "check what this account may do"),
    ],
)
def test_what_a_command_says(pdu, out, err, kind, what, remedy):
    """Lost: whether the PDU is silent, refuses us, or is not there: each is mended somewhere else."""
    with pytest.raises(HeteroError) as caught:
        pdu(2, out, err)._ask("snmpget", "1.3")
    assert type(caught.value) is kind  # pylint: disable=unidiomatic-typecheck
    assert caught.value.what.startswith(what)
    assert caught.value.remedy.startswith(remedy)
    assert caught.value.thing == "pdu-t"


@pytest.mark.parametrize(("version", "remedy"), [("3", snmp.NO_ANSWER_TO_USER), ("1", snmp.NO_ANSWER)])
def test_silence_says_what_to_look_at(pdu, version, remedy):
    """Lost: that a wrong community, or a wrong password of version 3, looks like a PDU that is off."""
    with pytest.raises(Lost, match=r"no answer by SNMP \(Timeout: No Response\)") as caught:
        pdu(1, err="Timeout: No Response", version=version)._ask("snmpget", "1.3")
    assert caught.value.remedy == remedy.format(way="check its host and port (pdu-a, as tftp_proxy_pdus has pdu-t)")


def test_a_pdu_that_a_task_gives_by_its_address_is_in_no_settings(pdu):
    """Lost: the time of who looks for it in a proxy's settings."""
    one = pdu()
    one.name = "pdu-a"
    assert one.way == "check its host and port (pdu-a)"


@pytest.mark.parametrize(("left", "wait", "limit"), [(60, 3, 60), (5, 2, 5), (0, 0.1, 0.5)])
def test_an_answer_is_waited_for_as_long_as_there_is_time(pdu, left, wait, limit):
    """Lost: the second question before the time is up, or the play's time for a PDU that is off."""
    one = pdu(left=left)
    one._ask("snmpget", "1.3")
    assert one.argv[:4] == ["snmpget", "-m", "", "-Oqne"]
    assert one.argv[4::2] == ["-t", "-r", "udp:pdu-a:161"]
    assert float(one.argv[5]) == pytest.approx(wait, abs=0.2)
    assert one.argv[7:] == ["1", "udp:pdu-a:161", "1.3"]
    assert one.limit == pytest.approx(limit, abs=0.5)
    assert one.env == {"SNMPCONFPATH": "/folder", "SNMP_PERSISTENT_DIR": "/folder"}


@pytest.mark.parametrize(
    ("table", "on", "off", "order_on", "order_off"),
    [
        ("rPDU2", "2", "1", "1", "2"),
        ("rPDU", "1", "2", "1", "2"),
        ("MasterSwitch Plus", "1", "2", "1", "3"),
        ("MasterSwitch", "1", "2", "1", "2"),
    ],
)
def test_on_and_off_of_each_kind_of_pdu(pdu, table, on, off, order_on, order_off):
    """Lost: a board is called off while it runs, or is cut where it was to start: each kind has its own numbers."""
    column, control = TABLES[table].state, TABLES[table].on.column
    out = f".{column}.1 {on}\n.{column}.2 {off}\n.{column}.3 9\n.{column}9.4 {on}\n.{APC}.9.9 7\n"
    out += f".{column}.4 No more variables left in this MIB View\n"
    one = pdu(out=out, table=table)
    assert one.status() == {"1": "on", "2": "off", "3": "unknown (9)"}
    answers = one.switch(["2"], "on")
    assert one.argv[-3:] == [f"{control}.2", "i", order_on]
    assert (answers["2"].accepted, answers["2"].words) == (True, "set")
    one.switch(["1"], "off")
    assert one.argv[-3:] == [f"{control}.1", "i", order_off]
    assert one.argv[0] == "snmpset"


@pytest.mark.parametrize(
    ("kind", "name"),
    [("1.3.4.4", "MasterSwitch Plus"), ("1.3.4.5", "rPDU"), ("1.3.4.6", "rPDU2"), ("1.3.4.9", "rPDU2")],
)
def test_the_likely_table_is_asked_first_by_a_secret_that_nobody_else_reads(monkeypatch, kind, name):
    """Lost: a second of each play for each table that a PDU has not; or the community, in a file for all to read."""
    asked, one = [], snmp.Snmp("pdu-t", {"host": "pdu-a"}, {"community": "rack"}, Deadline(60))

    def ask(program, *words):
        asked.append((program, *words))
        return [("1.3", f".{APC}.{kind}")] if program == "snmpget" else [(f"{words[0]}.1", "1")]

    monkeypatch.setattr(one, "_ask", ask)
    one.login()
    assert asked == [("snmpget", "1.3.6.1.2.1.1.2.0"), ("snmpwalk", TABLES[name].state)]
    assert one.dialect == name
    file = Path(one._folder.name) / "snmp.conf"
    assert file.read_text() == 'defVersion 1\ndefCommunity "rack"\n'
    assert file.stat().st_mode & 0o777 == 0o600
    one.logout()
    assert not file.parent.exists()
    one.logout()


@pytest.mark.parametrize(("rows", "kind"), [([], "unknown"), ([("1.3", ".1.3.6.1.4.1.9.1")], "1.3.6.1.4.1.9.1")])
def test_what_has_no_outlets_says_what_it_is(monkeypatch, rows, kind):
    """Lost: that a switch, or another maker's PDU, answers at that address."""
    one = snmp.Snmp("pdu-t", {"host": "pdu-a"}, {"community": "rack"}, Deadline(60))
    monkeypatch.setattr(one, "_ask", lambda program, *words: rows if program == "snmpget" else [])
    with pytest.raises(HeteroError) as caught:
        one.login()
    names = "PoE, rPDU2, rPDU, MasterSwitch Plus, MasterSwitch, Raritan, Sentry4, Sentry3, Eaton, CyberPower ePDU2, "
    names += "CyberPower ePDU, Vertiv, Gude"
    assert caught.value.what == f"answers, but has no outlets in the tables of {names} (its sysObjectID is {kind})"
    one.logout()
    one.logout()


def test_an_order_that_is_lost_is_not_one_that_was_refused(pdu):
    """Lost: an outlet is called stubborn, and its board taken out of use, where the network was away."""
    with pytest.raises(Lost):
        pdu(1, err="Timeout: No Response from udp:pdu-a:161.")._order(TABLES["rPDU2"].on, "1")


def test_one_who_reads_disturbs_nobody():
    """Lost: who looks at a PDU waits for who switches it."""
    assert snmp.Snmp.readers is True
