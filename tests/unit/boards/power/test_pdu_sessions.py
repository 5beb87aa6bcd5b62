# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PDUs that hang. If these fail, each step of a verb waits a minute and a half for one that has just not answered, or
one that answers is not asked.
"""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.power import pdu_sessions
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core import deadline as deadlines
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Busy, TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import ProxyConfig

SILENT = TimedOut("no answer (gave up after 90 s)", "pdu-a", "look at the PDU", port=23)


@pytest.fixture
def node(monkeypatch):
    """A proxy node; `took` is how long its PDU takes, and `error` what it then says. `asked` has each limit."""
    one = SimpleNamespace(now=1000.0, took=90.0, error=SILENT, asked=[], silent_pdus={}, actor="jo")
    one.config, one.pdu = ProxyConfig(run_folder="/run/t"), lambda name: ({"host": name}, {})

    @contextmanager
    def session(name, settings, secrets, deadline, run_folder, actor, tell):
        one.asked.append(deadline.seconds)
        one.now += one.took
        if one.error:
            raise one.error
        yield name

    clock = SimpleNamespace(monotonic=lambda: one.now)
    monkeypatch.setattr(pdu_sessions, "session", session)
    monkeypatch.setattr(pdu_sessions, "time", clock)
    monkeypatch.setattr(deadlines, "time", clock)
    return one


def ask(node, name="pdu-a", seconds=750.0):
    with pdu_sessions.opened(node, name, Deadline(seconds), None) as pdu:
        return pdu


def test_one_that_hangs_is_waited_for_once_and_not_for_as_long_as_a_boot(node):
    """Lost: five minutes of a move, in which nothing is done."""
    with pytest.raises(TimedOut) as first:
        ask(node)
    assert (node.asked, str(first.value)) == ([90.0], str(SILENT))
    with pytest.raises(TimedOut) as again:
        ask(node)
    said = "pdu-a: no answer (gave up after 90 s); it is not asked again so soon: look at the PDU"
    assert (node.asked, str(again.value), again.value.facts) == ([90.0], said, {"port": 23})
    with pytest.raises(TimedOut):
        ask(node, "pdu-b")
    assert node.asked == [90.0, 90.0], "another one is asked"


def test_it_is_asked_again_after_a_while(node):
    """Lost: the end of an instance, after a wipe of hours, to a PDU that was away when that began."""
    with pytest.raises(TimedOut):
        ask(node)
    node.now, node.error = node.now + pdu_sessions.SOON, None
    assert ask(node) == "pdu-a"


@pytest.mark.parametrize(("took", "error"), [(5.0, SILENT), (90.0, Busy("another user is logged in", "pdu-a", "wait"))])
def test_what_says_nothing_of_it_is_no_reason_not_to_ask(node, took, error):
    """Lost: the next step, to one that had no time left, or was refused at once."""
    node.took, node.error = took, error
    with pytest.raises(type(error)):
        ask(node, seconds=took)
    node.error = None
    assert ask(node) == "pdu-a"
