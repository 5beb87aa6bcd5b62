# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PDUs of which nothing is heard before their login: the name is not resolved, nobody takes the connection, or who
takes it says nothing. Real telnet and ssh, in a network and with name servers of their own.
"""

from __future__ import annotations

import os
import shutil
import socket
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import (
    Busy,
    HeteroError,
    Lost,
    TimedOut,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import terminal
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.apc import Apc
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.outlets import session

SECRETS = {"username": "apc", "password": "xyzzy-1957"}
#: A network where packets to one address are lost without a word; nobody is at any other.
ELSEWHERE = """\
#!/bin/sh
exec unshare --net --mount sh -c '
    ip link set lo up && ip link add quiet0 type veth peer name quiet1 && ip address add 10.99.9.1/24 dev quiet0 &&
    ip link set quiet0 up && ip link set quiet1 up &&
    ip neighbour add 10.99.9.9 lladdr 02:00:00:00:00:09 dev quiet0 nud permanent &&
    mount --bind {resolv} /etc/resolv.conf && exec {program} "$@"' {program} "$@"
"""
QUIET = "10.99.9.9"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="makes a network of its own: run as root")


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A function: telnet and ssh are in that network, with this name server."""

    def move(name_server):
        (tmp_path / "resolv.conf").write_text(f"nameserver {name_server}\noptions timeout:30\n")
        for name in ("telnet", "ssh"):
            program = tmp_path / "bin" / name
            program.parent.mkdir(exist_ok=True)
            program.write_text(ELSEWHERE.format(resolv=tmp_path / "resolv.conf", program=shutil.which(name)))
            program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")

    return move


def unreached(host, transport="telnet", seconds=3.0, **settings):
    """The error of a login there."""
    driver = Apc("pdu-t", dict(settings, host=host, transport=transport), SECRETS, Deadline(seconds))
    with pytest.raises(HeteroError) as caught, driver:  # pylint: disable=confusing-with-statement
        pytest.fail("logged in")
    assert not isinstance(caught.value, Busy), caught.value
    assert caught.value.thing == "pdu-t"
    return caught.value


@needs_root
@pytest.mark.parametrize("transport", ["telnet", "ssh"])
def test_a_name_server_that_says_nothing(elsewhere, transport):
    """Lost: that it is the name; the PDU would be told as one that is silent, and somebody sent to look at it."""
    elsewhere(QUIET)
    for seconds in (1.5, 15):  # a busy machine needs longer to ask for its address
        error = unreached("pdu-t.example", transport, seconds)
        if error.what.startswith("cannot be reached: nothing was heard of"):
            break
    assert isinstance(error, Lost), "a name server may come back"
    assert error.what.startswith(
        "cannot be reached: nothing was heard of pdu-t.example, whose name may not be known ("
    ), error
    assert "no answer within" in error.what
    assert error.remedy.startswith("check its host and the name servers of node ")


@needs_root
@pytest.mark.parametrize("transport", ["telnet", "ssh"])
def test_a_name_server_that_is_not_there(elsewhere, transport):
    """Lost: that it is the name; a colleague would be waited for who is not there."""
    elsewhere("127.0.0.1")
    error = unreached("pdu-t.example", transport, 20)
    assert isinstance(error, Lost), "a name server may come back"
    assert error.what.startswith("cannot be reached: ")
    assert "Temporary failure in name resolution" in error.what
    assert error.remedy.startswith("check its host and the name servers of node ")


@needs_root
def test_an_address_where_nobody_is(elsewhere):
    elsewhere("127.0.0.1")
    for seconds in (1.5, 15):  # a busy machine needs longer to begin
        error = unreached(QUIET, seconds=seconds)
        if error.what.startswith("cannot be reached: nobody took the connection"):
            break
    assert error.what.startswith("cannot be reached: nobody took the connection (no answer within"), error
    own = f"check its host and port ({QUIET}, as tftp_proxy_pdus has pdu-t), and whether it has power"
    assert error.remedy == own
    error = unreached("10.98.9.7", seconds=20)
    assert error.what.startswith("cannot be reached: "), error


@needs_root
def test_a_pdu_without_a_name_is_given_up_in_its_time(elsewhere, tmp_path):
    """Lost: what a play says at its end, after it had asked again and again: the PDU's name, and what to do."""
    elsewhere("127.0.0.1")
    start = time.monotonic()
    settings = {"host": "pdu-t.example"}
    opened = session("pdu-t", settings, SECRETS, Deadline(2), str(tmp_path))
    with pytest.raises(TimedOut, match=r"^pdu-t: cannot be reached: .*gave up after 2 s.*: check its host and"), opened:
        pytest.fail("logged in")
    assert time.monotonic() - start < 60


def test_a_pdu_that_takes_the_connection_and_says_nothing(monkeypatch):
    """Lost: which part of the way is well; APC's cards look for our name first, at a name server that may be silent."""
    monkeypatch.setattr(terminal, "ANSWER", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        error = unreached("127.0.0.1", port=server.getsockname()[1], seconds=20)
    assert isinstance(error, Lost), "it may be starting"
    assert error.what.startswith("cannot be reached: it took the connection and asks for no login (no answer within")
    assert error.remedy == "look at the PDU and its name server, or raise timeout"
