# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a root tells of who may be at work. If these fail, a board is cut under its tenant by who asks for it again.

Tests boards/boot/power_marks.py.
"""

from __future__ import annotations

import json
import os
import time
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import power_marks, used_root
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import ProxyConfig

PROXY = SimpleNamespace(config=ProxyConfig())
WORK = SimpleNamespace(proxy=PROXY, board=SimpleNamespace(name="board0"), from_its_disk=False, began="booting")


@pytest.fixture
def folder(tmp_path):
    """A root as it was made, and when that was over."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "hostname").write_text("jackie")
    os.symlink("/nowhere", tmp_path / "link")
    time.sleep(0.02)  # a file system's clock goes by the kernel's tick
    began = time.time()
    time.sleep(0.02)
    return tmp_path, began


def test_a_root_that_nothing_was_written_into_was_not_used(folder):
    root, began = folder
    assert used_root.changed_since(root, began) is False
    assert used_root.changed_since(root, began - 3600) is True


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "etc" / "machine-id").write_text(""),
        lambda root: (root / "etc" / "hostname").write_text("other"),
        lambda root: (root / "etc" / "hostname").unlink(),
        lambda root: (root / "etc" / "hostname").chmod(0o600),
        lambda root: (root / "new").mkdir(),
        lambda root: (root / "link").unlink(),
    ],
    ids=["made", "written", "removed", "another mode", "a folder", "a link"],
)
def test_whatever_is_changed_in_it_is_seen(folder, change):
    """Lost: what a tenant did, which is nothing to who only looks for new files."""
    root, began = folder
    change(root)
    assert used_root.changed_since(root, began) is True


@pytest.fixture
def marked(tmp_path, monkeypatch):
    """The mark of a boot that began just now, of WORK, whose root is `root`."""
    root = SimpleNamespace(path=str(tmp_path / "root"), is_mounted=True)
    monkeypatch.setattr(used_root, "Place", lambda proxy, board: SimpleNamespace(root=root))
    monkeypatch.setattr(WORK.proxy, "config", ProxyConfig(run_folder=str(tmp_path / "run")))
    power_marks.begins(WORK.proxy, WORK.board)()
    return tmp_path / "run" / power_marks.FOLDER / "board0.json"


@pytest.mark.parametrize(
    ("mounted", "when", "disk", "used"),
    [
        (True, "now", False, False),
        (True, 1e12, False, True),
        (True, 0.0, False, True),
        (True, None, False, True),
        (False, "now", False, True),
        (True, "now", True, True),
        (HeteroError("not mounted"), "now", False, True),
        (OSError(5, "I/O"), "now", False, True),
    ],
)
def test_where_nobody_can_tell_it_may_have_been(monkeypatch, tmp_path, marked, mounted, when, disk, used):
    """Lost: the power of a board whose root is on its own disk, or not mounted by now."""

    class Root:
        path = str(tmp_path)

        @property
        def is_mounted(self):
            if isinstance(mounted, Exception):
                raise mounted
            return mounted

    monkeypatch.setattr(used_root, "Place", lambda proxy, board: SimpleNamespace(root=Root()))
    work = SimpleNamespace(proxy=WORK.proxy, board=WORK.board, from_its_disk=disk, began="booting")
    time.sleep(0.02)
    assert used_root.used_since(work, time.time() if when == "now" else when) is used


@pytest.mark.parametrize("step", [0.3, 0.0], ids=["set back", "as it went"])
def test_a_clock_that_was_set_back_and_has_passed_that_time_since(monkeypatch, tmp_path, marked, step):
    """Lost: what a tenant wrote, which looks older than the boot that it was written in."""
    root, now = tmp_path / "root", time.time
    root.mkdir()
    time.sleep(0.02)
    with monkeypatch.context() as ahead:
        ahead.setattr(time, "time", lambda: now() + step)
        mark = power_marks.begins(WORK.proxy, WORK.board)
        began = time.time()
        mark()
    if step:
        (root / "thesis.txt").write_text("hers")
    time.sleep(step + 0.05)
    assert time.time() > began, "the time of the boot has passed"
    assert used_root.changed_since(str(root), began) is False, "nothing looks newer than the boot"
    assert used_root.used_since(WORK, began) is bool(step)


@pytest.mark.parametrize(("step", "used"), [(0.0009, False), (0.005, True), (-0.005, True)])
def test_a_step_is_one_from_a_millisecond_on(tmp_path, monkeypatch, marked, step, used):
    """Lost: the same, after a step of the clock as those of NTP."""
    (tmp_path / "root").mkdir()
    time.sleep(0.02)
    apart = json.loads(marked.read_text())["apart"]
    monkeypatch.setattr(power_marks, "_apart", lambda: apart + step)
    assert used_root.used_since(WORK, time.time()) is used


@pytest.mark.parametrize(
    "mark",
    [
        *(None, "", "{", "[]", "{}", '{"boot": 1}', '{"boot": %r}'),
        *('{"boot": "another", "apart": %r}', '{"boot": %r, "apart": "NaN"}'),
    ],
)
def test_a_mark_that_says_nothing_of_this_boot_vouches_for_nothing(tmp_path, marked, mark):
    """Lost: the same after a restart of the proxy, or where its mark is lost."""
    (tmp_path / "root").mkdir()
    path, kept = marked, json.loads(marked.read_text())
    time.sleep(0.02)
    began = time.time()
    assert used_root.used_since(WORK, began) is False
    if mark is None:
        path.unlink()
    else:
        values = {"boot": json.dumps(kept["boot"]), "apart": kept["apart"]}
        path.write_text(mark.replace('"boot": %r', f'"boot": {values["boot"]}').replace("%r", repr(values["apart"])))
    assert used_root.used_since(WORK, began) is True


def test_a_mark_that_cannot_be_written_stops_no_boot(marked):
    """Lost: a boot, for want of what only says whether a root was used."""
    marked.unlink()
    marked.parent.rmdir()
    marked.parent.write_text("in the way")
    power_marks.begins(WORK.proxy, WORK.board)()
    assert used_root.used_since(WORK, time.time()) is True


def found(state, power="off", kept=None, same=True):
    """The work on a board that was found so, whose claim's record says the state `kept`."""
    record = SimpleNamespace(state=state, power=power, power_seen=20.0, since=10.0)

    def of_claim(board):
        if isinstance(kept, Exception):
            raise kept
        return kept and SimpleNamespace(state=kept, claim=SimpleNamespace(is_same=lambda claim: same))

    proxy = SimpleNamespace(store=SimpleNamespace(kept=of_claim))
    return SimpleNamespace(state=state, found=record, proxy=proxy, claim="hers", board=SimpleNamespace(id=0))


@pytest.mark.parametrize(
    ("work", "somebodys"),
    [
        (found("running", "on"), True),
        (found("booting"), True),
        (found("power off", "on"), False),
        (found("power off", kept="power off"), False),
        (found("shutting down", kept="shutting down"), False),
        # a stop failed, or nobody saw what came of it
        (found("shutting down", "on"), True),
        (found("shutting down", None), True),
        # the database is older than her record
        (found("power off", kept="running"), True),
        (found("power off", kept="shutting down"), True),
        (found("shutting down", kept="booting"), True),
        (found("power off", kept="running", same=False), False),
        (found("power off", kept=HeteroError("cannot be read")), True),
    ],
)
def test_where_somebody_may_be_at_work_by_what_is_recorded(work, somebodys):
    """Lost: a tenant's work, by a start of whom an older database, or a stop that failed, has as off."""
    assert used_root.is_somebodys(work) is somebodys


@pytest.mark.parametrize(("power", "since"), [("off", 20.0), ("on", 10.0), (None, 10.0)])
def test_a_board_recorded_as_off_is_used_by_what_was_written_since_it_was_off(power, since):
    """Lost: what was written before its stop is taken for work of now; or what was written since for none."""
    assert used_root.since_found(found("power off", power)) == (since, set())
