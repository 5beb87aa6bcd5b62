# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Driver redfish on a BMC that is not ours, sushy-tools' emulator, and Debian's fence_redfish beside it on both.

If these fail, our driver and our BMC only agree with each other.
"""

from __future__ import annotations

import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import outlets as power
from ansible_collections.hetero.compute.tests.unit.drivers.power.emulated_redfish import (
    NODES,
    SECRETS,
    emulated_redfish,
    fence,
)
from ansible_collections.hetero.compute.tests.unit.drivers.power.http_devices import certificate
from ansible_collections.hetero.compute.tests.unit.drivers.power.redfish_bmc import RedfishBmc


@pytest.fixture(scope="module")
def emulator(tmp_path_factory):
    """Settings of an emulated service with two systems, over TLS and with a password."""
    with emulated_redfish(tmp_path_factory.mktemp("redfish")) as settings:
        yield settings


def test_an_emulated_machine(emulator, tmp_path):
    """Lost: real services, whose transitions take seconds, and which know passwords only."""
    deadline = Deadline(90)
    with power.session("bmc-a", dict(emulator, boot_once="pxe"), SECRETS, deadline, str(tmp_path)) as session:
        assert session.status() == dict.fromkeys(NODES, "off")
        assert power.set_outlets(session, {NODES[0]: "on"}, deadline)[NODES[0]]["after"] == "on"
        assert session.status() == {NODES[0]: "on", NODES[1]: "off"}
        assert power.set_outlets(session, {NODES[0]: "off"}, deadline)[NODES[0]]["after"] == "off"


def test_an_emulated_machine_and_a_wrong_password(emulator, tmp_path):
    secrets = dict(SECRETS, password="hush-hush-7")
    with pytest.raises(HeteroError, match="refuses the credential") as told, power.session(
        "bmc-a", emulator, secrets, Deadline(30), str(tmp_path)
    ) as session:
        session.status()
    assert "hush-hush-7" not in repr(told.value.failure)


def test_fence_redfish_beside_ours(emulator, tmp_path, capsys):
    """Lost: that both see and switch the same, on a BMC of either; and how long either takes."""
    path = f"/redfish/v1/Systems/{NODES[1]}"
    assert fence(emulator["port"], path, "status", SECRETS)[0] == 2
    code, said = fence(emulator["port"], path, "on", SECRETS)
    assert code == 0, said
    with power.session("bmc-a", emulator, SECRETS, Deadline(60), str(tmp_path)) as session:
        assert session.status()[NODES[1]] == "on"

    bmc = RedfishBmc(certificate=certificate(tmp_path))
    try:
        began, deadline = time.monotonic(), Deadline(60)
        settings = {**bmc.settings, "tls": True, "tls_ca": str(tmp_path / "device.pem")}
        with power.session("bmc-b", settings, bmc.secrets, deadline, str(tmp_path)) as session:
            power.set_outlets(session, {"Self": "on"}, deadline)
        ours = time.monotonic() - began
        bmc.no_sessions = True  # it asks with the password
        options = {"ssl_insecure": 1, "systems_uri": "/redfish/v1/Systems/Self"}
        settings = {**bmc.settings, "driver": "fence", "agent": "fence_redfish", "agent_options": options}
        began, deadline = time.monotonic(), Deadline(60)
        with power.session("bmc-c", {**settings, "outlets": ["1"]}, bmc.secrets, deadline, str(tmp_path)) as session:
            power.set_outlets(session, {"1": "off"}, deadline)
        theirs = time.monotonic() - began
        assert bmc.power == {"Self": "Off"}
    finally:
        bmc.close()
    with capsys.disabled():
        print(f"\n  driver redfish {ours:.1f} s, driver fence with fence_redfish {theirs:.1f} s")
