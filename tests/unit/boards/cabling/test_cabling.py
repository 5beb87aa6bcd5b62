# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which outlet feeds which board in truth: boards are played, PDUs are files, store and locks are real.

Tests boards/cabling/outlet_tests.py.
"""

from __future__ import annotations

import re
import threading
import time

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.cabling import cabling, outlet_tests
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.fake import Fake


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(outlet_tests, "SETTLE", 0.1)
    for module in (cabling, outlet_tests):
        monkeypatch.setattr(module, "PDU", 1.0)


def check(site, *ids, **options):
    with site.proxy() as proxy:
        return cabling.check(proxy, list(ids), cabling.Options(**dict({"timeout": 1}, **options)))


def verdicts(result):
    return [(one["board"], one["verdict"], one["found"]) for one in result["boards"]]


def switched(site, number):
    return [event.text for event in site.events(number, ["switch"])]


def test_all_right(site):
    """Lost: the trust in a wiring that is right."""
    result = check(site, 0, 1, 2, timeout=60)
    assert verdicts(result) == [(0, "right", [0]), (1, "right", [1]), (2, "right", [2])]
    assert (result["changed"], result["failed"], result["wiring"]) == (True, False, {})
    assert [site.record(number).power for number in range(3)] == ["off"] * 3
    assert [site.power(number) for number in range(3)] == ["off"] * 3
    assert site.record(0).state == "power off"
    assert result["lines"][-1] == "3 of 3 boards tested: all as the wiring says"
    texts = [event.text for event in site.events(0, ["cabling"])]
    assert texts[0] == "pdu-a outlet 5: on, read back; who asks to boot?"
    assert re.match(r"pdu-a outlet 5 feeds it: boot request after \d+\.\d", texts[1])


def test_a_dry_run_switches_nothing_and_says_what_would_be(site):
    """Lost: the trust in `changed`: a run that switched three outlets said that it had changed nothing."""
    result = check(site, 0, 1, check=True)
    assert (result["changed"], result["failed"]) == (True, False)
    assert [one["verdict"] for one in result["boards"]] == ["not tested yet"] * 2
    assert result["boards"][0]["text"] == "pdu-a outlet 5 would be switched on until a board asks to boot, then off"
    assert switched(site, 0) == []
    with site.proxy() as proxy:
        proxy.store.move(2, "maintenance", "fan")
    for dry in (True, False):  # nothing of it is tested
        assert check(site, 2, check=dry)["changed"] is False


def test_two_swapped_cables(site):
    """Lost: an afternoon behind the rack."""
    site.play(0, feeds=[2])
    site.play(2, feeds=[0])
    result = check(site, 0, 1, 2, timeout=60)
    assert verdicts(result) == [(0, "other", [2]), (1, "right", [1]), (2, "other", [0])]
    assert result["failed"] is True
    assert "board0: pdu-a outlet 5 feeds board2 (00:1a:ca:00:57:92), not this board: boot request" in result["msg"]
    assert (result["wiring"][0]["pdu"], result["wiring"][0]["outlet"]) == ("pdu-b", "7")
    assert (result["wiring"][2]["pdu"], result["wiring"][2]["outlet"]) == ("pdu-a", "5")
    assert result["lines"][-4:-2] == [
        "3 of 3 boards tested: 2 not as the wiring says",
        "Move the cables, or correct tftp_proxy_boards and run ansible-playbook hetero.compute.proxy:",
    ]
    assert result["lines"][-2].startswith('  0: {"pdu": "pdu-b", "outlet": "7", "driver": "fake"')
    for number, wiring in result["wiring"].items():
        site.config["boards"][str(number)].update(pdu=wiring["pdu"], outlet=wiring["outlet"])
    site.play(0)
    site.play(2)
    assert check(site, 0, 1, 2, timeout=60)["failed"] is False, "the corrected lines are the truth"


def test_a_board_that_nothing_feeds_is_named(site):
    """Lost: that only half of a swap is known."""
    site.play(0, feeds=[1])
    result = check(site, 0, timeout=60)
    assert verdicts(result) == [(0, "other", [1])]
    assert list(result["wiring"]) == [1]
    assert result["lines"][-1] == "  # 0: which outlet feeds board0 was not found"


def test_nothing_and_several(site):
    """Lost: a dead board, or a plug strip behind one outlet, found by the first user."""
    site.play(0, stall="tftp")
    site.play(1, feeds=[1, 3])
    result = check(site, 0, 1)
    assert verdicts(result) == [(0, "nothing", []), (1, "several", [1, 3])]
    assert "no boot request within 1 s" in result["boards"][0]["text"]
    assert "pdu-a outlet 6 feeds board1 and board3" in result["boards"][1]["text"].replace(
        "board3 and board1", "board1 and board3"
    )


def test_a_console_tells_where_no_request_comes(site):
    """Lost: boards with their kernel in flash, which ask nobody; or that one is on, to a check that was killed."""
    site.play(0, stall="tftp")

    def boots():
        soon = Deadline(20)
        while site.record(0).power != "on" and not soon.passed:
            soon.nap()
        (site.folder / "board0.log").write_text("Booting from flash\n")

    thread = threading.Thread(target=boots)
    thread.start()
    result = check(site, 0, timeout=15)
    thread.join()
    assert verdicts(result) == [(0, "right", [0])]
    assert result["boards"][0]["text"].endswith("no boot request, but its console's log grew")


def test_claimed_boards_are_not_touched(site):
    """Lost: a tenant's machine, for a test."""
    site.claim(0)
    site.run("start", 0)
    with site.proxy() as proxy:
        proxy.store.move(2, "maintenance", "fan")
    before = site.record(0), switched(site, 0)
    result = check(site, 0, 1, 2)
    assert verdicts(result) == [(0, "skipped", []), (1, "right", [1]), (2, "skipped", [])]
    assert result["failed"] is False
    assert "running vm0" in result["boards"][0]["text"]
    assert (site.record(0), switched(site, 0)) == before
    assert result["lines"][-1] == "1 of 3 boards tested: all as the wiring says"


def test_an_outlet_that_is_on_although_its_board_is_free(site):
    """Lost: whatever it feeds, cut without a question."""
    site.cut(0, "on")
    result = check(site, 0)
    assert (verdicts(result), site.power(0), switched(site, 0)) == ([(0, "on", [])], "on", [])


def test_a_claimed_board_that_comes_up_is_off_at_once(site):
    """Lost: a tenant's board, booted by a test for half a minute."""
    site.claim(1)
    site.play(0, feeds=[1])
    start = time.monotonic()
    result = check(site, 0, timeout=300)
    assert time.monotonic() - start < 60
    assert verdicts(result) == [(0, "unsure", [1])]
    assert "board1 (vm1)" in result["boards"][0]["text"]
    assert (site.power(0), result["failed"]) == ("off", False)
    assert verdicts(check(site, 1)) == [(1, "skipped", [])], "claimed, and about to be switched on by its own play"


def test_check_mode(site):
    """Lost: a dry run that switches."""
    site.cut(1, "on")
    result = check(site, 0, 1, check=True)
    assert verdicts(result) == [(0, "not tested yet", []), (1, "on", [])]
    assert (site.events(0, ["switch", "cabling"]), site.power(0)) == ([], "off")


def test_an_outlet_that_does_not_obey_and_a_pdu_that_is_away(site, monkeypatch):
    """Lost: the other boards' results, or minutes, where a PDU that is away is asked for each of its boards."""
    asked = []
    session = outlet_tests.session
    monkeypatch.setattr(outlet_tests, "session", lambda name, *more: asked.append(name) or session(name, *more))
    site.pdu("pdu-a", refused=["5"])
    site.pdu("pdu-b", hang=True)
    result = check(site, 0, 1, 2, 3)
    assert [one["verdict"] for one in result["boards"]] == ["failed", "right", "failed", "failed"]
    assert "outlet 5 of pdu-a: still off" in result["msg"]
    assert asked.count("pdu-b") == 1


def test_an_outlet_that_stays_on_keeps_its_board_out_of_use(site, monkeypatch):
    """Lost: a free board by the record, whose outlet nobody can switch off."""
    once = Fake.switched

    def sticks(self, board, state):
        once(self, board, state)
        if state == "on":
            site.pdu("pdu-a", refused=["5"])

    monkeypatch.setattr(Fake, "switched", sticks)
    result = check(site, 0)
    assert [one["verdict"] for one in result["boards"]] == ["failed"]
    assert (site.record(0).state, site.power(0)) == ("error", "on")
    assert "left on by the cabling check" in site.record(0).note


def test_a_check_that_was_killed_is_taken_up(site):
    """Lost: the second run, which would take its own outlet for somebody's."""
    site.cut(0, "on")
    with site.proxy() as proxy:
        proxy.store.event(0, "switch", outlet_tests.OURS.format(outlet="pdu-a outlet 5"))
    assert verdicts(check(site, 0)) == [(0, "right", [0])]
    assert site.power(0) == "off"
    site.cut(0, "on")
    assert verdicts(check(site, 0)) == [(0, "on", [])], "that one was not ours"


def test_bad_arguments(site):
    for ids, options in (((0, 0), {}), ((77,), {}), ((0,), {"timeout": 0})):
        with pytest.raises(BadInput):
            check(site, *ids, **options)
