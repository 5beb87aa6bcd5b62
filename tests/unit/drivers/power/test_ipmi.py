# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Driver ipmi on a BMC that OpenIPMI's ipmi_sim plays: right, slow, stuck, hung, dead; and what ipmitool may say.

If these fail, a server stays dark or runs on, or the password of its BMC is told to who looks at processes.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import ipmi
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import outlets as power
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.drawn import Drawn
from ansible_collections.hetero.compute.tests.unit.drivers.power.simulated_bmc import OBEY
from ansible_collections.hetero.compute.tests.unit.drivers.power.test_pdu_power import run

#: Its chassis is a process of the test: on starts it, off ends it.
MACHINE = (
    """\
if [ "$3" = 1 ]; then sleep 1000 >/dev/null 2>&1 & echo $! >"$folder/machine"
else kill -9 "$(cat "$folder/machine")"; fi; """
    + OBEY
)


def settings_of(bmc, **more):
    return {"driver": "ipmi", "host": bmc.address, "port": bmc.port, "cipher_suite": 3, **more}


def batch(bmc, folder, wanted, seconds=60.0, secrets=None, **more):
    deadline = Deadline(seconds)
    given = settings_of(bmc, **more)
    with power.session("bmc-a", given, secrets or bmc.secrets, deadline, str(folder)) as session:
        return power.set_outlets(session, wanted, deadline) if wanted else session.status()


def test_a_machine_is_really_started_and_stopped(bmc, tmp_path):
    """Lost: servers whose BMC speaks no Redfish, by the module as an operator calls it."""
    one = bmc()
    one.does(MACHINE)
    given = dict(settings_of(one), outlets=["1"], timeout=50, **one.secrets)
    result, text = run(tmp_path, state="on", **given)
    seen = result["outlets"]["1"]
    assert (seen["before"], seen["after"], result["dialect"]) == ("off", "on", "ipmi"), text
    machine = Path("/proc") / (one.folder / "machine").read_text().strip()
    assert "sleep" in (machine / "cmdline").read_text()
    assert batch(one, tmp_path, {"1": "off"})["1"]["after"] == "off"
    assert not (machine / "cmdline").exists() or not (machine / "cmdline").read_text()
    assert one.asked == ["on", "off"]
    assert one.secrets["password"] not in text


def test_its_password_is_in_no_arguments(bmc, tmp_path, monkeypatch):
    """Lost: the password, to everybody who may list processes; or a user's own, which ipmitool takes first."""
    one = bmc()
    wrapper, said = tmp_path / "bin", tmp_path / "said"
    wrapper.mkdir()
    real = shutil.which("ipmitool")
    (wrapper / "ipmitool").write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >>{said}\nexec {real} "$@"\n')
    (wrapper / "ipmitool").chmod(0o755)
    monkeypatch.setenv("PATH", f"{wrapper}:/usr/bin:/bin")
    monkeypatch.setenv("IPMITOOL_PASSWORD", "somebody's own")
    assert batch(one, tmp_path, {"1": "on"})["1"]["after"] == "on"
    words = said.read_text().splitlines()
    assert "-E" in words
    assert not any(one.secrets["password"] in word for word in words)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"password": "hush-hush-7"}, "HMAC is invalid"),
        ({"username": "nobody"}, "unauthorized name"),
        ({"username": "n" * 17}, "Username is too long"),
        ({"password": "hush-hush-7-hush-hush-7"}, "password is longer than"),
    ],
)
def test_a_wrong_credential_is_told_at_once(bmc, tmp_path, given, said):
    """Lost: the account, to tries that lock it; or that it is the credential, to "no answer"."""
    one, began = bmc(), time.monotonic()
    with pytest.raises(HeteroError, match=rf"refuses the user or the password \({said}.*: correct") as told:
        batch(one, tmp_path, {"1": "on"}, secrets={**one.secrets, **given})
    assert time.monotonic() - began < 50
    assert "hush-hush" not in repr(told.value.failure)
    assert one.asked == []


def test_another_outlet_is_no_other_name_of_it(bmc, tmp_path):
    """Lost: a machine, which the second of two boards on one BMC would cut off."""
    one = bmc()
    one.power = "on"
    with pytest.raises(power.OutletsFailed, match=r"outlet 2 of bmc-a: no such outlet \(it has 1\)"):
        batch(one, tmp_path, {"2": "off"})
    assert (one.asked, one.power) == ([], "on")


def test_an_off_that_comes_late(bmc, tmp_path):
    """Lost: that it went off, to a machine that takes longer than a relay."""
    one = bmc()
    one.power = "on"
    one.does(f"(sleep 4; {OBEY}) >/dev/null 2>&1 &")
    seen = batch(one, tmp_path, {"1": "off"})["1"]
    assert (seen["after"], one.asked, one.power) == ("off", ["off"], "off")


def test_an_off_that_does_not_happen(bmc, tmp_path):
    """Lost: that the machine runs on."""
    one = bmc()
    one.power = "on"
    one.does(":")
    for seconds in (12, 60):  # a busy machine needs longer to read it again
        with pytest.raises((power.OutletsFailed, TimedOut)) as told:
            batch(one, tmp_path, {"1": "off"}, seconds=seconds)
        if "still on" in str(told.value):
            break
    assert told.match(r"still on .* 'off' \(PDU said Chassis Power Control: Down/Off")


def test_an_order_that_is_refused(bmc, tmp_path):
    """Lost: what the BMC said to it."""
    one = bmc()
    one.does("exit 1")
    with pytest.raises(power.OutletsFailed, match="PDU said Set Chassis Power Control to Up/On failed: Unspecified"):
        batch(one, tmp_path, {"1": "on"})


def test_a_cipher_suite_that_it_does_not_know(bmc, tmp_path):
    """Lost: which setting to correct."""
    with pytest.raises(HeteroError, match=r"does not take cipher suite 17: give one that it knows \(cipher_suite"):
        batch(bmc(), tmp_path, None, cipher_suite=17)


def test_a_bmc_that_hangs(bmc, tmp_path):
    """Lost: a play, which would hang with it."""
    one = bmc()
    one.hang()
    began = time.monotonic()
    with pytest.raises(TimedOut, match=r"bmc-a: ipmitool did not end within .*\(gave up after 3 s\): check its host"):
        batch(one, tmp_path, {"1": "off"}, seconds=3)
    assert time.monotonic() - began < 60


def test_a_bmc_that_dies_in_the_middle(bmc, tmp_path):
    """Lost: that an order was carried out, which is told as one that failed."""
    for seconds in (8, 60, 240):  # a busy machine needs longer to carry out the order
        one = bmc()
        one.power = "on"
        one.does(f'{OBEY}; kill -9 "$(cat "$folder/pid")"')
        with pytest.raises((power.OutletsFailed, TimedOut)) as told:
            batch(one, tmp_path, {"1": "off"}, seconds=seconds)
        if one.power == "off":
            break
    assert told.match("'off' may have been carried out or not, as the PDU was lost")
    assert one.power == "off"


#: (what ipmitool says before it ends with 1, the error's kind and words); of Debian's ipmitool 1.8.19.
SAID = [
    (
        "RAKP 2 message indicates an error : insufficient resources for session\n"
        "Error: Unable to establish IPMI v2 / RMCP+ session",
        "Busy",
        "has no session left .*end sessions of others",
    ),
    ("Get Chassis Power Status failed: Node busy", "Busy", "is not ready for that yet"),
    (
        "Set Chassis Power Control to Up/On failed: Command not supported in present state",
        "Busy",
        "is not ready for that yet",
    ),
    (
        "Set Chassis Power Control to Up/On failed: Insufficient privilege level",
        "HeteroError",
        "this account may not do that .*privilege OPERATOR",
    ),
    (
        "RAKP 2 message indicates an error : unauthorized role requested\n"
        "Error: Unable to establish IPMI v2 / RMCP+ session",
        "HeteroError",
        "this account may not do that",
    ),
    (
        "Address lookup for bmc failed\nCould not open socket!\nError: Unable to establish IPMI v2 / RMCP+ session",
        "Lost",
        "cannot be reached .*name servers",
    ),
    (
        "> Error: no response from RAKP 1 message\nError: Unable to establish IPMI v2 / RMCP+ session",
        "Lost",
        "no answer by IPMI .*some BMCs do not answer to a wrong one",
    ),
    ("Error: Unable to establish IPMI v2 / RMCP+ session", "Lost", "no answer by IPMI .*IPMI over LAN is turned on"),
]


@pytest.mark.parametrize(("said", "kind", "words"), SAID)
def test_each_word_of_ipmitool_has_its_meaning(monkeypatch, said, kind, words):
    """Lost: what to do next; or a boot that would have gone on in a second."""
    noise = "Loading IANA PEN Registry...\nInvalid completion code received: Insufficient privilege level\n"
    ended = subprocess.CompletedProcess((), 1, "", noise + said)
    monkeypatch.setattr(ipmi, "ended", lambda *_given, **_more: ended)
    one = ipmi.Ipmi("bmc-a", {"host": "bmc"}, {"username": "a", "password": "xyzzy-1957"}, Deadline(9))
    with pytest.raises(HeteroError, match=words) as told:
        one.switch(["1"], "on")
    assert type(told.value).__name__ == kind


@pytest.mark.parametrize("said", ["", "Chassis Power is unknown", "Chassis Power is on or off", "on"])
def test_what_is_no_state_is_none(monkeypatch, said):
    """Lost: a machine that runs, and is taken for off."""
    monkeypatch.setattr(ipmi, "ended", lambda *_given, **_more: subprocess.CompletedProcess((), 0, said, ""))
    one = ipmi.Ipmi("bmc-a", {"host": "bmc"}, {}, Deadline(9))
    with pytest.raises(HeteroError, match="bmc-a: does not tell its state"):
        one.status()


@pytest.mark.parametrize(
    ("code", "said", "told"),
    [
        (0, "    Instantaneous power reading:                   220 Watts\n", {"1": Drawn(220.0)}),
        (0, "    Instantaneous power reading:   0 Watts\n    Power reading state is:   deactivated\n", {}),
        (1, "DCMI request failed because: Invalid command (c1)", {}),
        (0, "", {}),
    ],
)
def test_what_dcmi_tells_of_power(monkeypatch, code, said, told):
    """Lost: what a server draws; or 0 W of a BMC that does not measure."""
    monkeypatch.setattr(ipmi, "ended", lambda *_given, **_more: subprocess.CompletedProcess((), code, said, ""))
    assert ipmi.Ipmi("bmc-a", {"host": "bmc"}, {}, Deadline(9)).drawn(["1"]) == told


def test_a_bmc_without_dcmi_is_switched_as_before(bmc, tmp_path):
    """Lost: a server whose BMC knows nothing of power readings, as ipmi_sim's does."""
    one, deadline = bmc(), Deadline(60)
    with power.session("bmc-a", settings_of(one), one.secrets, deadline, str(tmp_path)) as session:
        assert session.drawn(["1"]) == {}
        assert power.set_outlets(session, {"1": "on"}, deadline)["1"]["after"] == "on"
    assert one.asked == ["on"], "a reading switches nothing"


def test_fence_ipmilan_beside_ours(bmc, tmp_path, capsys):
    """Lost: how long either takes on the same BMC."""
    one, seconds = bmc(), {}
    for name, settings in (("ipmi", settings_of(one)), ("fence_ipmilan", {**one.settings, "outlets": ["1"]})):
        began, deadline = time.monotonic(), Deadline(60)
        with power.session(name, settings, one.secrets, deadline, str(tmp_path)) as session:
            seen = power.set_outlets(session, {"1": "cycled" if one.power == "on" else "on"}, deadline)
        seconds[name] = time.monotonic() - began
        assert seen["1"]["after"] == "on"
        power_was, one.power = one.power, "off"
        assert power_was == "on"
    with capsys.disabled():
        print(
            f"\n  driver ipmi {seconds['ipmi']:.1f} s, driver fence with fence_ipmilan {seconds['fence_ipmilan']:.1f} s"
        )
