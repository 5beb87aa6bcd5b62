# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which log of a board is ours. If these fail, a log that a site's script wrote is lost; or what a tenant's kernel said
stays where the next tenant's operator reads it; or a pipe in its place stops every verb of the board.
"""

from __future__ import annotations

import os
import stat

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.console_log import (
    LOG_MARK,
    LOG_WRITTEN,
    SOON,
    is_own_log,
    write_console_log,
)
from ansible_collections.hetero.compute.plugins.module_utils._hetero.roots.provision import leftovers, remove
from ansible_collections.hetero.compute.tests.in_time import in_time


@pytest.mark.parametrize("kind", ["pipe", "link to a pipe", "loop"])
def test_what_is_no_plain_file_stops_nobody_and_stays(site, proxy, report, kind):
    """Lost: the end of every instance of a board, and each reconcile, to one pipe in the TFTP folder."""
    site.tftp.mkdir(exist_ok=True)
    log = site.tftp / "log_0"
    if kind != "loop":
        os.mkfifo(log if kind == "pipe" else site.tftp / "pipe")
    if kind != "pipe":
        log.symlink_to("log_0" if kind == "loop" else "pipe")
    site.claim(proxy)
    with in_time():
        assert leftovers(proxy, proxy.board(0)) == []
        remove(proxy, proxy.board(0), Change(), report.call)
        assert os.path.lexists(log)
        write_console_log(proxy, proxy.board(0), "ours\n")
    assert log.read_text() == f"{LOG_MARK}ours\n"
    kept = os.lstat(site.tftp / "log_0.by-hand").st_mode
    assert stat.S_ISFIFO(kept) if kind == "pipe" else stat.S_ISLNK(kept)


@pytest.fixture
def older(site, proxy):
    """A log as an older release wrote it, which says so when it is done, but for what the call says."""

    def write(age=0.2, mode=0o600, owner=0, board=0):
        site.tftp.mkdir(exist_ok=True)
        log = site.tftp / f"log_{board}"
        log.write_text("Linux version 2.6.38-tile: the tenant's\n")
        log.chmod(mode)
        os.chown(log, owner, 0)
        proxy.store.event(0, "console", LOG_WRITTEN.format(log=site.tftp / "log_0"))
        written = proxy.store.newest_events(0, 1)[0].time - age
        os.utime(log, (written, written))
        return log

    return write


def test_the_log_of_an_older_release_goes_with_its_instance(site, proxy, report, older):
    """Lost: a secret of the tenant's, to who reads the log when the upgrade is long done."""
    site.claim(proxy)
    log = older()
    assert leftovers(proxy, proxy.board(0)) == [f"file {log}"]
    remove(proxy, proxy.board(0), Change(), report.call)
    assert not log.exists()
    assert leftovers(proxy, proxy.board(0)) == []


def test_the_log_of_an_older_release_is_not_kept_as_put_there_by_hand(site, proxy, older):
    """Lost: the same, under a name that nothing of ours removes, where the instance boots again after the upgrade."""
    site.claim(proxy)
    log = older()
    write_console_log(proxy, proxy.board(0), "ours\n")
    assert log.read_text() == f"{LOG_MARK}ours\n"
    assert os.listdir(site.tftp) == ["log_0"]


@pytest.mark.parametrize(
    "wrong", [{"age": SOON + 1}, {"age": -1}, {"mode": 0o644}, {"owner": 65534}, {"board": 1}], ids=str
)
def test_a_log_that_was_not_written_just_when_an_older_release_said_so_is_somebodys(proxy, older, wrong):
    """Lost: a log that was put there by hand before, or since."""
    older(**wrong)
    assert not is_own_log(proxy, proxy.board(wrong.get("board", 0)))


def test_the_newest_word_counts(proxy, older):
    """Lost: a tenant's log, where its instance booted twice with the older release."""
    older()
    log = older()
    assert is_own_log(proxy, proxy.board(0))
    os.utime(log, (os.stat(log).st_mtime - SOON,) * 2)
    assert not is_own_log(proxy, proxy.board(0))
