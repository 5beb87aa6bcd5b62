# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of a board whose boot went wrong: what is said, whose fault it is, what is done with its power. Whole
boots are in test_lifecycle.py.
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import boot_loop, left_on
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.boot_places import BootPlaces
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.boot_progress import (
    ASKED,
    BOOTING,
    DECIDING,
    LISTENING,
    LOOKING,
    SWITCHING,
    Boot,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.left_on import LeftOn
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.starts import Starting
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import power_proof
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power.bystanders import Bystanders
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs.lifecycle import Options
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError, StepFailed
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.driver import (
    FIRMWARE,
    KERNEL,
    NFS,
    OTHER_DHCP,
    TFTP,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.ssh import WrongHostKey
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import Wire

KEY = WrongHostKey("another host key answers there", "10.0.2.1")
STEP = StepFailed("image", "mboot says: no space", "board0", "make room", screen="full")


class Work:
    """A board's work: `did` is what was done with the board, in order."""

    def __init__(self, **more):
        self.did, self.evidence, self.phases = [], {}, {}
        self.board = SimpleNamespace(id=0, name="board0", ip="10.0.2.1", mac="00:1a:ca:00:57:90")
        self.pdu, self.outlet, self.outlet_name, self.image_name = "pdu-a", "5", "pdu-a outlet 5", "image demo"
        self.over = self.ran = self.stays_on = self.failed = False
        self.doubt = self.blame = self.power_proof = self.error = None
        self.state, self.up = "booting", ("running", "ssh answers")
        self.system = SimpleNamespace(root="nfs", host_key="ssh-ed25519 x")
        self.driver = SimpleNamespace(from_flash=lambda board: False, has_root=lambda board: False)
        store = SimpleNamespace(transaction=nullcontext, commit=lambda: None)
        self.proxy = SimpleNamespace(wiring=lambda board: Wire(), store=store)
        vars(self).update(more)

    def say(self, phase, text, seconds=None):
        self.did.append((phase, text))

    def move(self, state, note=""):
        self.did.append((f"→ {state}", note))
        self.state = state

    def fail(self, blame, error, **facts):
        self.did.append((f"fails: {blame}", str(error)))
        self.evidence.update(facts)
        self.over, self.blame = True, blame

    def quarantine(self, note, remedy="", at_fault=True):
        self.did.append(("quarantine", note + remedy))
        self.over = True

    def came_up(self):
        self.did.append(("came up", ""))

    def seen(self, *given):
        self.did.append(("seen", given))


def loop(work, retries=1, check=False, **of_boot):
    """A loop of one board that boots since 41 s, which hands on at once what is posted and spawned."""
    one = Starting.__new__(Starting)
    one.options, one.check, one.lines, one.proxy = Options(retries=retries), check, {}, work.proxy
    one._uncounted = {}
    one._post = lambda handler, *given: handler(*given)
    one._spawn = lambda function, *given: function(*given)
    one._places = BootPlaces("no run folder", None)
    one._bystanders = Bystanders(SimpleNamespace(boards={}, config=SimpleNamespace(pdus={})), [])
    one._feeds = SimpleNamespace(remember=lambda work, proven: work.did.append(("remember", proven)))
    boot = Boot(work)
    boot.stage, boot.powered, boot.tries = BOOTING, time.monotonic() - 41.0, 1
    vars(boot).update(of_boot)
    one.boots = {0: boot}
    one._ask = lambda boot, state: work.did.append(("ask", state))
    one._on = lambda boot: work.did.append(("on", ""))
    return one, boot


def judge(work, wrong_key=None, faults=(), strangers=(), then=True, outlet=None, **more):
    """How a boot that stalled ends; `then` also with what comes after its outlet was read as off.

    :param outlet: its state, for who reads it before the board is left on.
    """
    one, boot = loop(work, **more)
    one._open_line, one._of = lambda pdu: None, lambda pdu: [boot]
    one._judge(boot, wrong_key, list(faults), list(strangers))
    if outlet and boot.stage == LOOKING:
        LeftOn._on_status(one, work.pdu, {work.outlet: outlet})
    if then and boot.then and not work.over:
        boot.then(boot)
    return boot, work.did


@pytest.fixture
def silent(monkeypatch):
    """Boards that are silent once their outlets are off, or live on by these signs."""
    signs = []
    monkeypatch.setattr(power_proof, "Silence", lambda work: SimpleNamespace(life=lambda: signs))
    monkeypatch.setattr(boot_loop, "remove_entry", lambda work: work.did.append(("no entry", "")))
    return signs


def test_a_fault_of_the_proxy_leaves_the_board_as_it_is():
    """Lost: sound boards out of use, one after another, for a proxy that serves nothing."""
    _boot, did = judge(Work(), faults=["nfsd is down", "DHCP is down"], strangers=["x"])
    text = "nfsd is down; DHCP is down"
    assert did == [
        ("error", f"the proxy's fault, the board is left as it is: {text}"),
        ("fails: proxy", f"board0: no boot request within 41 s; the proxy itself fails: {text}"),
    ]


@pytest.mark.parametrize(
    ("tries", "more", "whose"),
    [
        (2, {}, "fails: proxy"),
        # it is tried again, for the proxy serves by now
        (1, {}, "error"),
        # it was served, so what the proxy failed at before was not its reason
        (2, {"kinds": {TFTP: 1.0}}, "ask"),
    ],
)
def test_what_the_proxy_failed_at_before_counts_in_the_last_try(tries, more, whose):
    """Lost: a sound board, for DHCP that was started too late for its firmware."""
    _boot, did = judge(Work(), then=False, early=["DHCP is down"], tries=tries, **more)
    assert did[-1 if whose != "error" else 0][0] == whose


@pytest.mark.parametrize("retries", [0, 1])
def test_a_board_that_stalls_is_tried_again_as_often_as_was_asked(retries):
    """Lost: the second try; or minutes of a third one that nobody asked for."""
    boot, did = judge(Work(), retries=retries)
    if retries:
        assert did == [("error", "no boot request within 41 s; trying again"), ("ask", "off"), ("on", "")]
        assert (boot.stage, boot.doomed) == (SWITCHING, None)
    else:
        assert did[0] == ("ask", "off")
        ((what, why),) = did[1:]
        assert (what, boot.unheard) == ("quarantine", True)
        assert why.startswith("no boot request within 41 s; see that its network cable (port of 00:1a:ca:00:57:90)")
        assert "(pdu-a outlet 5)" in why


@pytest.mark.parametrize("more", [{"kinds": {FIRMWARE: 1.0}}, {"kinds": {TFTP: 1.0}}])
def test_a_board_that_was_heard_is_not_told_of_its_cable(more):
    """Lost: an hour at the cable of a board whose network works."""
    boot, did = judge(Work(), retries=0, **more)
    assert did[-1][0] == "quarantine"
    assert "give it more: timeout" in did[-1][1]
    assert "cable" not in did[-1][1]
    assert boot.unheard is False


def test_another_host_key_after_a_power_cut_is_the_wirings_fault():
    """Lost: the instance of somebody else at that address, taken for one's own, or a second cut for nothing."""
    boot, did = judge(Work(), wrong_key=KEY, cycled=True)
    assert did[0] == ("ask", "off")
    assert did[1][0] == "quarantine"
    assert did[1][1].startswith("outlet 5 of pdu-a does not feed this board, or its address is taken: 10.0.2.1")
    assert "cable" not in did[1][1]
    assert boot.unheard is False


def test_an_image_that_does_not_boot_is_named_with_the_end_of_the_console(silent, tmp_path):
    """Lost: the tenant's image is blamed on a board, which goes out of use; or the line that says why."""
    log = tmp_path / "board0.log"
    log.write_text("before\npanic\n")
    work = Work()
    work.proxy.wiring = lambda board: Wire(console=str(log))
    _boot, did = judge(work, asked={KERNEL: 1.0}, kinds={TFTP: 1.0}, console_from=len("before\n"))
    note = "stalled at nfs after 41 s; console: board0.log"
    assert did == [
        ("ask", "off"),
        ("→ shutting down", f"its image does not boot: {note}"),
        ("no entry", ""),
        ("error", f"the image does not boot: {note}\npanic"),
        ("fails: image", f"board0: image demo does not boot: {note}{boot_loop.blame.SLOW}"),
    ]


def test_what_is_known_of_a_stalled_boot_goes_into_the_result():
    """Lost: what a program or a person looks up of a boot that failed."""
    work = Work()
    known = dict(kinds={TFTP: 2.0, FIRMWARE: 1.0}, asked={KERNEL: 3.0}, tries=2, failed_step=STEP)
    judge(work, strangers=["x"], then=False, **known)
    assert 41.0 <= work.evidence["seconds"] < 100
    assert work.evidence["seconds"] == round(work.evidence["seconds"], 1)
    assert {key: work.evidence[key] for key in sorted(work.evidence) if key != "seconds"} == dict(
        asked=[KERNEL],
        console=None,
        console_tail=[],
        screen="full",
        seen=[FIRMWARE, TFTP],
        self_test=[],
        strangers=["x"],
        tries=2,
    )


def test_a_step_of_the_driver_that_failed_is_the_reason():
    """Lost: what the board's own program said."""
    _boot, did = judge(Work(), failed_step=STEP)
    assert did[0] == ("error", "mboot says: no space (make room); trying again")


@pytest.mark.parametrize("tries", [1, 2])
def test_a_stranger_on_the_network_costs_no_board(silent, tries):
    """Lost: sound boards out of use, for a laptop with a DHCP server."""
    _boot, did = judge(Work(), strangers=["other DHCP server: 10.0.0.9"], tries=tries)
    who = "other DHCP server: 10.0.0.9"
    if tries == 1:
        assert did == [("error", f"no boot request within 41 s; {who}; trying again"), ("ask", "off"), ("on", "")]
        return
    note = "no boot request within 41 s, twice"
    assert did == [
        ("ask", "off"),
        ("→ shutting down", f"its network is not the proxy's alone: {who}"),
        ("no entry", ""),
        ("error", f"the network's fault, the board is switched off: {who}"),
        ("fails: network", f"board0: {note}; not the board's fault, {who}: {boot_loop.ALONE}, then ask again"),
    ]


@pytest.mark.parametrize("more", [{"strangers": ["x"], "tries": 2}, {"asked": {KERNEL: 1.0}, "kinds": {TFTP: 1.0}}])
def test_a_board_that_lives_on_is_not_given_back(silent, more):
    """Lost: a board that another outlet feeds is called sound and off, and the next tenant gets it."""
    silent.append("something answers at 10.0.2.1")
    boot, did = judge(Work(), **more)
    assert [what for what, _why in did] == ["ask", "quarantine"]
    assert did[1][1].startswith("off by pdu-a's read-back, but something answers at 10.0.2.1")
    assert boot.doomed


@pytest.mark.parametrize(
    ("of_work", "more", "stays"),
    [
        ({"ran": True}, {"kinds": {NFS: 1.0}}, True),
        ({"ran": True}, {"kinds": {NFS: 1.0}, "wrong_key": KEY, "cycled": True}, True),
        ({"ran": True}, {"kinds": {TFTP: 1.0}}, False),
        ({"ran": False}, {"kinds": {NFS: 1.0}}, False),
        ({"ran": True, "stays_on": True}, {}, True),
        ({"ran": True, "stays_on": True}, {"wrong_key": KEY}, True),
        ({"ran": True, "stays_on": True}, {"wrong_key": KEY, "cycled": True}, False),
        ({"ran": True}, {"kinds": {NFS: 1.0}, "strangers": ["x"]}, True),
    ],
)
@pytest.mark.parametrize("check", [False, True])
def test_a_board_that_may_be_at_work_keeps_its_power(silent, of_work, more, stays, check):
    """Lost: what a tenant has not written yet, for a check of a large disk that takes longer than the timeout."""
    work = Work(**of_work)
    _boot, did = judge(work, check=check, then=False, outlet="on", **more)
    assert (("ask", "off") not in did) is stays
    if not stays:
        return
    why = left_on.STAYS_ON if work.stays_on else left_on.MAY_WORK
    assert all(why in text for _what, text in did)
    assert (": take that machine off" in did[0][1]) is ("strangers" in more)
    if check:
        assert [what for what, _why in did] == ["error", "fails: instance"]
        assert did[1][1] == f"board0: {did[0][1]}"
    else:
        assert [what for what, _why in did] == ["quarantine"]
        assert did[0][1].endswith(left_on.IN_USE_AGAIN)
        assert work.blame == ("network" if "strangers" in more else "board" if "wrong_key" in more else work.blame)
        assert work.blame in ("network", "board", "image")


def test_a_board_that_answers_runs():
    """Lost: that it runs; or its outlet, which is noted as proven where nothing proves it."""
    work = Work(power_proof=dict(pdu="off → on, read back", board=None), up=("wiped", "its disks are wiped"))
    one, boot = loop(work, kinds={TFTP: 1.0})
    one._on_answer(boot, True, boot.powered + 7.0)
    assert work.did == [
        ("came up", ""),
        ("→ running", ""),
        ("wiped", "its disks are wiped"),
        ("remember", True),
    ]
    assert (work.phases["wiped"], work.over) == (pytest.approx(7.0), True)
    assert work.power_proof["board"].startswith("boot request")


@pytest.mark.parametrize(
    ("answer", "cycled", "stays_on", "judged"),
    [
        (False, False, False, (None, None)),
        (STEP, False, False, (None, STEP)),
        (KEY, True, False, (KEY, None)),
        (KEY, False, True, (KEY, None)),
        # nobody here saw its power go: the answer may come from before
        (KEY, False, False, None),
    ],
)
def test_a_board_that_does_not_answer_is_looked_into(answer, cycled, stays_on, judged):
    """Lost: whose fault it is; or a board is called wrongly wired by the system that ran there before."""
    work, got = Work(stays_on=stays_on), []
    one, boot = loop(work, cycled=cycled, failed_step="of another try")
    one._self_test = lambda boot, wrong_key: got.append((wrong_key, boot.failed_step))
    one._on_answer(boot, answer, 1.0)
    assert work.over is False
    if judged is None:
        assert (got, work.did, boot.then) == ([], [("ask", "off")], one._on)
    else:
        assert (got, work.did) == ([judged], [])


@pytest.mark.parametrize("faults", [[], ["nfsd is down"]])
def test_others_on_the_network_are_asked_for_where_the_proxy_works(faults):
    """Lost: who stands in the proxy's place; or a search of the network for a fault that is the proxy's own."""
    asked, judged = [], []
    driver = SimpleNamespace(
        self_test=lambda board, system: faults if system.root == "nfs" else ["NFS was asked"],
        strangers=lambda board, seen: asked.append(seen) or ["a laptop"],
    )
    one, boot = loop(Work(driver=driver), strangers={(OTHER_DHCP, "10.0.0.9"): 1.0})
    one._judge = lambda boot, *given: judged.append(given)
    one._self_test(boot, KEY)
    assert asked == ([] if faults else [[(OTHER_DHCP, "10.0.0.9")]])
    assert judged == [(KEY, faults, [] if faults else ["a laptop"])]


def test_an_outlet_that_does_not_obey_says_so_and_what_was_wrong_before():
    """Lost: that its board had stalled, or that its outlet did not obey, for whoever looks after it."""
    error = HeteroError("still on 10 s after 'off'", "outlet 5 of pdu-a", "check its relay", screen="5: ON")
    for doomed, note in ((None, str(error)), ("stalled", f"stalled; {error}")):
        work = Work()
        one, boot = loop(work, stage=SWITCHING, doomed=doomed, kinds={TFTP: 1.0})
        one._on_refused("pdu-a", "5", error)
        assert work.did == [("power", str(error)), ("quarantine", note + boot_loop.blame.SLOW)]
        assert work.evidence == {"screen": "5: ON"}
    for more in ({"stage": BOOTING}, {"stage": DECIDING}):
        work = Work()
        loop(work, **more)[0]._on_refused("pdu-a", "5", error)
        assert work.did == []
    work = Work(over=True)
    loop(work, stage=SWITCHING)[0]._on_refused("pdu-a", "5", error)
    assert work.did == []


@pytest.mark.parametrize(
    ("stage", "doomed", "over", "done"),
    [
        (DECIDING, None, False, "fails"),
        (SWITCHING, None, False, "fails"),
        (LISTENING, None, False, "fails"),
        (SWITCHING, "stalled", False, "quarantine"),
        (BOOTING, None, False, None),
        (ASKED, None, False, None),
        (SWITCHING, "stalled", True, None),
        (DECIDING, None, True, None),
    ],
)
def test_a_pdu_that_is_away_is_the_proxys_fault_but_for_boards_found_guilty(stage, doomed, over, done):
    """Lost: sound boards out of use for their PDU; or one that stalled comes to the next tenant."""
    error = HeteroError("does not answer", "pdu-a", "look at it", screen="login:")
    work = Work(over=over)
    one, boot = loop(work, stage=stage, doomed=doomed)
    line = object()
    one.lines = {"pdu-a": line, "pdu-b": object()}
    one._on_down("pdu-a", object(), error)
    one._on_down("pdu-c", line, error)
    assert (work.did, len(one.lines)) == ([], 2), "of a line that was done with before"
    one._on_down("pdu-a", line, error)
    assert list(one.lines) == ["pdu-b"]
    if done == "fails":
        unread = f"it is not known whether its outlet was switched: {error}"
        note = [("→ booting", unread)] if stage == SWITCHING else []
        left = f"the board is left as it is: {error}"
        assert work.did == [*note, ("error", left), ("fails: proxy", str(error))]
        assert work.evidence == {"screen": "login:"}
    elif done:
        assert work.did == [("quarantine", f"stalled; its outlet was not switched off ({error})")]
    else:
        assert work.did == []


@pytest.mark.parametrize("how", [dict(stage=LOOKING), dict(stage=SWITCHING, doomed="stalled"), dict(stage=BOOTING)])
def test_a_pdu_that_is_away_is_away_for_each_of_its_boards(how):
    """Lost: the end of a verb that waits for a board whose PDU it has given up."""
    works = [Work(), Work()]
    one, boot = loop(works[0], **how)
    other = Boot(works[1])
    other.stage = DECIDING
    one.boots[1], one.lines, one._of = other, {"pdu-a": boot}, lambda pdu: [boot, other]
    one._on_down("pdu-a", boot, HeteroError("does not answer", "pdu-a", "look at it"))
    assert works[1].over


def test_of_a_board_that_was_cut_before_its_pdu_was_away_nobody_says_that_it_is_as_it_was():
    """Lost: the power of a tenant's board, who is told that nothing was done to it."""
    work = Work()
    one, boot = loop(work, stage=SWITCHING, cycled=True, outlet_now="off", way="on → off → on")
    one.lines = {"pdu-a": boot}
    one._on_down("pdu-a", boot, HeteroError("does not answer", "pdu-a", "look at it"))
    assert work.did[1][1].startswith("its outlet was switched off, and may not be on again: pdu-a: does not answer")
    assert work.over


def test_of_a_board_that_was_found_off_nobody_says_that_it_was_cut():
    """Lost: the trust of an operator, who looks for what was switched off."""
    work = Work()
    one, boot = loop(work, stage=SWITCHING, cycled=True, outlet_now="off")
    one.lines = {"pdu-a": boot}
    one._on_down("pdu-a", boot, HeteroError("does not answer", "pdu-a", "look at it"))
    assert work.did[1][1].startswith("the board is left as it is: pdu-a: does not answer")


@pytest.mark.parametrize(
    ("stage", "outlet", "over", "counts"),
    [
        (BOOTING, "on", False, True),
        (ASKED, "on", False, True),
        (SWITCHING, "off", False, True),
        # of an earlier boot
        (SWITCHING, "on", False, False),
        (DECIDING, "off", False, False),
        (BOOTING, "on", True, False),
    ],
)
def test_what_was_seen_counts_for_the_boot_that_it_is_of(stage, outlet, over, counts):
    """Lost: that a board asked for its files; or a boot is called served by what the one before asked for."""
    work = Work(over=over, driver=SimpleNamespace(files=lambda board: {}, from_flash=lambda board: False))
    one, boot = loop(work, stage=stage, outlet_now=outlet)
    one._on_seen(0, TFTP, "x", 7.0, "10.0.2.1:69")
    assert work.did == [("seen", (TFTP, "x", "10.0.2.1:69"))]
    assert boot.kinds == ({TFTP: 7.0} if counts else {})
