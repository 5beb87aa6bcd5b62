# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A board in `maintenance: nova`, which Nova drives by /tftpboot/pdu_mgr beside ours. If these fail, a verb of ours
cuts, boots, wipes or gives away a board on which somebody works whom only Nova knows.
"""

from __future__ import annotations

import shutil

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import kernels, pdu_mgr
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.restore import restore
from ansible_collections.hetero.compute.tests.unit.sweep.proxy_site import FLAVOR, KEY

#: What Essex says behind a call, which no shell sees.
ESSEX = (">>", "pdu_output")
NOVAS = 0


def pdu_mgr_of_nova(site, mode, *words):
    """A call of Nova's driver: PDU, outlet, mode. What the command ends with."""
    return pdu_mgr.main(["--config", site.params["config"], "pdu-a", str(NOVAS + 1), mode, *words])


def led(site):
    """A turn of `hetero kernels`; what it says."""
    said = []
    with site.proxy() as proxy:
        assert kernels.kernels(proxy, said.append), said
    return said


@pytest.fixture
def novas(site):
    """Nova has switched on board 0, which is in maintenance, with kernel and root of Nova's own. Board 1 is free."""
    site.tftp.mkdir(exist_ok=True)
    shutil.copy(site.params["boards_file"], site.tftp / "tilera_boards")
    (site.tftp / f"fs_{NOVAS}").mkdir()
    (site.tftp / f"fs_{NOVAS}" / "work").write_text("of Nova's tenant")
    (site.tftp / f"vmlinux_{NOVAS}").write_text("Nova's kernel")
    (site.tftp / f"vmlinux_{NOVAS}").chmod(0o644)
    assert site.module("board_maintenance", boards=[NOVAS], state="on", reason="nova")["changed"]
    assert led(site) == [f"board{NOVAS} gets {site.tftp}/vmlinux_{NOVAS}, put there by hand from now on"]
    assert pdu_mgr_of_nova(site, "1", *ESSEX) == 0
    return site


def as_nova_has_it(site):
    """What must be the same after whatever we do."""
    record = site.record(NOVAS)
    outlets = [event.text for event in site.events(NOVAS, "switch")]
    return dict(
        claim=record.claim,
        state=(record.state, record.note),
        power=site.outlets()[str(NOVAS + 1)],
        switched=outlets,
        work=(site.tftp / f"fs_{NOVAS}" / "work").read_text(),
        kernel=(site.tftp / f"vmlinux_{NOVAS}").read_text(),
        gets=sorted(path.name for path in (site.tftp / f"10.0.2.{NOVAS + 1}").iterdir()),
        console=[path.name for path in site.tftp.glob("log_*")],
    )


def of_modules(name, **given):
    return lambda site: [site.module(name, **given)]


def turn_of_the_reaper(site):
    """With a lease on the other board that is over."""
    assert not any(result.get("failed") for result in site.provision())
    site.expire()
    result = site.turn()
    assert site.what_is_there()["claims"] == {}
    return [result]


def start_of_the_node(site):
    with site.proxy() as proxy:
        restore(proxy, [].append)
    return []


def a_move(site):
    """To it by name, and to whichever is free: none is."""
    assert not any(result.get("failed") for result in site.provision())
    return [*site.migrate(board=NOVAS), *site.migrate()]


BOARD = dict(boards=[NOVAS])
NOBODYS = dict(BOARD, instance="")
ASKED = dict(instance="eve", owner="eve", flavor=FLAVOR, image="debian", ssh_public_key=KEY)
#: What each is called here: (what is done, words of each result that fails).
OURS = {
    "a claim of it": (of_modules("board_claim", board=NOVAS, **ASKED), "maintenance: nova"),
    "a request": (lambda site: site.provision(), None),
    "a check of it": (of_modules("board_check", **BOARD), "maintenance (nova)"),
    "a check of all": (of_modules("board_check", boards=[]), None),
    "a test of its cable": (of_modules("board_cabling", timeout=1, **BOARD), None),
    "a test of all cables": (of_modules("board_cabling", timeout=1, boards=[]), None),
    "an outlet that is learned": (of_modules("board_cabling", timeout=1, learn=["pdu-a:1"]), None),
    "a move to it": (a_move, "maintenance: nova"),
    "a start": (of_modules("tilera_boot", timeout=1, **NOBODYS), "is in maintenance: nova"),
    "a reboot": (of_modules("tilera_boot", timeout=1, state="rebooted", **NOBODYS), "is in maintenance: nova"),
    "a stop": (of_modules("tilera_boot", timeout=1, state="stopped", **NOBODYS), "is in maintenance: nova"),
    "a repair's look": (of_modules("board_claim", board=NOVAS, state="absent"), "maintenance"),
    "what follows in a repair": (of_modules("board_image", state="absent", **NOBODYS), None),
    "a look of reconcile": (of_modules("board_reconcile", timeout=5), None),
    "the end of leases": (turn_of_the_reaper, None),
    "the node's start": (start_of_the_node, None),
    "an end of maintenance": (of_modules("board_maintenance", state="off", **BOARD), "its outlet is on"),
    "kernels by hand": (lambda site: led(site) and [], None),
}


@pytest.mark.parametrize("what", OURS)
def test_nothing_of_ours_touches_it(novas, what):
    """Lost: the work of Nova's tenant, or the board under them."""
    before = as_nova_has_it(novas)
    done, words = OURS[what]
    results = done(novas)
    assert as_nova_has_it(novas) == before
    failed = [result["msg"] for result in results if result.get("failed")]
    assert bool(failed) is (words is not None), results
    assert all(words in text for text in failed), failed


def test_nova_goes_on_switching_it(novas):
    """Lost: the end of each instance of Nova's, and its next one, while ours are at work beside it."""
    assert not any(result.get("failed") for result in novas.provision())
    led(novas)
    for mode, state in (("9", "on"), ("2", "off"), ("9", "off"), ("1", "on"), ("3", "on")):
        assert pdu_mgr_of_nova(novas, mode, *ESSEX) == (pdu_mgr.OFF if (mode, state) == ("9", "off") else 0)
        assert novas.outlets()[str(NOVAS + 1)] == state
    assert novas.what_is_there()["claims"] == {"jackie": 1}


def test_status_says_whose_it_is(novas):
    """Lost: whom to ask for the board."""
    board = novas.module("board_info")["boards"][NOVAS]
    assert (board["state"], board["note"]) == ("maintenance", "nova")
    (found,) = novas.module("board_reconcile", timeout=5)["boards"][NOVAS]["found"]
    kept = "kept out of use (maintenance: nova), its outlet is on: once it is known that nobody is at work there, "
    assert (found["found"].startswith(kept), found["done"]) == (True, None)


def test_it_is_ours_again_once_nova_has_left_it(novas):
    """Lost: the board; or Nova's files, to who gives it back."""
    assert pdu_mgr_of_nova(novas, "2", *ESSEX) == 0
    assert novas.module("board_maintenance", state="off", **BOARD)["changed"]
    (claimed, *others) = novas.provision()
    assert claimed["boards"][0]["board"] == NOVAS
    assert not any(result.get("failed") for result in others), others
    for mode in "123":
        with pytest.raises(Refused, match="feeds board0, which jackie of jackie has"):
            pdu_mgr_of_nova(novas, mode, *ESSEX)
    assert novas.outlets()[str(NOVAS + 1)] == "on"
    assert (novas.tftp / f"fs_{NOVAS}" / "work").read_text() == "of Nova's tenant"
    assert (novas.tftp / f"vmlinux_{NOVAS}").read_text() == "Nova's kernel"


def test_one_that_nova_has_switched_on_without_a_word_to_us_is_not_cut(site):
    """Lost: the work of Nova's tenant, where nobody has taken the board out of use."""
    site.tftp.mkdir(exist_ok=True)
    shutil.copy(site.params["boards_file"], site.tftp / "tilera_boards")
    assert pdu_mgr_of_nova(site, "1", *ESSEX) == 0
    results = site.provision()
    assert [event.text for event in site.events(NOVAS, "switch")] == [], results
    assert site.outlets()[str(NOVAS + 1)] == "on"
