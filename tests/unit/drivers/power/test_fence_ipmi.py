# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Driver fence with Debian's fence_ipmilan on a BMC that OpenIPMI's ipmi_sim plays: right, slow, hung and dead."""

from __future__ import annotations

import json
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError, TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import outlets as power
from ansible_collections.hetero.compute.tests.unit.drivers.power.simulated_bmc import OBEY
from ansible_collections.hetero.compute.tests.unit.drivers.power.test_pdu_power import run


def batch(settings, secrets, folder, wanted, seconds=60.0, **options):
    deadline = Deadline(seconds)
    settings = {"outlets": ["1"], **settings}
    with power.session("bmc-a", settings, secrets, deadline, str(folder)) as session:
        return power.set_outlets(session, wanted, deadline, **options) if wanted else session.status()


def test_an_operators_bmc(bmc, tmp_path):
    """Without it, machines that have a BMC rather than an outlet could not be used as they are configured."""
    one = bmc()
    (tmp_path / "credentials.json").write_text(json.dumps({"bmc-a": one.secrets}))
    proxy = {
        "pdus": {"bmc-a": one.settings},
        "boards": {"0": {"pdu": "bmc-a", "outlet": 1}},
        "credentials": str(tmp_path / "credentials.json"),
        "run_folder": str(tmp_path / "run"),
    }
    (tmp_path / "proxy.json").write_text(json.dumps(proxy))

    one.power = "on"
    given = {"pdu": "bmc-a", "config": str(tmp_path / "proxy.json"), "timeout": 50}
    result, text = run(tmp_path, state="cycled", outlets=["1"], **given)
    assert one.secrets["password"] not in text
    seen = result["outlets"]["1"]
    assert (result["changed"], seen["before"], seen["after"], one.power) == (True, "on", "on", "on"), text
    assert one.asked == ["off", "on"]


def test_a_wrong_password(bmc, tmp_path):
    """Without it, the person who mistyped it would look for a broken BMC, or the account be locked by retries."""
    one = bmc()
    secrets = {**one.secrets, "password": "hush-hush-7"}
    with pytest.raises(
        HeteroError, match="outlet 1 of bmc-a: fence_ipmilan does not tell its state: Failed:"
    ) as caught:
        batch(one.settings, secrets, tmp_path, {"1": "on"})
    assert "its credential" in caught.value.remedy
    assert "hush-hush-7" not in repr(caught.value.failure)
    assert one.asked == []


def test_two_outlets_are_two_machines(bmc, tmp_path):
    """Without it, the second of two boards wired to one BMC would switch the first one's machine off."""
    one = bmc()
    one.power = "on"
    with pytest.raises(BadInput, match=r"bmc-a: fence_ipmilan switches one machine, .*: 1, 2 would be the same"):
        batch({**one.settings, "outlets": ["1", "2"]}, one.secrets, tmp_path, {"2": "off"})
    assert (one.asked, one.power) == ([], "on")


def test_outlets_that_are_addresses(bmc, tmp_path):
    """Without it, each BMC of a rack would need a PDU and a credential of its own."""
    one = bmc()
    two = bmc(address="127.0.0.2", port=one.port)
    settings = {**one.settings, "outlets": [one.address, two.address]}
    settings["agent_options"] = {**settings["agent_options"], "port_as_ip": 1}
    del settings["host"]
    assert batch(settings, one.secrets, tmp_path, None) == {one.address: "off", two.address: "off"}
    seen = batch(settings, one.secrets, tmp_path, {two.address: "on"})
    assert (seen[two.address]["after"], one.asked, two.asked) == ("on", [], ["on"])


def test_an_off_that_does_not_happen(bmc, tmp_path):
    """Without it, an operator would be told of an account's rights, and of a part of the seconds that it was waited."""
    one = bmc()
    one.power = "on"
    one.does(":")
    with pytest.raises(power.OutletsFailed) as caught:
        batch(one.settings, one.secrets, tmp_path, {"1": "off"}, window=0.1)
    error = caught.value.errors["1"]
    assert (error.thing, error.remedy, one.asked) == ("outlet 1 of bmc-a", "check its relay", ["off"])
    said = "still on ", " s after 'off' (PDU said Failed: Timed out waiting to power OFF)"
    assert error.what.startswith(said[0])
    assert error.what.endswith(said[1])
    seconds = error.what[len(said[0]) : -len(said[1])]
    assert float(seconds) >= 2, "the agent's power_timeout belongs to it"


def test_an_off_that_comes_late(bmc, tmp_path):
    """Without it, a machine that shuts down for longer than the agent waits would be called on for good."""
    one = bmc()
    one.power = "on"
    one.does(f"(sleep 6; {OBEY}) >/dev/null 2>&1 &")
    seen = batch(one.settings, one.secrets, tmp_path, {"1": "off"}, seconds=300, window=200)
    assert (seen["1"]["before"], seen["1"]["after"], one.asked, one.power) == ("on", "off", ["off"], "off")


def test_what_an_agent_complains_of_is_not_its_answer(bmc, tmp_path):
    """Without it, a warning of the agent's Python would be shown as what the BMC said."""
    one = bmc()
    with power.session(
        "bmc-a", {"outlets": ["1"], **one.settings}, one.secrets, Deadline(60), str(tmp_path)
    ) as session:
        assert session.switch(["1"], "on")["1"][:2] == (True, "Success: Powered ON")


def test_a_bmc_that_hangs(bmc, tmp_path):
    """Without it, a play would hang with it, or be told of the seconds at which our patience ended and no more."""
    one = bmc()
    one.hang()
    said = r"bmc-a: fence_ipmilan(: Connection timed out| did not end within [\d.]+ s[^()]*) \(gave up after 8 s\)"
    begun = time.monotonic()
    with pytest.raises(TimedOut, match=said):
        batch(one.settings, one.secrets, tmp_path, {"1": "off"}, seconds=8)
    assert time.monotonic() - begun < 60


def test_a_bmc_that_dies_in_the_middle(bmc, tmp_path):
    """Without it, an order that was carried out would be told as one that failed."""
    for seconds in (15, 60, 240):  # a busy machine needs longer to carry out the order
        one = bmc()
        one.power = "on"
        one.does(f'{OBEY}; kill -9 "$(cat "$folder/pid")"')
        with pytest.raises((power.OutletsFailed, TimedOut)) as caught:
            batch(one.settings, one.secrets, tmp_path, {"1": "off"}, seconds=seconds)
        if one.power == "off":
            break
    assert "outlet 1 of bmc-a: 'off' may have been carried out or not, as the PDU was lost" in str(caught.value)
    assert one.power == "off"
