# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which events tell of a module that goes on by itself."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work import job
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import ProxyConfig


@pytest.mark.parametrize(("newest", "after"), [({4: 7, 2: 9}, 9), ({4: 7}, 7), ({}, 0)])
def test_what_happens_after_the_newest_event_of_its_boards_is_followed(monkeypatch, newest, after):
    """Lost: the progress of a verb, or old events that are told as its own."""
    # pylint: disable=unreachable  # it is played, and returns
    _node, begun, left = made(monkeypatch, newest)
    job.in_background(
        "module", {"state_db": "here.db"}, lambda proxy: ["4", "2"], lambda count: 100 + count, lambda params: [params]
    )
    follow = dict(state_db="here.db", boards=[4, 2], after=after, limit=102)
    assert begun == [("module", ("/run/here", follow), [{"state_db": "here.db"}])]
    assert left == [(None, None, None)]


def test_of_no_board_what_happens_after_the_newest_event_of_all_is_followed(monkeypatch):
    """Lost: the progress of who learns outlets, among what an earlier process of the same id did."""
    # pylint: disable=unreachable  # as above
    _node, begun, _left = made(monkeypatch, {None: 12, 4: 7})
    job.in_background("module", {"state_db": "here.db"}, lambda proxy: [], lambda count: count, lambda params: [])
    assert begun[0][1] == ("/run/here", dict(state_db="here.db", boards=[], after=12, limit=0))


def made(monkeypatch, newest):
    """(a node whose newest events these are, what was begun in the background, how it was left)."""
    begun, left = [], []

    class Node:
        def __init__(self, params):
            assert params["state_db"] == "here.db"
            self.config, self.store = ProxyConfig(run_folder="/run/here"), self

        def __enter__(self):
            return self

        def __exit__(self, *error):
            left.append(error)

        def board(self, number):
            return SimpleNamespace(id=int(number))

        def newest_events(self, board, count):
            return [SimpleNamespace(id=newest[board] - older) for older in range(count) if board in newest]

    def background(module, prepare, work):
        begun.append((module, prepare(), work()))

    monkeypatch.setattr(job, "Proxy", Node)
    monkeypatch.setattr(job.job, "in_background", background)
    return Node, begun, left
