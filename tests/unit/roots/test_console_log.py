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
