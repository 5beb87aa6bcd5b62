# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Driver redfish on a BMC: switched and read, its sessions, its several systems, its certificate.

If these fail, a server stays dark or runs on, the wrong one is cut off, or its BMC lets nobody in any more.

Tests drivers/power/web.py.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError, TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import outlets as power
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import web
from ansible_collections.hetero.compute.tests.unit.drivers.power.http_devices import certificate
from ansible_collections.hetero.compute.tests.unit.drivers.power.redfish_bmc import (
    PASSWORD,
    SESSIONS,
    RedfishBmc,
    error,
)


@pytest.fixture
def bmc():
    """A function that starts a BMC; all are stopped at the end of the test."""
    with contextlib.ExitStack() as stack:

        def start(*given, **more):
            one = RedfishBmc(*given, **more)
            stack.callback(one.close)
            return one

        yield start


@contextlib.contextmanager
def opened(bmc, folder, seconds=60.0, secrets=None, **more):
    deadline = Deadline(seconds)
    given = {**bmc.settings, **more}
    with power.session("bmc-a", given, secrets or bmc.secrets, deadline, str(folder)) as session:
        yield session, deadline


def switched(bmc, folder, wanted, **more):
    with opened(bmc, folder, **more) as (session, deadline):
        results = power.set_outlets(session, wanted, deadline)
    return {outlet: (seen["before"], seen["after"]) for outlet, seen in results.items()}


def module(name, params):
    """What a module prints, run by the tests' own Python, which has sushy."""
    argv = [sys.executable, "-m", f"ansible_collections.hetero.compute.plugins.modules.{name}"]
    given = json.dumps({"ANSIBLE_MODULE_ARGS": params})
    done = subprocess.run(argv, input=given, capture_output=True, text=True, timeout=1000, check=False)
    return done.stdout + done.stderr


def test_an_operators_bmc(bmc, tmp_path):
    """Lost: a server that is configured as the page has it, its password, or a session of the few that a BMC has."""
    one = bmc()
    (tmp_path / "credentials.json").write_text(json.dumps({"bmc-a": one.secrets}))
    proxy = {
        "pdus": {"bmc-a": one.settings},
        "boards": {"0": {"pdu": "bmc-a", "outlet": "Self"}},
        "credentials": str(tmp_path / "credentials.json"),
        "run_folder": str(tmp_path / "run"),
    }
    (tmp_path / "proxy.json").write_text(json.dumps(proxy))
    one.power["Self"] = "On"
    given = dict(pdu="bmc-a", config=str(tmp_path / "proxy.json"), timeout=50, state="cycled", outlets=["Self"])
    text = module("pdu_power", given)
    result = json.loads(text)
    seen = result["outlets"]["Self"]
    assert (result["changed"], seen["before"], seen["after"], result["dialect"]) == (True, "on", "on", "redfish"), text
    assert PASSWORD not in text
    assert [kind for _name, kind in one.resets] == ["ForceOff", "On"]
    assert (one.opened, one.sessions) == (1, {})


def test_a_machine_that_takes_its_time(bmc, tmp_path):
    """Lost: that a machine obeyed, because it needed longer than a relay does, or was on its way when it was told."""
    one = bmc({"Self": "PoweringOn"})
    one.transition = 1.0

    def arrive(bmc):
        if len(bmc.resets) == 2:
            bmc.power["Self"] = "On"

    one.faults["POST", "Reset"] = arrive
    assert switched(one, tmp_path, {"Self": "off"}) == {"Self": ("unknown (PoweringOn)", "off")}
    assert one.resets == [("Self", "ForceOff")] * 3, "it was told again after 409"
    assert one.sessions == {}


def test_the_window_of_a_machine_is_the_deadline(bmc, tmp_path, monkeypatch):
    """Lost: a server whose BMC tells of its power later than a PDU tells of a relay."""
    monkeypatch.setattr(power, "WINDOW", 0.1)
    one = bmc()
    one.transition = 1.0
    assert switched(one, tmp_path, {"Self": "on"}) == {"Self": ("off", "on")}


def test_who_is_busy_to_the_end(bmc, tmp_path):
    """Lost: why nothing was switched; or the order is said to be unknown, where it was refused each time."""
    one = bmc()
    one.faults["POST", "Reset"] = lambda _bmc: (409, error("The previous request is not done", "X.ResourceInUse"))
    with pytest.raises(power.OutletsFailed) as told:
        switched(one, tmp_path, {"Self": "on"}, seconds=12)
    said = r"^bmc-a: is not ready for that yet \(409: The previous request is not done\) \(gave up after 12 s\): wait"
    assert told.match(said)
    assert one.sessions == {}


def test_an_order_that_is_accepted_and_not_obeyed(bmc, tmp_path):
    """Lost: that the machine is still off, to a BMC that says yes."""
    one = bmc()
    one.faults["POST", "Reset"] = lambda _bmc: (204, "")
    for seconds in (12, 120):  # beside other load the first may be up before the machine was read again
        with pytest.raises(HeteroError) as told:
            switched(one, tmp_path, {"Self": "on"}, seconds=seconds)
        if "still off" in str(told.value):
            break
    assert told.match(r"outlet Self of bmc-a: still off [\d.]+ s after 'on' \(PDU said On accepted\)")
    assert one.sessions == {}


def test_a_wrong_password_is_tried_once(bmc, tmp_path):
    """Lost: the account, which many BMCs lock after three wrong passwords; and where to correct it."""
    one = bmc()
    secrets = dict(one.secrets, password="hush-hush-7")
    with pytest.raises(
        HeteroError, match=r"refuses the credential \(401: .*\): correct the credential of bmc-a"
    ) as told:
        switched(one, tmp_path, {"Self": "on"}, secrets=secrets)
    assert "hush-hush-7" not in repr(told.value.failure)
    assert (one.opened, one.resets) == (1, [])


@pytest.mark.parametrize("secrets", [{"username": "operator"}, {"password": "xyzzy-1957"}])
def test_half_a_credential_is_sent_to_nobody(bmc, tmp_path, secrets):
    """Lost: an attempt of the three, and which half is missing."""
    one = bmc()
    with pytest.raises(BadInput, match=r"has a (username|password) only: correct the credential of bmc-a"):
        switched(one, tmp_path, {"Self": "on"}, secrets=secrets)
    assert one.asked == []


def test_all_its_sessions_are_taken(bmc, tmp_path):
    """Lost: a boot, because somebody looks at the BMC's web page at that moment; or who is in the way."""
    one = bmc()
    one.most, one.sessions["theirs"] = 1, "1"
    with pytest.raises(TimedOut, match=r"has no session left \(503: The maximum number of sessions .*end sessions"):
        switched(one, tmp_path, {"Self": "on"}, seconds=8)
    one.faults["POST", SESSIONS] = lambda bmc: bmc.sessions.clear() if bmc.opened > 5 else None
    assert switched(one, tmp_path, {"Self": "on"}) == {"Self": ("off", "on")}
    assert one.sessions == {}


def test_a_session_that_ends_in_the_middle(bmc, tmp_path):
    """Lost: a board, because its BMC forgets sessions that last."""
    one = bmc()
    with opened(one, tmp_path) as (session, deadline):
        assert session.status() == {"Self": "off"}
        one.sessions.clear()
        assert power.set_outlets(session, {"Self": "on"}, deadline)["Self"]["after"] == "on"
    assert (one.opened, one.sessions) == (2, {})


@pytest.mark.parametrize("ends", ["error", "deadline", "hang"])
def test_each_session_is_closed(bmc, tmp_path, ends):
    """Lost: the BMC, which lets nobody in while those that nobody closed last."""
    one = bmc()
    if ends == "error":
        one.faults["POST", "Reset"] = lambda _bmc: (400, error("no"))
    elif ends == "deadline":
        one.transition = 3600
    else:
        one.faults["POST", "Reset"] = lambda _bmc: time.sleep(14)
    with pytest.raises(power.OutletsFailed):
        switched(one, tmp_path, {"Self": "on"}, seconds=60 if ends == "error" else 12)
    assert one.opened >= 1
    assert one.sessions == {}


def test_a_bmc_without_sessions(bmc, tmp_path):
    """Lost: an older BMC, which knows passwords only."""
    one = bmc()
    one.no_sessions = True
    assert switched(one, tmp_path, {"Self": "on"}) == {"Self": ("off", "on")}


@pytest.mark.parametrize(
    ("allowed", "wanted", "resets"),
    [
        (["ForceOn", "ForceOff"], "on", ["ForceOn"]),
        (["PushPowerButton", "On", "ForceOff"], "on", ["On"]),
        (None, "on", ["On"]),
        ([], "on", ["On"]),
    ],
)
def test_only_what_it_allows_is_ordered(bmc, tmp_path, allowed, wanted, resets):
    """Lost: a server whose BMC has another word, or tells none."""
    one = bmc()
    one.allowed = allowed
    switched(one, tmp_path, {"Self": wanted})
    assert [kind for _name, kind in one.resets] == resets


@pytest.mark.parametrize("allowed", [["On", "GracefulShutdown"], ["On", "PushPowerButton", "PowerCycle"]])
def test_power_is_not_asked_for(bmc, tmp_path, allowed):
    """Lost: a cut that is sure: a system that is asked may say no, and a button switches it on that was off."""
    one = bmc({"Self": "On"})
    one.allowed = allowed
    with pytest.raises(power.OutletsFailed, match="has no way to switch it off without asking the system") as told:
        switched(one, tmp_path, {"Self": "off"})
    assert f"(it allows {', '.join(sorted(allowed))})" in str(told.value)
    assert (one.resets, one.power, one.sessions) == ([], {"Self": "On"}, {})


def test_of_several_systems_the_one_that_is_named(bmc, tmp_path):
    """Lost: somebody's machine, which was taken for the one that was meant."""
    one = bmc({"Node1": "On", "Node2": "On", "1": "On"})
    assert switched(one, tmp_path, {"Node2": "off"}) == {"Node2": ("on", "off")}
    assert one.resets == [("Node2", "ForceOff")]
    with pytest.raises(power.OutletsFailed, match=r"outlet 2 of bmc-a: no such outlet \(it has Node1, Node2, 1\)"):
        switched(one, tmp_path, {"2": "off"})
    assert len(one.resets) == 1


def test_one_system_is_named_too(bmc, tmp_path):
    """Lost: another machine, once a second one is put into that chassis."""
    one = bmc({"Node2": "On"})
    with pytest.raises(power.OutletsFailed, match=r"outlet 1 of bmc-a: no such outlet \(it has Node2\)"):
        switched(one, tmp_path, {"1": "off"})
    assert one.resets == []


def test_a_system_that_is_lost_hides_no_other(bmc, tmp_path):
    """Lost: all machines of a chassis, as long as one is pulled out."""
    one = bmc({"Node1": "On", "Node2": "On"})
    one.faults["GET", "Node1"] = lambda _bmc: (404, error("pulled out"))
    with opened(one, tmp_path) as (session, _deadline):
        assert session.status() == {"Node1": "unknown (answers 404: pulled out)", "Node2": "on"}


def test_only_this_bmc_is_asked(bmc, tmp_path):
    """Lost: the session's token, to a host that a BMC names; or a machine behind that."""
    one, other = bmc(), bmc({"Self": "Off"})
    one.links = f"http://127.0.0.1:{other.server_address[1]}"
    assert switched(one, tmp_path, {"Self": "on"}) == {"Self": ("off", "on")}
    assert (other.asked, one.sessions) == ([], {})


def test_its_certificate_is_checked(bmc, tmp_path):
    """Lost: the password, to whoever answers in the BMC's place."""
    files = certificate(tmp_path)
    one = bmc(certificate=files)
    settings = {key: value for key, value in one.settings.items() if key != "tls"}
    with pytest.raises(HeteroError, match="its certificate is not trusted"), power.session(
        "bmc-a", settings, one.secrets, Deadline(20), str(tmp_path)
    ):
        pytest.fail("trusted")
    assert one.asked == []
    for more in (dict(tls_ca=str(files[0])), dict(tls_verify=False)):
        assert switched(one, tmp_path, {"Self": "cycled"}, tls=True, **more)["Self"][1] == "on"


def test_many_bmcs_are_switched_at_the_same_time(bmc, tmp_path):
    """Lost: the seconds of each server, one after another, in a play of many."""
    many = [bmc() for _number in range(4)]
    for one in many:
        one.after = 0.3

    def switch(number):
        deadline = Deadline(60)
        one = many[number]
        with power.session(f"bmc-{number}", one.settings, one.secrets, deadline, str(tmp_path)) as session:
            return power.set_outlets(session, {"Self": "on"}, deadline)["Self"]["after"]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(switch, range(4))) == ["on"] * 4
    assert max(one.times[0] for one in many) < min(one.times[-1] for one in many), "the last began before one was done"
    assert all(one.sessions == {} for one in many)


def test_boot_once_is_set_before_power(bmc, tmp_path):
    """Lost: a server that boots what lies on its disk, rather than what the proxy has for it."""
    one = bmc()
    switched(one, tmp_path, {"Self": "on"}, boot_once="pxe")
    assert one.boots == [("Self", {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"})]
    orders = [path.rpartition("/")[2] for method, path, _body in one.asked if method in ("PATCH", "POST")]
    assert orders == ["Sessions", "Self", "ComputerSystem.Reset"]
    switched(one, tmp_path, {"Self": "off"}, boot_once="pxe")
    assert len(one.boots) == 1
    with pytest.raises(power.OutletsFailed, match="cannot have it boot by UefiHttp once"):
        switched(one, tmp_path, {"Self": "on"}, boot_once="uefi_http")
    assert one.power == {"Self": "Off"}


def test_whose_library_is_missing_is_told_which(bmc, tmp_path, monkeypatch):
    """Lost: what to install, on a machine that no set-up has seen."""
    known = web.import_module

    def missing(name):
        if name == "sushy":
            raise ImportError(name)
        return known(name)

    monkeypatch.setattr(web, "import_module", missing)
    with pytest.raises(HeteroError, match="library sushy is not installed: install python3-sushy"):
        switched(bmc(), tmp_path, {"Self": "on"})
