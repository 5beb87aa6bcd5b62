# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stop whose PDU was lost says that the board is left as it is. If this fails, the next start, which would have left
a silent board of a tenant at work alone, cuts its power after two seconds.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import pdu_loop
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.fake import Fake
from ansible_collections.hetero.compute.tests.unit.verbs.quick_looks import quick_looks


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    quick_looks(monkeypatch)
    monkeypatch.setattr(pdu_loop, "PDU", 3.0)


@pytest.mark.parametrize("stop", [False, True], ids=["start", "failed stop, start"])
def test_who_is_at_work_is_not_cut_by_a_start(site, monkeypatch, stop):
    """Lost: what vm0 did; its sshd hangs, as it does where a machine swaps."""
    site.claim(0)
    assert not site.run("start", 0).get("failed")
    site.play(0, stall="running")
    boots = [event.text for event in site.events(0, ("power",))]
    if stop:
        with monkeypatch.context() as patch:
            patch.setattr(Fake, "switch", lambda self, outlets, state: self._hang(dict(faults=dict(hang=True))))
            stopped = site.run("stop", 0, keep=True)
        assert stopped["failed"], stopped
        assert "the board is left as it is" in str(stopped["lines"]), stopped["lines"]
        assert (site.power(0), site.record(0).state) == ("on", "shutting down")
    started = site.run("start", 0, timeout=2, retries=0)
    assert [event.text for event in site.events(0, ("power",))] == boots, (started.get("msg"), started["lines"])
