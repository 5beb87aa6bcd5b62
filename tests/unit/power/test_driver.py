# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds for every power driver before it says a word."""

from __future__ import annotations

import socket

import pytest

from ansible_collections.hetero.compute.plugins.module_utils.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils.power.outlets import session
from ansible_collections.hetero.compute.plugins.module_utils.power.registry import DRIVERS


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
        opened = session("pdu-t", settings, secrets, Deadline(20), str(tmp_path))
        with pytest.raises(
            BadInput, match=rf"pdu-t: its {word} has a line end .*correct the credential of pdu-t"
        ) as told:
            opened.__enter__()
        with pytest.raises(BlockingIOError):
            pdu.accept()
    assert not ran.exists()
    assert secret not in repr(told.value.failure)


def test_the_way_a_pdu_was_spoken_to_has_a_name():
    """Lost: what a play or a person sees as `dialect` of a PDU that has only one."""
    told = {name: driver.dialect for name, driver in DRIVERS.items()}
    assert told == {"apc": None, "command": "command", "fake": "fake", "fence": None, "snmp": None}
