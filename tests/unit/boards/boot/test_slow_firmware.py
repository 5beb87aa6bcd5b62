# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boards whose firmware tests itself for longer than EARLY before its first request, as PCs and servers do, count once
they ask. If this fails, boots_at_once limits nothing for them: all of a rack load at the same time from a proxy that
serves none in time.
"""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.boot import queued_boots, silent_boots

#: Seconds after which a silent board makes room, of a firmware's self-test, and from power on to the mounted root.
EARLY, FIRST, ROOT = 1.0, 2.5, 12.0
#: As many are let in until the first one asks, and load at the same time.
MOST = 3


def test_no_more_are_let_in_once_they_ask(site, monkeypatch):
    """Lost: a rack's boots."""
    monkeypatch.setattr(queued_boots, "EARLY", EARLY)
    monkeypatch.setattr(silent_boots, "EARLY", EARLY)
    site.config["boots_at_once"] = 1
    boards = range(4)
    for number in boards:
        site.play(number, tftp=FIRST, nfs=ROOT, running=ROOT + 0.1)
    site.claim(*boards)
    started = site.run("start", *boards)
    assert not started.get("failed"), started.get("msg")
    power = [next(event.time for event in site.events(number, ("power",))) for number in boards]
    loads = [(at + FIRST, at + ROOT) for at in power]
    most = max(sum(begin <= at < end for begin, end in loads) for at, _end in loads)
    assert most <= MOST, [round(at - min(power), 1) for at in power]
