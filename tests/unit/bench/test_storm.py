# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulation of many boards, where the answer can be computed by hand. If these fail, an operator buys links and
proxy nodes by a table that is wrong.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from ansible_collections.hetero.compute.bench.simulated_boots import (
    LIMITS,
    Board,
    Pdu,
    Proxy,
    Site,
    limit,
    proxies,
    running,
)
from ansible_collections.hetero.compute.bench.storm import lab_boards, main
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import boot_places
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot.silent_boots import EARLY
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.inrush import SECOND
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.boards_file import parse

BOARD = Board()
BYTES = BOARD.kernel + BOARD.root
#: What costs nothing, and limits nothing.
FREE_PDU = Pdu(login=0.0, order=0.0)
FREE_PROXY = Proxy(link=None, at_once=None, root=0.0, many=0.0, own=0.0, serving=0.0)


def last(boards, board=BOARD, pdu=FREE_PDU, **proxy):
    """Seconds until all run where nothing limits them but what is given."""
    return running(boards, Site(board, pdu, replace(FREE_PROXY, **proxy)))[-1]


@pytest.mark.parametrize("boards", [1, 7, 1000])
def test_where_nothing_limits_them_all_take_a_boards_own_boot(boards):
    assert BOARD.alone == pytest.approx(5.3, abs=0.02), "what README says that it took"
    assert last(boards) == pytest.approx(BOARD.alone)
    assert limit(boards, Site(BOARD, FREE_PDU, FREE_PROXY)) == "boot"


def test_one_board_waits_for_its_root_its_pdu_and_the_loop():
    proxy, pdu = Proxy(), Pdu()
    told = running(1, Site())
    # the loop's second piece of work, once its root is mounted, holds nothing up
    waited = proxy.root + proxy.own / 3 + pdu.login + pdu.order + proxy.own / 3
    assert told == pytest.approx((waited + BOARD.alone,))


@pytest.mark.parametrize("boards", [2, 100])
def test_a_slow_link_takes_as_long_as_all_their_bytes(boards):
    link = 10  # Mbit/s
    assert last(boards, link=link) == pytest.approx(BOARD.firmware + boards * BYTES / (link * 1e6 / 8))
    assert limit(boards, Site(BOARD, FREE_PDU, replace(FREE_PROXY, link=link))) == "link"


def test_a_slow_link_gives_all_the_same():
    """Of the same boards none is first."""
    told = running(50, Site(BOARD, FREE_PDU, replace(FREE_PROXY, link=10)))
    assert told[0] == pytest.approx(told[-1])


@pytest.mark.parametrize(("boards", "outlets", "inrush"), [(24, 24, 1), (24, 24, 5), (48, 24, 1), (9, 8, 4)])
def test_the_outlets_of_each_pdu_keep_its_pace(boards, outlets, inrush):
    pdu = Pdu(outlets=outlets, inrush=inrush)
    # the first one is asked for alone, and the others while that goes on
    portions = -(-(min(boards, outlets) - 1) // inrush)
    waits = pdu.login + pdu.order + max(pdu.order, pdu.pace) + (portions - 1) * pdu.pace
    assert pdu.pace > SECOND
    assert last(boards, pdu=pdu) == pytest.approx(waits + BOARD.alone)
    assert limit(boards, Site(BOARD, pdu, FREE_PROXY)) == "PDU"


def test_boards_of_one_place_boot_one_after_the_other():
    """The next one has its place once the one before has mounted its root."""
    loads = BOARD.firmware + BOARD.kernel / boot_places.RATE
    assert last(10, at_once=1) == pytest.approx(10 * loads + BOARD.root / boot_places.RATE)
    assert limit(10, Site(BOARD, FREE_PDU, replace(FREE_PROXY, at_once=1))) == "boots_at_once"


def test_firmware_that_asks_late_gives_its_place_to_others():
    """As the loop does: after EARLY seconds without a request."""
    slow = Board(firmware=3 * EARLY)
    assert last(4, board=slow, at_once=1) == pytest.approx(3 * EARLY + slow.alone, rel=0.01)


@pytest.mark.parametrize("costs", [dict(many=1.0), dict(own=1.0), dict(serving=3.0)])
def test_a_slow_proxy_takes_as_long_as_all_its_work(costs):
    """Roots; the loop; files, by the processors that the loop leaves, of four."""
    boards = Proxy.MANY
    assert last(boards, **costs) == pytest.approx(boards, rel=0.03)
    assert limit(boards, Site(BOARD, FREE_PDU, replace(FREE_PROXY, **costs))) == "proxy"


def test_the_places_are_those_of_the_product(tmp_path, monkeypatch):
    """By the link, as boots_at_once is where no number is given."""
    for speed in (10, 1000, 10_000, 25_000):
        (tmp_path / "speed").write_text(f"{speed}\n")
        monkeypatch.setattr(boot_places, "SPEED", str(tmp_path / "speed"))
        assert Proxy(link=speed).places == boot_places.usual("eth0")


@pytest.mark.parametrize("link", [1_000, 10_000])
def test_more_boards_never_run_sooner(link):
    site = Site(proxy=Proxy(link=link))
    ends = [running(boards, site)[-1] for boards in (1, 2, 5, 10, 50, 100, 200, 500, 1000, 2000)]
    assert all(few <= many for few, many in zip(ends, ends[1:])), ends


@pytest.mark.parametrize("boards", [1, 30, 700])
def test_more_of_anything_is_never_slower(boards):
    """By more than one order of a PDU: who comes a moment later may go with the next."""
    site, late = Site(pdu=Pdu(inrush=2)), Pdu.login + Pdu.order
    for worse, better in (
        (Site(proxy=Proxy(link=1000, at_once=12)), Site(proxy=Proxy(link=10_000, at_once=12))),
        (Site(proxy=Proxy(at_once=4)), Site(proxy=Proxy(at_once=12))),
        (site, replace(site, pdu=Pdu(inrush=4))),
        (site, site.without("PDU")),
        (Site(proxy=Proxy(processors=2)), Site(proxy=Proxy(processors=8))),
        *((site, site.without(which)) for which in LIMITS),
    ):
        assert running(boards, better)[-1] <= running(boards, worse)[-1] + late, (worse, better)


def test_as_many_proxies_as_it_takes_and_no_more():
    site = Site()
    enough = proxies(1000, site, 300.0)
    assert enough > 1
    assert running(-(-1000 // enough), site)[-1] <= 300.0 < running(-(-1000 // (enough - 1)), site)[-1]
    assert proxies(10, site, 300.0) == proxies(1, site, 300.0) == 1
    assert proxies(10, site, 1.0) is None, "no number of them boots a board faster than it boots"


def test_a_lab_of_any_number_of_boards():
    """Its boards file is read as any other."""
    assert [board.ip for board in parse(lab_boards(16))] == [f"10.0.2.{number}" for number in range(1, 17)]


@pytest.mark.parametrize(
    "words",
    ["--boards -3", "--boards 0", "--boards x", "--lab-boards -1", "--boards 1 --link 0", "--boards 1 --minutes nan"]
    + ["--boards 1 --processors 0", "--boards 1 --inrush 0", "--boards 1 --firmware inf", "--boards 1 --order -1"],
)
def test_numbers_that_no_site_has_are_refused_by_their_option(words, capsys):
    """Lost: an operator's time, with a traceback of the simulation's or the table of other sites."""
    with pytest.raises(SystemExit):
        main(words.split())
    assert f"argument {words.split()[-2]}: " in capsys.readouterr().err


def test_a_site_of_ones_own(capsys):
    main(["--boards", "10", "--at-once", "0", "--order", "0.5", "--link", "100"])
    assert capsys.readouterr().out.splitlines()[1].split()[:4] == ["0.1", "Gbit/s", "10", "4"]
