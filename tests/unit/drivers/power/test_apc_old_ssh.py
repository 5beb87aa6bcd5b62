# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Driver apc over ssh to cards with old algorithms, short keys and no terminal, as paramiko's server plays them."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Busy, HeteroError, Lost
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import terminal
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.apc import Apc
from ansible_collections.hetero.compute.tests.unit.drivers.power.old_card import OldCard

RSA, DSS = ("RSAKey", 1024), ("DSSKey", 1024)
#: Cards as their makers shipped them: (host key, what else they offer, how the PDU behind speaks).
CARDS = {
    "of 2005": (
        RSA,
        dict(kex=["diffie-hellman-group1-sha1"], ciphers=["3des-cbc"], macs=["hmac-md5"], window=1024),
        "menu",
    ),
    "with DSA": (
        DSS,
        dict(kex=["diffie-hellman-group1-sha1"], ciphers=["aes128-cbc"], macs=["hmac-sha1-96"]),
        "cli",
    ),
    "of 2010": (
        RSA,
        dict(
            kex=["diffie-hellman-group14-sha1"],
            ciphers=["aes256-cbc"],
            macs=["hmac-md5-96"],
            auth="keyboard-interactive",
            pty=False,
        ),
        "menu",
    ),
}


#: Seconds for a card's word. It computes keys in Python, beside whatever else the machine does.
LONG = 120


@pytest.fixture
def old(emulated, tmp_path, monkeypatch):
    """A function that starts a PDU with such a card; returns (PDU, card)."""
    started = []
    monkeypatch.setattr(terminal, "ANSWER", float(LONG))
    ssh, port = terminal.TRANSPORTS["ssh"]
    patient = tuple(f"ConnectTimeout={LONG}" if word.startswith("ConnectTimeout=") else word for word in ssh)
    monkeypatch.setitem(terminal.TRANSPORTS, "ssh", (patient, port))

    def start(key=RSA, dialect="cli", **offers):
        folder = tmp_path / "card"
        folder.mkdir()
        pdu = emulated(dialect=dialect)
        started.append(OldCard(folder, pdu, key, **offers))
        return pdu, started[-1]

    yield start
    for card in started:
        card.stop()


def refusal(pdu, card, **settings):
    """The error of a login, which is final: it names the PDU, and asking again would not help."""
    with pytest.raises(HeteroError) as caught, Apc("pdu-t", {**card.settings, **settings}, pdu.secrets, Deadline(LONG)):
        pytest.fail("logged in")
    assert not isinstance(caught.value, (Busy, Lost))
    assert caught.value.thing == "pdu-t"
    return caught.value


@pytest.mark.parametrize("made", CARDS)
def test_an_old_card_is_used_with_legacy_ssh_only(old, made):
    """Without it, the boards behind an old card have no power, or each PDU is spoken to with broken ciphers."""
    key, offers, dialect = CARDS[made]
    pdu, card = old(key, dialect, **offers)
    error = refusal(pdu, card)
    assert f"Their offer: {offers['kex'][0]}" in error.what
    assert error.remedy == "set its legacy_ssh, or update its firmware"
    assert card.passwords == 0
    with Apc("pdu-t", {**card.settings, "legacy_ssh": True}, pdu.secrets, Deadline(LONG)) as session:
        assert session.dialect == dialect
        assert session.switch(["2"], "on")["2"].accepted
        assert session.status() == {str(number): "on" if number == 2 else "off" for number in range(1, 9)}
    assert pdu.logouts == 1


def test_algorithms_that_no_ssh_has_any_more(old):
    """Without it, an operator who has set legacy_ssh would be told to set it."""
    pdu, card = old(ciphers=["arcfour128"])
    error = refusal(pdu, card, legacy_ssh=True)
    assert "offers only ssh algorithms that the ssh of node " in error.what
    assert "Their offer: arcfour128" in error.what
    assert error.remedy == "update its firmware, or use telnet or SNMP"


@pytest.mark.parametrize("bits", [512, 768])
def test_a_host_key_that_is_too_short(old, bits):
    """Without it, somebody would search algorithms, where only a longer key in the card helps."""
    pdu, card = old(("RSAKey", bits))
    error = refusal(pdu, card, legacy_ssh=True)
    assert "shows an ssh host key that is too short to prove anything" in error.what
    assert error.remedy == "give it one of 1024 bits or more, or use telnet or SNMP"
    assert card.passwords == 0


@pytest.mark.parametrize("key", [RSA, DSS])
def test_a_changed_host_key_gets_no_password(old, key):
    """Without it, a machine that took the card's address would be let in by showing a key of another kind."""
    pdu, card = old(RSA)
    with Apc("pdu-t", {**card.settings, "legacy_ssh": True}, pdu.secrets, Deadline(LONG)):
        pass
    before = Path(card.settings["known_hosts"]).read_text()
    assert (before.count("ssh-rsa"), card.passwords) == (1, 1)
    card.stop()
    card.new_host_key(*key)
    card.start()
    assert "shows another ssh host key than before" in refusal(pdu, card, legacy_ssh=True).what
    assert Path(card.settings["known_hosts"]).read_text() == before
    assert card.passwords == 1


def test_an_account_that_may_not_use_a_password(old):
    """Without it, the right password would be corrected, again and again."""
    pdu, card = old(auth="publickey")
    error = refusal(pdu, card, legacy_ssh=True)
    assert "takes no password by ssh: " in error.what
    assert "(publickey)" in error.what


def test_a_card_of_ssh_1():
    """Without it, it would be asked again until the time limit, for another user who does not exist."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet():
            client, _address = server.accept()
            with client:
                client.sendall(b"SSH-1.5-1.2.27\r\n")
                client.recv(100)

        threading.Thread(target=greet, daemon=True).start()
        settings = {"host": "127.0.0.1", "transport": "ssh", "port": server.getsockname()[1], "legacy_ssh": True}
        with pytest.raises(HeteroError, match="knows only version 1 of ssh") as caught:
            Apc("pdu-t", settings, {"username": "apc", "password": "x"}, Deadline(LONG)).__enter__()
    assert not isinstance(caught.value, Busy)
