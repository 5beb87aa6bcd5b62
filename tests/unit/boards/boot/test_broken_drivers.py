# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boot drivers of a site's own that break off in the middle of verbs. Board 0 has one, board 2 another driver."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import broken_drivers
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import presence
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.verbs import reconciliation
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot import own_drivers, registry
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import registry as power_registry

#: A played board, with a mistake where it says so.
DRIVER = """\
from .fake import Fake


class Own(Fake):
{methods}
"""
METHOD = """\
    def {name}(self, *given, **named):
        {does}
"""
#: What breaks off, and whether its board runs all the same, for what it did there was only looking.
METHODS = {
    "alive": False,
    "answers": False,
    "entry": False,
    "entry_paths": False,  # which the entry itself asks
    "files": True,
    "from_flash": False,
    "known_hosts": True,
    "request_limit": True,
    "switched": False,
    "watch": False,
}


@pytest.fixture
def own(site, tmp_path, monkeypatch):
    """own(method=what it does): the driver of board 0 from now on. A board that does not prove its key is soon told."""
    for seconds in ("QUIET", "LONGEST"):
        monkeypatch.setattr(presence, seconds, 0.5)
    folder = tmp_path / "boot_drivers"
    folder.mkdir(mode=0o755)
    monkeypatch.setattr(registry, "OWN_FOLDER", str(folder))

    def write(**methods):
        lines = [METHOD.format(name=name, does=does) for name, does in methods.items()] or ["    pass\n"]
        (folder / "own.py").write_text(DRIVER.format(methods="\n".join(lines)))
        return folder / "own.py"

    site.config["boards"]["0"]["driver"] = "own"
    site.write()
    write()
    return write


def of(result, number):
    return next(board for board in result["boards"] if board["board"] == number)


def texts(result):
    return "\n".join([str(line["text"]) for line in result["lines"]] + [str(result.get("msg"))])


@pytest.mark.parametrize("method", list(METHODS))
def test_a_mistake_in_a_boot_is_its_boards_alone(site, own, method):
    """Lost: the boots of all other boards of a call, half done, to a KeyError in one board's driver."""
    site.claim(0, 2)
    path = own(**{method: "return {}['card']"})
    result = site.run("start", 0, 2, timeout=10, retries=0)
    assert (of(result, 2)["state"], of(result, 2)["failed"]) == ("running", False)
    assert of(result, 0)["failed"] is not METHODS[method], of(result, 0)
    assert f"own broke off (KeyError: 'card'): correct {path}" in texts(result) or method == "known_hosts"
    assert of(result, 0)["blame"] in (None, "proxy"), "no board, and no image, is at fault"
    assert site.record(0).state in ("booting", "running", "power off")
    own()
    again = site.run("start", 0, 2)
    assert [board["state"] for board in again["boards"]] == ["running"] * 2, "once the file is corrected, it goes on"


@pytest.mark.parametrize("method", ["entry", "switched", "watch"])
def test_one_that_never_returns_is_its_boards_alone(site, own, monkeypatch, method):
    """Lost: the boots of all other boards of a call, and whoever waits for these boards, to a socket that hangs."""
    for name in ("LOOK", "ACT"):
        monkeypatch.setattr(own_drivers, name, 0.5)
    site.claim(0, 2)
    path = own(**{method: "__import__('threading').Event().wait(600)"})
    result = site.run("start", 0, 2, timeout=10, retries=0)
    assert (of(result, 2)["state"], of(result, 2)["failed"]) == ("running", False)
    assert of(result, 0)["failed"]
    said = rf"own broke off \(NeverReturned: \w+ did not return within 0\.5 s\): correct {path}"
    assert re.search(said, texts(result))
    assert of(result, 0)["blame"] in (None, "proxy"), "no board, and no image, is at fault"
    own()
    again = site.run("start", 0, 2)
    assert [board["state"] for board in again["boards"]] == ["running"] * 2, "once the file is corrected, it goes on"


@pytest.mark.parametrize("verb", ["reboot", "stop"])
@pytest.mark.parametrize("method", ["alive", "answers", "files", "has_root", "entry_paths", "switched", "boots_anew"])
def test_a_mistake_cuts_nobody_for_good(site, own, verb, method):
    """Lost: a tenant's work on a board, to a mistake in its driver; or the verb on all other boards."""
    site.claim(0, 2)
    site.run("start", 0, 2)
    own(**{method: "raise ZeroDivisionError('card')"})
    result = site.run(verb, 0, 2, timeout=10)
    assert not of(result, 2)["failed"], result
    assert site.power(2) == ("off" if verb == "stop" else "on")
    if verb == "reboot" or (of(result, 0)["failed"] and method != "switched"):
        assert site.power(0) == "on"
    assert site.record(0).state != "error"


@pytest.mark.parametrize("text", ["def (", DRIVER.format(methods=METHOD.format(name="alive", does="int('x')"))])
def test_a_driver_that_cannot_be_used_leaves_reconcile_the_other_boards(site, own, text):
    """Lost: reconcile of a whole node, to one file; or the power and the record of a board that it cannot look at."""
    site.claim(0, 2)
    site.run("start", 0, 2)
    own().write_text(text)
    site.cut(2)
    with site.proxy() as proxy:
        result = reconciliation.reconcile(proxy, None, Change(), 10)
    assert site.power(0) == "on"
    assert site.record(0).state == "running"
    said = [found["found"] for found in of(result, 0)["found"]]
    assert len(said) == 1
    assert said[0].startswith("left as it is: "), said
    assert "own.py" in said[0]
    assert of(result, 2)["found"], "what is told of the others"
    assert "own" not in str(of(result, 2)["found"])


def test_a_driver_that_cannot_be_used_frees_no_board(site, own):
    """Lost: a board that is on for somebody of whom a lost record told."""
    site.cut(0, "on")
    own().write_text("raise SystemExit(3)")
    with site.proxy() as proxy:
        result = reconciliation.reconcile(proxy, None, Change(), 10)
    assert site.power(0) == "on"
    assert "left as it is: " in of(result, 0)["found"][0]["found"]


def test_a_power_driver_that_cannot_be_loaded_leaves_reconcile_the_other_pdus(site, tmp_path, monkeypatch):
    """Lost: the same, to the file of one PDU."""
    folder = tmp_path / "power_drivers"
    folder.mkdir(mode=0o755)
    (folder / "own_pdu.py").write_text("raise SystemExit(3)")
    monkeypatch.setattr(power_registry, "OWN_FOLDER", str(folder))
    site.claim(0, 2)
    site.run("start", 0, 2)
    site.config["pdus"]["pdu-b"]["driver"] = "own_pdu"
    site.write()
    with site.proxy() as proxy:
        result = reconciliation.reconcile(proxy, None, Change(), 10)
    assert (of(result, 0)["power"], of(result, 2)["power"]) == ("on", None)
    assert f"{folder}/own_pdu.py: cannot be imported: line 1: SystemExit: 3" in str(of(result, 2)["found"])
    assert site.power(2) == "on"


class Mistaken(own_drivers.OfSite):
    """A driver of a site's own that made a mistake on board 0."""

    def fault(self, board):
        return HeteroError("line 3: KeyError: 'ip'", "own.py", "correct it") if board == 0 else None


class Told:
    """A board's work, as far as a driver's mistake is told in it."""

    def __init__(self, board=0, driver=None, **more):
        self.board, self.driver, self.said = board, driver or Mistaken(), []
        self.over, self.failed, self.change = False, False, SimpleNamespace(check=False)
        vars(self).update(more)

    def say(self, phase, text):
        self.said.append(("event", phase, text))

    def line(self, phase, text):
        self.said.append(("line", phase, text))

    def fail(self, blame, error):
        self.said.append(("failed", blame, error.what))


MISTAKE = "line 3: KeyError: 'ip'"


def test_the_work_on_a_board_ends_at_its_drivers_mistake_and_not_twice():
    """Lost: whose fault it was; or the reason for which the work was over before that."""
    first, over, other, built_in = Told(), Told(over=True), Told(board=1), Told(driver=object())
    assert [broken_drivers.is_broken(work) for work in (first, over, other, built_in)] == [True, True, False, False]
    left = ("event", "error", f"the board is left as it is: own.py: {MISTAKE}: correct it")
    assert first.said == [left, ("failed", "proxy", MISTAKE)]
    assert over.said == other.said == built_in.said == []


def test_a_mistake_is_told_of_a_board_on_which_all_went_well():
    """Lost: that a site's driver has a mistake, until the boot that it spoils; or why a boot failed, below it."""
    well = Told()
    broken_drivers.tell(well)
    assert well.said == [("line", "error", f"own.py: {MISTAKE}: correct it")]
    for work in (Told(failed=True), Told(change=SimpleNamespace(check=True)), Told(board=1)):
        broken_drivers.tell(work)
        assert work.said == []
