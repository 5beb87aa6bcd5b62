# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What net-snmp's commands are told of a PDU. Whole sessions are in test_snmp.py."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import snmp
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.snmp import Snmp

USER = {"username": "jackie"}
BOTH = dict(USER, password="a long one", privacy_password='an"other\\')


def told(settings, secrets):
    return Snmp("pdu-t", settings, secrets, Deadline(1.0))._configuration().splitlines()


@pytest.mark.parametrize(
    ("settings", "secrets", "lines"),
    [
        ({}, {"community": "rack"}, ["defVersion 1", 'defCommunity "rack"']),
        ({"snmp_version": "2c"}, {"community": "rack"}, ["defVersion 2c", 'defCommunity "rack"']),
        ({"snmp_version": 3}, USER, ["defVersion 3", 'defSecurityName "jackie"', "defSecurityLevel noAuthNoPriv"]),
        (
            {"snmp_version": "3", "auth_protocol": "MD5"},
            dict(USER, password="12345678"),
            [
                *("defVersion 3", 'defSecurityName "jackie"', "defSecurityLevel authNoPriv"),
                *("defAuthType MD5", 'defAuthPassphrase "12345678"'),
            ],
        ),
        (
            {"snmp_version": "3", "privacy_protocol": "DES"},
            BOTH,
            [
                *("defVersion 3", 'defSecurityName "jackie"', "defSecurityLevel authPriv"),
                *("defAuthType SHA", 'defAuthPassphrase "a long one"'),
                *("defPrivType DES", 'defPrivPassphrase "an\\"other\\\\"'),
            ],
        ),
    ],
)
def test_settings_and_secrets(settings, secrets, lines):
    """Else a PDU is asked in the clear that was to be asked encrypted, or not at all."""
    assert told(settings, secrets) == lines


def test_the_usual_protocols():
    """Else who names none is refused by each PDU of this decade."""
    assert {"defAuthType SHA", "defPrivType AES"} <= set(told({"snmp_version": "3"}, BOTH))


@pytest.mark.parametrize(
    ("settings", "secrets", "words"),
    [
        ({"snmp_version": "3"}, dict(USER, privacy_password="a long one"), "privacy_password without a password"),
        ({"snmp_version": "3"}, dict(USER, password="1234567"), "shorter than 8 characters"),
        ({"snmp_version": "3", "auth_protocol": "SHA\nx"}, BOTH, "is no auth_protocol"),
        ({"snmp_version": "2"}, {"community": "rack"}, "no such SNMP version: 2"),
        ({}, {}, "no community is known for it"),
        ({}, {"community": "ra\u200bck"}, "has a control character"),
    ],
)
def test_what_no_pdu_can_be_told(settings, secrets, words):
    """Else a slip in the credentials shows as a PDU that does not answer, or as a line of somebody else's settings."""
    with pytest.raises(BadInput, match=words):
        told(settings, secrets)


@pytest.mark.parametrize(
    ("settings", "address"),
    [
        ({"host": "pdu-a"}, "udp:pdu-a:161"),
        ({"host": "10.0.2.9", "port": 1161}, "udp:10.0.2.9:1161"),
        ({"host": "fe80::1%eth0"}, "udp6:[fe80::1%eth0]:161"),
    ],
)
def test_addresses(settings, address):
    """Else a PDU with its usual port, or an IPv6 address, is never reached."""
    assert Snmp("pdu-t", settings, {}, Deadline(1.0))._address() == address
    with pytest.raises(BadInput, match="is no host"):
        Snmp("pdu-t", dict(settings, host="-x"), {}, Deadline(1.0))._address()


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ("Error in packet.\nReason: (noSuchName) There is no such variable name in this MIB.\n", "Error in packet. "),
        ("", "snmpset ended with 2"),
    ],
)
def test_an_order_that_the_pdu_does_not_take_is_none_that_it_took(monkeypatch, said, what):
    """Lost: why an outlet did not follow; it would be waited for as one that was told to."""
    done = SimpleNamespace(returncode=2, stdout="", stderr=said)
    monkeypatch.setattr(snmp, "ended", lambda *_argv, **_limits: done)
    pdu = Snmp("pdu-t", {"host": "pdu-a"}, {}, Deadline(60))
    pdu._folder, pdu._table = SimpleNamespace(name="/nowhere"), snmp.TABLES[0]
    answer = pdu._order(snmp.TABLES[0].on, "1")
    assert not answer.accepted
    assert answer.words.startswith(what)
