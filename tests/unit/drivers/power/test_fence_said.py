# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a fence agent is told and what it says. Debian's own agents are run in test_fence.py."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import (
    BadInput,
    HeteroError,
    Lost,
    TimedOut,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import fence


@pytest.fixture
def agent(monkeypatch):
    """One that answers so to an action, or to "ACTION OUTLET": (exit code, output, errors); `asked` is what it read."""

    def make(answers=None, secrets=None, left=60, **settings):
        one = fence.Fence("pdu-t", settings, secrets or {}, Deadline(left))
        one._agent, one.dialect, one.asked = "/usr/sbin/fence_x", "fence_x", []

        def ended(argv, thing, remedy, limits, options):
            assert (argv, thing) == (["/usr/sbin/fence_x"], "pdu-t")
            read = dict(line.split("=", 1) for line in options.splitlines())
            one.asked.append(options)
            action = f"{read['action']} {read['plug']}" if "plug" in read else read["action"]
            answer = (answers or {}).get(action, (1, "", "no such thing"))
            if isinstance(answer, Exception):
                raise answer
            return SimpleNamespace(returncode=answer[0], stdout=answer[1], stderr=answer[2])

        monkeypatch.setattr(fence, "ended", ended)
        return one

    return make


LISTS = (0, "1,lamp,ON\n2,a, b,off\nodd line\n7,,UNKNOWN\n", "")


@pytest.mark.parametrize(
    ("answers", "outlets", "told"),
    [
        ({"list-status": LISTS, "status 7": (0, "", "")}, None, {"1": "on", "2": "off", "7": "on"}),
        ({"list-status": LISTS, "status 7": (2, "", "")}, None, {"1": "on", "2": "off", "7": "off"}),
        (
            {"list-status": LISTS, "status 7": (1, "", "it is silent")},
            None,
            {"1": "on", "2": "off", "7": "unknown (it is silent)"},
        ),
        # the one that is named and not listed is not there
        ({"list-status": LISTS}, [1, 9], {"1": "on", "2": "off"}),
        # what a list that failed says is nothing
        ({"list-status": (1, "1,lamp,ON\n", ""), "status 1": (2, "", "")}, ["1"], {"1": "off"}),
        (
            {"status 5": (0, "", ""), "status 6": (2, "", ""), "metadata": (0, "", "")},
            [5, "6"],
            {"5": "on", "6": "off"},
        ),
    ],
)
def test_the_outlets_that_an_agent_tells(agent, answers, outlets, told):
    """Lost: a board is taken for off that runs, or one outlet without an answer hides all others."""
    one = agent(answers, outlets=outlets) if outlets else agent(answers)
    assert one.status() == told
    assert one.status() == told, "asked again"


def test_an_agent_that_lists_nothing_is_asked_to_once(agent):
    """Lost: a second of each look, for a list that never comes."""
    one = agent({"status 5": (0, "", "")}, outlets=["5"])
    for _look in range(2):
        assert one.status() == {"5": "on"}
    assert [options.splitlines()[0] for options in one.asked] == ["action=list-status", *["action=status"] * 2]


def test_an_outlet_that_does_not_tell_is_named(agent):
    one = agent({"status 5": (1, "", "it is silent")}, outlets=["5"])
    with pytest.raises(HeteroError, match=r"^outlet 5 of pdu-t: fence_x does not tell its state: it is silent: check"):
        one.status()
    one = agent({"list-status": (1, "", "no list")})
    with pytest.raises(HeteroError, match=r"^pdu-t: fence_x lists no outlets \(it said: no list\): name its outlets"):
        one.status()


@pytest.mark.parametrize(
    ("answer", "accepted", "words"),
    [
        ((0, "Success: Powered ON\n", "SyntaxWarning: odd"), True, "Success: Powered ON"),
        ((2, "one\ntwo\n", ""), False, "two"),
        ((1, "said", "2026-01-01 10:00:00,1 ERROR: Failed: Timed out waiting to power ON"), True, None),
        ((1, "said", "Unable to obtain correct plug status"), False, "Unable to obtain correct plug status"),
    ],
)
def test_whether_an_order_was_taken(agent, answer, accepted, words):
    """Lost: an outlet is called stubborn that only needs longer, or waited for that was never told."""
    said = agent({"on 5": answer}).switch(["5"], "on")["5"]
    assert said.accepted is accepted
    assert said.words == (words or "Failed: Timed out waiting to power ON")


@pytest.mark.parametrize("words", ["Connection lost", "connection timed out"])
@pytest.mark.parametrize(("code", "lost"), [(1, True), (3, True), (0, False), (2, False)])
def test_a_session_that_was_lost_is_asked_for_again(agent, words, code, lost):
    """Lost: a board is called broken for a network that was away; or what was done is done twice."""
    one = agent({"off 5": (code, "", words)})
    if lost:
        with pytest.raises(Lost, match=f"fence_x: {words}: look at the PDU, or raise timeout"):
            one.switch(["5"], "off")
    else:
        assert one.switch(["5"], "off")["5"].accepted is (code == 0)


def test_an_agent_without_end_is_a_pdu_that_was_lost(agent):
    with pytest.raises(Lost, match=r"pdu-t: fence_x did not end within \d+\.\d s"):
        agent({"list-status": TimedOut("too long", "pdu-t", "")}).status()
    with pytest.raises(TimedOut, match="pdu-t: no time left to ask fence_x: raise timeout"):
        agent({"list-status": LISTS}, left=0).status()


def test_what_an_agent_reads(agent):
    """Lost: its host, or a password whose quotes and blanks the agent would cut off."""
    settings = dict(host="10.0.100.2", port=2323, snmp_version="2c", transport="telnet")
    secrets = dict(username="apc", password='"a b" ', privacy_password="x", community="")
    one = agent({"off 5": (0, "", "")}, secrets, agent_options={"ssl": 1, "login_timeout": None}, **settings)
    one.switch(["5"], "off")
    assert one.asked[0].splitlines() == [
        "action=off",
        "ip=10.0.100.2",
        "ipport=2323",
        "snmp_version=2c",
        "username=apc",
        'password=""a b" "',
        "snmp_priv_passwd=x",
        "ssl=1",
        "plug=5",
    ]


@pytest.mark.parametrize("options", [{"a": "x\ny"}, {"a=b": 1}, {"-a": 1}, {"a\nb": 1}])
def test_no_option_is_a_line_more(agent, options):
    """Lost: whose credentials open a line could have another outlet switched."""
    with pytest.raises(BadInput, match=r"(?s)pdu-t: option .* has a control character: correct it"):
        agent(agent_options=options).switch(["5"], "off")


METADATA = (0, '<parameter name="port_as_ip" unique="0">', "")


@pytest.mark.parametrize(
    ("options", "outlets", "metadata", "refused"),
    [
        (None, ["a", "b"], METADATA, True),
        ({"port_as_ip": "0"}, ["a", "b"], METADATA, True),
        ({"port_as_ip": 1}, ["a", "b"], METADATA, False),
        ({"port_as_ip": "Yes"}, ["a", "b"], METADATA, False),
        ({"port_as_ip": "on"}, ["a", "b"], METADATA, False),
        ({"port_as_ip": True}, ["a", "b"], METADATA, False),
        (None, ["a"], METADATA, False),
        (None, ["a", "b"], (0, '<parameter name="plug">', ""), False),
    ],
)
def test_two_outlets_of_an_agent_for_one_machine_are_refused(agent, options, outlets, metadata, refused):
    """Lost: each order for the second board switches the first."""
    answers = {"metadata": metadata, **{f"status {outlet}": (0, "", "") for outlet in outlets}}
    one = agent(answers, outlets=outlets, agent_options=options)
    if refused:
        with pytest.raises(BadInput, match="pdu-t: fence_x switches one machine, whatever the outlet: a, b would be"):
            one.status()
    else:
        assert one.status() == dict.fromkeys(outlets, "on")


@pytest.mark.parametrize("name", ["", "rm", "fence_x y", "x/fence_y", "fence_"])
def test_what_is_no_fence_agent_is_not_run(name):
    with pytest.raises(BadInput, match=f"pdu-t: '{name}' is no fence agent: name its agent, like fence_apc"):
        fence.Fence("pdu-t", {"agent": name}, {}, Deadline(1)).login()


def test_an_agent_is_found_by_name_and_by_path(tmp_path, monkeypatch):
    """Lost: an agent in /usr/sbin, which is not in everybody's PATH."""
    path = tmp_path / "fence_mine"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    one = fence.Fence("pdu-t", {"agent": str(path)}, {}, Deadline(1))
    one.login()
    assert (one._agent, one.dialect) == (str(path), "fence_mine")
    for paths, places in ((str(tmp_path), "/nowhere"), ("/nowhere", str(tmp_path))):
        monkeypatch.setenv("PATH", paths)
        monkeypatch.setattr(fence, "PLACES", places)
        one = fence.Fence("pdu-t", {"agent": "fence_mine"}, {}, Deadline(1))
        one.login()
        assert (one._agent, one.dialect) == (str(path), "fence_mine")
    monkeypatch.setattr(fence, "PLACES", "/nowhere")
    with pytest.raises(HeteroError, match="pdu-t: program fence_mine is not installed: install the package that has"):
        one.login()


@pytest.mark.parametrize(
    ("settings", "keys"),
    [
        ({"agent": "/bin/fence_no", "host": "10.0.100.2"}, ["agent"]),
        ({"agent": "rm", "host": "a b"}, ["host", "agent"]),
        ({"host": "a\tb"}, ["host", "agent"]),
        ({}, ["agent"]),
    ],
)
def test_what_is_wrong_is_told_with_the_setting_that_it_is_of(settings, keys):
    """Lost: which setting of a PDU to correct."""
    assert [key for key, _error in fence.Fence.wrong("pdu-t", settings)] == keys


def test_agents_are_where_root_looks(monkeypatch):
    """Lost: each agent, to who is no root: Debian has them in /usr/sbin."""
    seen = []
    monkeypatch.setenv("PATH", "/a:/b")
    monkeypatch.setattr(fence.shutil, "which", lambda agent, path: seen.append((agent, path)))
    assert list(fence.Fence.wrong("pdu-t", {"agent": "fence_x"}))
    assert seen == [("fence_x", "/a:/b:/usr/local/sbin:/usr/sbin:/sbin")]
    monkeypatch.delenv("PATH")
    assert list(fence.Fence.wrong("pdu-t", {"agent": "fence_x"}))
    assert seen[1][1].endswith(":/usr/local/sbin:/usr/sbin:/sbin")


def test_an_outlet_that_is_named_may_be_called_as_a_secret(agent):
    """Lost: a board behind an outlet that is called as the PDU's community; who wrote it down knows it."""
    listed = {"list-status": (0, "s3cretword,x,ON\nxs3cretwordx,x,ON\n2,x,OFF\n", "")}
    told = agent(listed, {"community": "s3cretword"}, outlets=["s3cretword", "2"]).status()
    assert told == {"s3cretword": "on", "2": "off"}
