# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps that take away what an instance has. Whole verbs are in verbs/test_instance_on_boards.py."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.instances.kinds import board
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import ProxyConfig


@pytest.mark.parametrize(("said", "never_ran"), [({}, False), (dict(never_ran=True), True)])
def test_only_who_says_so_takes_away_what_never_ran(monkeypatch, said, never_ran):
    """Lost: the root or the disks of an instance that ran, for which nobody said a word."""
    given = []
    monkeypatch.setattr(board.board_images, "absent", lambda *words: given.append(words[-1]))

    def end(proxy, ids, asked, options, at_fault):
        given.append(options.never_ran)
        return dict(step="", ended=[])

    monkeypatch.setattr(board.release, "end", end)
    monkeypatch.setattr(board.board_releases, "absent", lambda *words, **more: {})
    monkeypatch.setattr(board.Request, "claims", [])
    request = board.Request.__new__(board.Request)
    request.proxy, request.name, request.created, request.check = (
        SimpleNamespace(config=ProxyConfig()),
        "jackie",
        (),
        False,
    )
    request.params = dict(wipe_method=None, wipe_verify=None, owner=None, numbers=[], only_key=None)
    monkeypatch.setattr(board.Request, "options", board.lifecycle.Options())
    request.steps = SimpleNamespace(took=lambda result, name: True, boards=[])
    request.remove([0], **said)
    request.end([0], **said)
    assert given == [never_ran, never_ran]
