# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards that do not come up, whose tenants may be at work there: their outlets are read before they are left.

If these fail, a power cut at a board is said to be a silent board that stays on, and its user is sent to its console.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import left_on
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import presence
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.suspect_boards import is_suspect
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.fake import Fake
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.fake import Fake as Pdu


@pytest.fixture
def rebooted(site, monkeypatch):
    """vm0 has run on board 0, and does not come up from its root any more. Returns what runs its reboot.

    What `outlet` is called with it does while the proxy's self-test runs, at the end of each boot.
    """
    site.claim(0)
    site.run("start", 0)
    monkeypatch.setattr(presence, "QUIET", 0.3)

    def reboot(outlet, stalls=9, **options):
        tested = []
        site.play(0, stall="running", stalls=stalls)

        def test(self, board, system):
            tested.append(board.name)
            outlet(len(tested))
            return []

        monkeypatch.setattr(Fake, "self_test", test)
        return site.run("reboot", 0, how="hard", timeout=1, **options)

    return reboot


def said(site, phase="error"):
    return [event.text for event in site.events(0, [phase])]


def switched(site):
    return [text for text in said(site, "power") if text.endswith("read back")]


def test_one_whose_power_was_cut_while_it_booted_boots_again(site, rebooted):
    """Lost: a boot, and half an hour, to a plug that was pulled and put in again."""

    def cut(times):
        if times == 1:
            site.cut(0)

    result = rebooted(cut, stalls=2)
    assert (result["failed"], site.record(0).state, site.power(0)) == (False, "running", "on")
    (error,) = said(site)
    assert error.endswith("pdu-a outlet 5 is off, and no verb of its proxy node has switched it off; trying again")
    assert switched(site)[1:] == [
        "pdu-a outlet 5: on → off → on, read back",
        "pdu-a outlet 5: off → on, read back",
    ]


def test_one_whose_power_was_cut_is_known_as_off_until_it_is_on_again(site, rebooted, monkeypatch):
    """Lost: the truth of its outlet, for who looks at the board meanwhile, or where the reboot is killed then."""
    switch, known = Pdu.switch, []

    def noted(pdu, outlets, state):
        known.append((site.record(0).power, state))
        return switch(pdu, outlets, state)

    def cut(times):
        if times == 1:
            site.cut(0)
            monkeypatch.setattr(Pdu, "switch", noted)

    assert not rebooted(cut, stalls=2)["failed"]
    assert known == [("off", "on")]


def test_one_that_is_cut_at_each_boot_is_not_switched_on_for_ever(site, rebooted):
    """Lost: a board to whose fuse blows, or whom somebody works at, and a verb that never ends."""
    result = rebooted(lambda times: site.cut(0), retries=1)
    assert (result["failed"], site.record(0).state, site.power(0)) == (True, "error", "off")
    assert "is off, and no verb of its proxy node has switched it off, at 2 boots: see who switches it" in result["msg"]
    assert "stays on" not in result["msg"]
    assert not is_suspect(site.record(0)), "with a BMC its tenant's root can do that, to board after board"
    assert len(switched(site)) == 3
    with site.proxy() as proxy:
        assert proxy.store.record(0).claim.instance == "vm0"
    # as the guide says
    site.play(0)
    assert not site.run("stop", 0, instance="vm0", keep=True)["failed"]
    assert (site.run("start", 0)["failed"], site.record(0).state, site.power(0)) == (False, "running", "on")


def test_one_that_lives_though_its_outlet_is_off_is_not_switched(site, rebooted, monkeypatch):
    """Lost: another tenant's board, which that outlet feeds."""

    def cut(times):
        site.cut(0)
        monkeypatch.setattr(Fake, "alive", lambda self, board, limit: True)

    result = rebooted(cut)
    assert (result["failed"], site.power(0), len(switched(site))) == (True, "off", 2)
    assert "off by pdu-a's read-back, but something answers at 10.0.2.1" in result["msg"]


def test_one_of_which_its_pdu_says_once_that_it_is_off_keeps_its_power(site, rebooted, monkeypatch):
    """Lost: a tenant's work behind a network that is cut, to a PDU's wrong word: it asks for nothing, as it did not
    boot anew.
    """
    status, lies = Pdu.status, []

    def lie(self):
        read = status(self)
        lies.append(read["5"])
        return dict(read, **{"5": "off"}) if len(lies) == 1 else read

    def begin(times):
        if times == 1:
            monkeypatch.setattr(Pdu, "status", lie)
            monkeypatch.setattr(Fake, "switched", lambda self, board, state: None)
            monkeypatch.setattr(Fake, "has_root", lambda self, board: False)

    result = rebooted(begin)
    assert lies[0] == "on"
    assert (result["failed"], site.record(0).state, site.power(0)) == (True, "error", "on")
    assert "its outlet stays on" in result["msg"]


def test_one_whose_outlet_is_on_is_left_on(site, rebooted):
    """Lost: a tenant's work, which no network shows."""
    result = rebooted(lambda times: None)
    assert (result["failed"], site.record(0).state, site.power(0), len(switched(site))) == (True, "error", "on", 2)
    assert left_on.MAY_WORK in result["msg"]


@pytest.mark.parametrize("comes_up", [True, False, None])
def test_one_that_comes_up_while_its_pdu_is_waited_for_runs(site, rebooted, monkeypatch, comes_up):
    """Lost: an instance that runs, put into state error until somebody reconciles; or a tenant's work."""
    monkeypatch.setattr(left_on, "FRESH", 0.0)
    status = Pdu.status

    def failing(work):
        raise HeteroError("tile-monitor does not connect", work.board.name)

    def late(self):
        if comes_up is None:
            monkeypatch.setattr(presence, "shown", failing)
        elif comes_up:
            monkeypatch.setattr(Fake, "alive", lambda self, board, limit: True)
            monkeypatch.setattr(Fake, "answers", lambda self, *given: True)
        return status(self)

    result = rebooted(lambda times: monkeypatch.setattr(Pdu, "status", late))
    expected = (False, "running") if comes_up else (True, "error")
    assert (result["failed"], site.record(0).state) == expected
    assert (site.power(0), len(switched(site))) == ("on", 2)


@pytest.mark.parametrize("how", ["lost", "neither on nor off"])
def test_one_that_comes_up_while_its_pdu_does_not_answer_runs(site, rebooted, monkeypatch, how):
    """Lost: an instance that runs, put into state error as its PDU, which was waited for, hangs."""
    monkeypatch.setattr(left_on, "FRESH", 0.0)
    status = Pdu.status

    def unread(self):
        monkeypatch.setattr(Fake, "alive", lambda self, board, limit: True)
        monkeypatch.setattr(Fake, "answers", lambda self, *given: True)
        if how == "lost":
            raise HeteroError("hangs up", self.name, "look at it")
        return dict(status(self), **{"5": "pending"})

    result = rebooted(lambda times: monkeypatch.setattr(Pdu, "status", unread))
    assert (result["failed"], site.record(0).state, site.power(0)) == (False, "running", "on")


@pytest.mark.parametrize("how", ["lost", "neither on nor off"])
def test_one_whose_outlet_cannot_be_read_is_left_as_one_that_is_on(site, rebooted, monkeypatch, how):
    """Lost: why its boot failed, in a PDU's error; or that nothing is known of its outlet."""
    status = Pdu.status

    def unread(self):
        if how == "lost":
            raise HeteroError("hangs up", self.name, "look at it")
        return dict(status(self), **{"5": "pending"})

    result = rebooted(lambda times: monkeypatch.setattr(Pdu, "status", unread))
    assert (result["failed"], site.record(0).state, site.power(0)) == (True, "error", "on")
    assert "stalled at running" in result["msg"]
    assert "whether its outlet is on is not known" in result["msg"]
    assert site.record(0).note.endswith(left_on.MAY_WORK)
