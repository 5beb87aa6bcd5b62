# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board that is told by ssh to reboot, each step by itself. Whole reboots are in boot/test_soft_reboot.py."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import (
    power_marks,
    reboots,
    soft_reboot,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.boot_progress import (
    ASKED,
    BOOTING,
    DECIDING,
    SWITCHING,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.soft_reboot import SoftReboot
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.starts import Starting
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs.lifecycle import Options
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.driver import (
    FIRMWARE,
    KERNEL,
    SYSTEM,
    TFTP,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import ProxyConfig

BOARD = SimpleNamespace(id=0, name="board0", ip="10.0.2.1")


def boot_of(**more):
    """A board that is on, with what was done with it."""
    did = []
    work = SimpleNamespace(
        board=BOARD,
        instance="jackie",
        outlet_name="pdu-a outlet 5",
        over=False,
        phases={},
        proxy=SimpleNamespace(config=ProxyConfig()),
        system="its system",
        driver=SimpleNamespace(boots_anew=lambda board: did.append("boots anew"), address=lambda board: "10.0.2.9"),
        say=lambda phase, text, seconds=None: did.append((phase, text)),
        move=lambda state: did.append(("→", state)),
        note=lambda *change: did.append(change),
        fail=lambda blame, error: did.append(("fails", blame, error)),
    )
    known = dict(stage=DECIDING, outlet_now="on", kinds={}, asked={}, flash=False, console=None, console_from=0)
    known.update(cancelled=threading.Event(), powered=None, tries=0, forget=lambda: did.append("forgets"))
    return SimpleNamespace(**{"work": work, "board": BOARD, "did": did, **known, **more})


@pytest.fixture
def loop():
    def make(boot, how="auto", check=False):
        one = reboots.Rebooting.__new__(reboots.Rebooting)
        one.options, one.check, one._softs, one.boots = Options(how=how, soft_timeout=7.0), check, {}, {0: boot}
        one.proxy = SimpleNamespace(store=SimpleNamespace(event=lambda *given: boot.did.append(given)))
        one._post = lambda handler, *given: handler(*given)
        one._spawn = lambda function, *given: function(*given)
        one._follow = lambda boot, deadline: boot.did.append(("follow", deadline.seconds))
        one._by_power = lambda boot, why: boot.did.append(("by power", why))
        one._leave = lambda boot, why: boot.did.append(("left", why))
        return one

    return make


def test_a_reboot_boots_what_runs():
    """Lost: a reboot that finds its board running and leaves it alone."""
    store = SimpleNamespace(lost=list, kept_boards=list, begun=dict)
    proxy = SimpleNamespace(store=store, config=SimpleNamespace(pdus={}))
    work = SimpleNamespace(board=BOARD)
    one = reboots.Rebooting(proxy, [work], Options(how="soft"))
    assert (one.reboot, one._softs, one.proxy, one.options.how) == (True, {}, proxy, "soft")
    assert [boot.work for boot in one.boots.values()] == [work]
    assert [one._only_soft, reboots.Rebooting(proxy, [], Options(how="auto"))._only_soft] == [True, False]


@pytest.mark.parametrize(
    ("how", "stage", "outlet", "told"),
    [
        ("auto", DECIDING, "on", True),
        ("soft", DECIDING, "off", True),
        ("hard", DECIDING, "on", False),
        ("auto", SWITCHING, "on", False),
        ("auto", DECIDING, None, False),
    ],
)
def test_which_boards_are_told(loop, monkeypatch, how, stage, outlet, told):
    """Lost: a reboot by ssh, or the way to one by power; or a board is told before it is known whether it is on."""
    boot, got = boot_of(stage=stage, outlet_now=outlet), []
    monkeypatch.setattr(Starting, "_decide", lambda self, boot: got.append("power"))
    one = loop(boot, how)
    one._tell = lambda boot: got.append("told")
    one._decide(boot)
    assert got == ["told" if told else "power"]


def marked(did):
    """In place of power_marks.begins; a list has what it does."""

    def begins(_proxy, _board):
        did.append("clock read")
        return lambda: did.append("marked")

    return begins


@pytest.mark.parametrize("how", ["auto", "soft"])
@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("obstacle", [None, "it cannot"])
@pytest.mark.parametrize("failure", [None, "no request came"])
def test_a_board_is_told(loop, monkeypatch, how, check, obstacle, failure):
    """Lost: what a dry run says, or why a board was not rebooted by ssh; or one that is told in a dry run."""
    boot = boot_of()
    monkeypatch.setattr(SoftReboot, "obstacle", lambda self: obstacle)
    monkeypatch.setattr(SoftReboot, "run", lambda self: boot.did.append(("runs", self.seconds)) or failure)
    monkeypatch.setattr(power_marks, "begins", marked(boot.did))
    monkeypatch.setattr(reboots.console, "begin_anew", lambda proxy, board: boot.did.append("log anew"))
    one = loop(boot, how, check)
    one._not_told = lambda boot, why: boot.did.append(("not told", why))
    one._tell(boot)
    if obstacle:
        assert boot.did == [("not told", obstacle)]
        return
    noted = ("board0", {"boot": "the present one"}, {"boot": "another one"})
    assert boot.did.count(noted) == (1 if check or not failure else 0)
    boot.did = [one for one in boot.did if one != noted]
    if check:
        assert boot.did == [("reboot", "would be told by ssh" + ("" if how == "soft" else ", else by power"))]
        assert (boot.work.over, boot.stage) == (True, DECIDING)
        return
    marks = ["clock read", (0, "switch", "is to be told by ssh to reboot"), "marked"]
    assert boot.did[:6] == ["log anew", "forgets", *marks, ("runs", 7.0)]
    if failure:
        assert boot.did[6:] == [("not told", failure)]
        return
    assert boot.did[6:] == [
        "boots anew",
        ("→", "booting"),
        ("reboot", "told by ssh, boot request seen"),
        ("follow", 300.0),
    ]
    assert (boot.stage, boot.tries) == (BOOTING, 1)
    assert 0 <= boot.work.phases["reboot"] < 100
    assert boot.powered is not None


@pytest.mark.parametrize(
    ("stage", "kind", "asked", "flash", "counts"),
    [
        (ASKED, FIRMWARE, {}, False, True),
        (ASKED, TFTP, {KERNEL: 1.0}, False, True),
        # any program on the board may send such a request
        (ASKED, TFTP, {}, False, False),
        (ASKED, SYSTEM, {}, True, True),
        (ASKED, SYSTEM, {}, False, False),
        (ASKED, TFTP, {}, True, False),
        (BOOTING, FIRMWARE, {}, False, False),
    ],
)
def test_only_a_boot_request_shows_that_a_board_boots(loop, monkeypatch, stage, kind, asked, flash, counts):
    """Lost: the answer of the system before counts as that of the new one."""
    boot, seen = boot_of(stage=stage, asked=asked, flash=flash), []
    monkeypatch.setattr(Starting, "_seen", lambda self, *given: seen.append(given))
    one = loop(boot)
    one._softs[0] = soft = SoftReboot(boot, 1)
    one._seen(0, kind, "x", 7.0)
    assert soft.requested.is_set() is counts
    assert seen == [(0, kind, "x", 7.0)]


@pytest.mark.parametrize("others", [False, True])
@pytest.mark.parametrize(
    ("how", "outlet", "check", "done"),
    [
        ("soft", "on", False, "fails"),
        ("soft", "off", False, "fails"),
        ("auto", "off", False, "by power"),
        ("auto", "on", True, "by power"),
        ("auto", "on", False, "asked"),
    ],
)
def test_a_board_that_could_not_be_told(loop, monkeypatch, how, outlet, check, done, others):
    """Lost: the promise of how=soft that no power is cut; or the power of a board that is another's by now."""
    monkeypatch.setattr(reboots, "is_others", lambda work, over: others)
    boot = boot_of(outlet_now=outlet)
    one = loop(boot, how, check)
    one._softs[0] = SimpleNamespace(remedy="use another way")
    one._not_told(boot, "it is silent")
    if done == "fails":
        assert boot.did == [
            ("error", "not rebooted, the board is left as it is: it is silent"),
            ("fails", None, "board0: not rebooted: it is silent: use another way"),
        ]
    elif done == "asked" and others:
        assert boot.did == [("left", reboots.ANOTHERS)]
    else:
        assert boot.did == [("by power", "it is silent")]
        assert boot.stage == DECIDING


@pytest.mark.parametrize(
    ("outlet", "ours", "done"),
    [
        ("off", False, ["by power: it is silent", "found off"]),
        ("on", True, ["by power: it is silent", "cold start"]),
        ("on", False, ["left"]),
        (None, True, ["by power: it is silent", "cold start"]),
    ],
)
def test_else_a_board_is_rebooted_by_power(loop, outlet, ours, done):
    """Lost: a board that is off and lives on is not looked at; why ssh was not enough; or the power of a board that is
    on for somebody else.
    """
    boot = boot_of(outlet_now=outlet)
    one = loop(boot)
    del one._by_power
    one._found_off = lambda boot: boot.did.append("found off")
    one._cold_start = lambda boot: boot.did.append("cold start")
    one._was_ours, one._leave_nobodys = lambda boot: ours, lambda boot: boot.did.append("left")
    one._by_power(boot, "it is silent")
    assert [did if isinstance(did, str) else did[1] for did in boot.did] == done


# ---- one board's own part


@pytest.mark.parametrize(
    ("on", "outlet", "key", "why"),
    [
        (True, "on", True, None),
        (True, None, True, None),
        (False, "on", True, "reboot by ssh is turned off (soft_reboot)"),
        (True, "off", True, "pdu-a outlet 5 is off"),
        (True, "on", False, "its root has no line for it: the next provision or rebuild puts one in"),
    ],
)
def test_why_a_board_cannot_be_told(monkeypatch, tmp_path, on, outlet, key, why):
    """Lost: a site's decision that the proxy logs in nowhere; or a wait for a board that has no power."""
    monkeypatch.setattr(soft_reboot, "wanted", lambda proxy: on)
    monkeypatch.setattr(soft_reboot, "private_key", lambda proxy: str(tmp_path if key else tmp_path / "none"))
    assert SoftReboot(boot_of(outlet_now=outlet), 1).obstacle() == why


@pytest.mark.parametrize(
    ("comes", "said", "seconds", "why"),
    [
        ("request", None, 60.0, None),
        ("cancelled", None, 60.0, None),
        (None, "permission denied", 60.0, "it was told by ssh, and said: permission denied"),
        (None, None, 0.25, "it was told by ssh, and no boot request came within 0.25 s"),
        ("error", None, 60.0, "cannot be told"),
    ],
)
def test_how_a_board_takes_it(monkeypatch, comes, said, seconds, why):
    """Lost: what its own ssh says; or half a minute after its request came."""
    monkeypatch.setattr(soft_reboot, "private_key", lambda proxy: "/key")
    boot, ended = boot_of(), []
    one = SoftReboot(boot, seconds)

    @contextmanager
    def told(board, system, key, mark, deadline):
        assert (board, system, key, mark, deadline.seconds) == (BOARD, "its system", "/key", soft_reboot.MARK, seconds)
        if comes == "error":
            raise HeteroError("cannot be told", "10.0.2.1", "look")
        yield lambda: said
        ended.append(True)

    boot.work.driver.told_to_reboot = told
    if comes == "request":
        one.requested.set()
    if comes == "cancelled":
        boot.cancelled.set()
    assert one._told() == why
    assert soft_reboot.TICK <= 0.2, "what its ssh says is said at once"
    assert ended or comes == "error" or why, "the command on the board is left behind"


@pytest.mark.parametrize(
    ("kinds", "grew", "grows", "cancelled", "alive", "silent"),
    [
        ({}, False, False, False, False, True),
        ({FIRMWARE: 1.0}, False, False, False, False, False),
        ({}, True, False, False, False, False),
        ({}, False, True, False, False, False),
        ({}, False, False, True, False, False),
        ({}, False, False, False, True, False),
    ],
)
@pytest.mark.parametrize("console", [True, False])
def test_whether_anything_was_heard_of_it(tmp_path, kinds, grew, grows, cancelled, alive, silent, console):
    """Lost: that a board hangs, and not its ssh alone; or an hour in front of one that works."""
    log = tmp_path / "log"
    log.write_text("before" + "more" * grew)
    boot = boot_of(kinds=kinds, console=str(log) if console else None, console_from=6 if console else 0)
    limits = []

    def answers(board, limit):
        limits.append(limit)
        if grows:
            log.write_text("before and more")
        return alive

    boot.work.driver.alive = answers
    if cancelled:
        boot.cancelled.set()
    one = SoftReboot(boot, 1)
    one._told = lambda: "no request came"
    silent = silent or ((grew or grows) and not console)
    heard = "its console says nothing" if console else "it has no console"
    text = "no request came"
    if silent:
        text += f"; nothing at all was heard of it since: no answer at 10.0.2.9, no boot request, {heard}"
    assert one.run() == text
    assert one.silent is silent
    assert all(limit == soft_reboot.CONNECT for limit in limits)
    by_power = "reboot_instance -e instance=jackie -e how=hard"
    assert (by_power in one.remedy) is silent
    assert ("hetero.compute.console -e instance=jackie" in one.remedy) is (silent and console)


def test_a_board_that_did_it_is_not_looked_at():
    """Lost: seconds of each reboot that went well."""
    one = SoftReboot(boot_of(), 1)
    one._told = lambda: None
    one._is_silent = lambda: pytest.fail("looked at")
    assert one.run() is None
    assert one.silent is False
    assert "how=auto" in one.remedy
