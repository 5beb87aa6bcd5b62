# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pipes in place of a proxy's files, as test_own_roots.py has it of files beside containers.

If these fail, a node's verbs wait for ever, also for boards that the file does not concern. (A device there, such as a
link to /dev/zero in place of made.json, was read until there was no memory left.)
"""

from __future__ import annotations

import os
import signal

import pytest

from ansible_collections.hetero.compute.tests.in_time import in_time

#: {name: its file}.
FILES = {
    "made.json": lambda site: site.state / "board-roots" / "fs_0" / "made.json",
    "export": lambda site: site.state / "exports" / "fs_0.conf",
}


def in_a_process(work):
    """Do it in a process of its own, which is ended with all that it started, and fail where it takes longer."""
    child = os.fork()
    if child == 0:
        os.setsid()
        try:
            work()
        finally:
            os._exit(0)
    try:
        with in_time(400):
            os.waitpid(child, 0)
    except AssertionError:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise


@pytest.mark.parametrize(
    ("file", "verb"), [("made.json", "reconcile"), ("made.json", "another's provision"), ("export", "reconcile")]
)
def test_nobody_waits_for_a_pipe(jackie, file, verb):
    """Lost: every verb on a node, also on boards that the file does not concern, with their locks."""
    path = FILES[file](jackie)
    path.rename(jackie.folder / "kept")
    os.mkfifo(path)
    works = {"reconcile": lambda: jackie._module("board_reconcile", timeout=5)}
    in_a_process(works.get(verb, lambda: jackie.provision("bob")))
