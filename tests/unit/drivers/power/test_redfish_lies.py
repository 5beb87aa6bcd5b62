# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Driver redfish on BMCs that break Redfish's rules, hang, or are none.

If these fail, what is wrong is lost to a traceback, or a machine is taken for off that runs.
"""

from __future__ import annotations

import re
import socket
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import outlets as power
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.redfish import Absent, Redfish
from ansible_collections.hetero.compute.tests.unit.drivers.power.redfish_bmc import (
    PASSWORD,
    SESSIONS,
    SYSTEMS,
    RedfishBmc,
    error,
)


@pytest.fixture
def bmc():
    one = RedfishBmc({"Self": "On"})
    yield one
    one.close()


def seen(bmc, folder, seconds=60.0, **more):
    """The states that a look finds, or its error in words."""
    try:
        with power.session("bmc-a", {**bmc.settings, **more}, bmc.secrets, Deadline(seconds), str(folder)) as session:
            return session.status()
    except HeteroError as told:
        return str(told)


ODD = "answers with no Redfish when asked for"
#: {what it does: (method, end of the path, (status, text), words of the error)}
LIES = {
    "no json": ("GET", "/redfish/v1/", (200, "<html>hello"), f"{ODD} its service root"),
    "a list": ("GET", "/redfish/v1/", (200, "[1, 2]"), f"{ODD} its service root"),
    "nothing": ("GET", "/redfish/v1/", (200, ""), f"{ODD} its service root"),
    "deep": ("GET", "/redfish/v1/", (200, "[" * 100000), f"{ODD} its service root"),
    "elsewhere": ("GET", "/redfish/v1/", (301, "moved"), "answers 301: moved: check its host, port and tls"),
    "no such root": ("GET", "/redfish/v1/", (404, "?"), r"answers 404: \?: see whether Redfish is turned on"),
    "no systems": ("GET", SYSTEMS, (200, {"Members": []}), "tells of no systems: see what this account may do"),
    "odd systems": ("GET", SYSTEMS, (200, {"Members": "Self"}), f"{ODD} its list"),
    "odd members": ("GET", SYSTEMS, (200, {"Members": [7]}), f"({ODD}|tells of no systems)"),
    "one Id twice": (
        "GET",
        SYSTEMS,
        (200, {"Members": [{"@odata.id": f"{SYSTEMS}/1"}, {"@odata.id": "/other/1"}]}),
        "two systems have one Id",
    ),
    "cut": ("GET", "/Self", (200, '{"Id": "Self", "PowerState": "Of'), f"{ODD} a system"),
    "no state": ("GET", "/Self", (200, {"Id": "Self"}), f"{ODD} a system"),
    "state of lists": ("GET", "/Self", (200, {"PowerState": ["Off"]}), f"{ODD} a system"),
    "not allowed": ("GET", "/Self", (403, error("Insufficient privilege")), r"may not do that \(403: .*Operator"),
    "odd error": ("GET", "/Self", (400, '{"error": null}'), r'answers 400: {"error": null}: check what this account'),
    "odd words": ("GET", "/Self", (403, {"error": {"@Message.ExtendedInfo": 5}}), "this account may not do that"),
}


@pytest.mark.parametrize("name", LIES)
def test_what_breaks_the_rules_is_put_into_words(bmc, tmp_path, capfd, name):
    """Lost: which thing is wrong, to a traceback; or a machine that is taken for off."""
    method, end, answer, words = LIES[name]
    bmc.faults[method, end] = lambda _bmc: answer
    said = seen(bmc, tmp_path)
    assert isinstance(said, str), said
    assert re.search(words, said), said
    assert said.startswith(("bmc-a: ", "outlet Self of bmc-a: "))
    assert bmc.sessions == {}
    assert PASSWORD not in said + capfd.readouterr().err


@pytest.mark.parametrize("state", ["PoweringOff", "PoweringOn", "Paused", None, "off", "ON", ""])
def test_a_state_between_is_neither_on_nor_off(bmc, tmp_path, state):
    """Lost: a machine that still runs, whose root is taken away because it was read as off."""
    bmc.faults["GET", "/Self"] = lambda _bmc: (200, {"Id": "Self", "PowerState": state})
    assert seen(bmc, tmp_path) == {"Self": f"unknown ({state})"}


@pytest.mark.parametrize("fault", [(500, "oops"), (503, error("try later")), (502, ""), (429, "")])
def test_what_passes_is_waited_for(bmc, tmp_path, fault):
    """Lost: a board, because its BMC had a bad moment."""
    left = [fault, fault]
    bmc.faults["GET", "/Self"] = lambda _bmc: left.pop() if left else None
    assert seen(bmc, tmp_path) == {"Self": "on"}
    assert bmc.sessions == {}


@pytest.mark.parametrize("where", [("GET", "/redfish/v1/"), ("POST", SESSIONS), ("GET", "/Self")])
def test_one_that_hangs_is_given_up(bmc, tmp_path, where):
    """Lost: a play, which would hang with the BMC."""
    bmc.faults[where] = lambda _bmc: time.sleep(5)
    began = time.monotonic()
    said = seen(bmc, tmp_path, seconds=2)
    assert time.monotonic() - began < 60
    assert "no whole answer within" in said, said
    assert "(gave up after 2 s)" in said, said


def test_one_that_is_not_there(bmc, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for seconds in (1, 40):  # beside other load the first may be up before the answer that nobody is there
        said = seen(bmc, tmp_path, seconds=seconds, port=port)
        if "no answer (" in said:
            break
    assert "bmc-a: no answer (" in said
    assert f"check its host and port (127.0.0.1 port {port}" in said


def test_an_order_that_is_lost_is_not_repeated_on_a_machine_that_obeyed(bmc, tmp_path):
    """Lost: that it was carried out; or a machine that is switched twice."""

    def obey_and_hang_up(bmc):
        bmc.resets.append(("Self", "ForceOff"))
        bmc.power["Self"] = "Off"
        raise ConnectionError("hangs up")

    bmc.faults["POST", "Reset"] = obey_and_hang_up
    deadline = Deadline(20)
    with power.session("bmc-a", bmc.settings, bmc.secrets, deadline, str(tmp_path)) as session:
        assert power.set_outlets(session, {"Self": "off"}, deadline)["Self"]["after"] == "off"
    assert (len(bmc.resets), bmc.sessions) == (1, {})


@pytest.mark.parametrize(
    ("status", "text", "kind", "words"),
    [
        (400, error("x", "iLO.2.14.InvalidOperationForSystemState"), "Busy", "is not ready for that yet"),
        (500, error("Unable (SYS518)"), "Busy", "is not ready for that yet"),
        (409, "", "Busy", r"is not ready for that yet \(409: Conflict\)"),
        (400, error("x", "Base.1.8.CreateLimitReachedForResource"), "Busy", "has no session left"),
        (400, error("Too many active sessions"), "Busy", "has no session left"),
        (401, error("x"), "Lost", "its session is over"),
        (501, "", "Absent", "answers 501"),
        (418, "", "HeteroError", "answers 418"),
    ],
)
def test_each_refusal_has_its_meaning(bmc, status, text, kind, words):
    """Lost: a boot that would have gone on in a second; or a minute, with one that never will."""
    bmc.faults["GET", "/odd"] = lambda _bmc: (status, text)
    one = Redfish("bmc-a", bmc.settings, bmc.secrets, Deadline(20))
    with one, pytest.raises((HeteroError, Absent), match=words) as told:
        one._answer("GET", "/odd")
    assert type(told.value).__name__ == kind


def test_errors_that_end_the_work_are_none_of_the_deadline(bmc, tmp_path):
    """Lost: a minute, before a wrong account is told."""
    bmc.faults["GET", SYSTEMS] = lambda _bmc: (403, error("no"))
    began = time.monotonic()
    assert "may not do that" in seen(bmc, tmp_path, seconds=600)
    assert time.monotonic() - began < 300
