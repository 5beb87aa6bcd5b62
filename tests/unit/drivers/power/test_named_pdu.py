# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The PDU that a module's arguments mean."""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import named_pdu

GIVEN = dict.fromkeys([*named_pdu.PDU_SETTINGS, *named_pdu.PDU_SECRETS, "pdu", "outlets"])


def test_one_that_is_named_by_its_host(monkeypatch):
    """Lost: a PDU that no configuration has, such as that of a rack that is being set up."""
    monkeypatch.setattr(named_pdu, "own_run_folder", lambda: "/run/mine")
    given = dict(GIVEN, host="10.0.100.1", driver="fake", password="x", outlets=["all", "7"])
    found = named_pdu.named(given)
    assert (found.name, found.run_folder, found.secrets["password"]) == ("10.0.100.1", "/run/mine", "x")
    assert found.settings == dict(host="10.0.100.1", driver="fake", path="10.0.100.1", outlets=["7"], by_hand=True)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, None),
        ({"transport": "telnet", "host_key": "x"}, None),
        ({"transport": "ssh", "host_key": "x"}, "pinned"),
        ({"transport": "ssh"}, "first seen"),
    ],
)
def test_how_a_host_key_is_known(settings, said):
    """Lost: that a password goes to whoever answers first."""
    assert named_pdu.NamedPdu("pdu-a", settings, {}, "/run").host_key == said
