# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds for every power driver before it says a word.

Tests drivers/power/registry.py.
"""

from __future__ import annotations

import socket

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.driver import (
    BY_HAND,
    CONTROL,
    HOST,
    PowerDriver,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.outlets import session
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.registry import DRIVERS


@pytest.mark.parametrize("driver", sorted(DRIVERS))
@pytest.mark.parametrize("transport", ["telnet", "ssh"])
@pytest.mark.parametrize(
    ("word", "secret"),
    [
        ("password", "two\nlines"),
        ("password", "xyzzy\r"),
        ("password", "\x03"),
        ("username", "apc\r1"),
        ("community", "private\x1b"),
        ("privacy_password", "long enough\u2028"),
        ("password", "\ud800"),
    ],
)
def test_a_secret_with_a_control_character_is_sent_to_nobody(tmp_path, driver, transport, word, secret):
    """Without it, the second line of a password would be typed into whatever menu comes after the first."""
    ran = tmp_path / "ran"
    program = tmp_path / "fence_mine"
    program.write_text(f"#!/bin/sh\necho ran > {ran}\n")
    program.chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as pdu:
        pdu.setblocking(False)
        settings = {"driver": driver, "host": "127.0.0.1", "port": pdu.getsockname()[1], "transport": transport}
        settings.update(agent=str(program), script=str(program), outlets=["1"], path=str(tmp_path / "fake.json"))
        secrets = {"username": "apc", "password": "xyzzy-1957", "community": "private", word: secret}
        opened = session("pdu-t", settings, secrets, Deadline(60), str(tmp_path))
        with pytest.raises(
            BadInput, match=rf"pdu-t: its {word} has a line end .*correct the credential of pdu-t"
        ) as told:
            opened.__enter__()
        with pytest.raises(BlockingIOError):
            pdu.accept()
    assert not ran.exists()
    assert secret not in repr(told.value.failure)


def test_the_credential_of_a_pdu_in_no_configuration_is_corrected_where_it_was_given(tmp_path):
    """Lost: the time of who looks for it in an inventory, and sets a proxy node up again."""
    settings = {"driver": "apc", "host": "10.0.100.9", BY_HAND: True}
    with pytest.raises(BadInput, match=r"correct the credential that is given beside its host, 10\.0\.100\.9$"):
        session("10.0.100.9", settings, {"password": "a\nb"}, Deadline(60), str(tmp_path)).__enter__()


def test_whatever_a_credential_holds_is_told_to_nobody():
    """Lost: the token of a site's own power script, in the first error that it prints with it."""
    driver = Told(username="operator", token="Zt4-9xQ-Lm2", password="xyzzy-1957")
    said = driver.masked("operator: token Zt4-9xQ-Lm2 refused\npassword xyzzy-1957 too\nnothing else")
    assert said == "operator: token ******** refused\npassword ******** too\nnothing else"


def test_the_way_a_pdu_was_spoken_to_has_a_name():
    """Lost: what a play or a person sees as `dialect` of a PDU that has only one."""
    told = {name: driver.dialect for name, driver in DRIVERS.items()}
    one_way = {name: name for name in ("ipmi", "redfish", "uhubctl")}
    assert told == {**dict.fromkeys(("apc", "fence", "http", "snmp")), "command": "command", "fake": "fake", **one_way}


class Told(PowerDriver):
    """A driver that writes down what it is told, and may fail at the login."""

    def __init__(self, fails=None, host="10.0.100.2", **secrets):
        super().__init__("pdu-t", {"host": host}, secrets, Deadline(60))
        self.fails, self.told = fails, []

    def login(self):
        self.told.append("in")
        if self.fails:
            raise self.fails

    def logout(self):
        self.told.append("out")

    def status(self):
        return {}

    def switch(self, outlets, state):
        return {}


def test_who_logs_in_logs_out():
    """Lost: a PDU's one place, after an error in the login or behind it; or a session that ends before it is used."""
    with Told() as one:
        assert one.told == ["in"]
    assert one.told == ["in", "out"]
    one = Told(fails=BadInput("odd", "pdu-t", ""))
    with pytest.raises(BadInput), one:
        pytest.fail("logged in")
    assert one.told == ["in", "out"]
    assert (one.dialect, one.readers) == (None, False)


def test_what_is_masked_are_the_secrets():
    """Lost: a password in an error; or the user name, in which there is nothing to hide."""
    one = Told(username="jackie", password="xyzzy-1957", community=12345, privacy_password="quiet-now", other=None)
    assert one.secrets["community"] == "12345"
    assert one.secrets["other"] is None
    assert one.masked("jackie xyzzy-1957 12345 quiet-now") == "jackie ******** ******** ********"
    assert Told(username="apc", password="x:y").masked("amFjazpiZDpj YXBjOng6eQ== ") != "amFjazpiZDpj YXBjOng6eQ== "


@pytest.mark.parametrize(
    ("host", "wrong"),
    [
        ("10.0.100.2", False),
        ("pdu-a.example", False),
        ("fe80::1%eth0", False),
        ("-h", True),
        ("a b", True),
        ("", False),
    ],
)
def test_a_host_that_is_none_is_told_with_its_setting(host, wrong):
    """Lost: which setting to correct; or a host that a program takes for an option."""
    assert [key for key, _error in Told.wrong("pdu-t", {"host": host})] == ["host"] * wrong
    assert list(Told.wrong("pdu-t", {})) == []
    assert not host or bool(HOST.fullmatch(host)) != wrong


def test_a_host_with_its_port_is_taken_apart():
    """Lost: what to write, to who has copied it from a browser."""
    ((key, error),) = Told.wrong("pdu-t", {"host": "pdu-a.example:8080"})
    assert (key, str(error)) == (
        "host", "pdu-t: 'pdu-a.example:8080' is a host and its port: write them apart: host: pdu-a.example, port: 8080",
    )  # fmt: skip


@pytest.mark.parametrize(("host", "named"), [("10.0.100.2", False), ("fe80::1", False), ("pdu-a", True), (None, True)])
def test_a_name_may_not_be_known(host, named):
    """Lost: that it is the name server, and not the PDU, which was not heard."""
    why = Told(host=host).nameless
    assert (f"nothing was heard of {host or ''}, whose name" in why) if named else why is None


def test_characters_that_a_terminal_obeys():
    bad = "\0\t\n\x1b\x1f\x7f\x80\x9f\u2028\u2029\ud800\udfff"
    assert all(map(CONTROL.search, bad))
    assert not CONTROL.search("a ~\xa0\xff\u2027\u202a\ue000 \U0001f600")
