# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The refusal to end what is not to be seen. If these fail, a root that is not mounted is nobody's once it is back, and
has an address that is another's. Whole moves: instances/guests/test_halves_that_are_not_mounted.py.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.compute_host import roots_out_of_sight
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused


def claim(state="running", container="/lxc/win"):
    return SimpleNamespace(instance="win", state=state, note="", container=container)


def work(monkeypatch, **more):
    """The end of win, which has run, and of which nothing is here."""
    monkeypatch.setattr(roots_out_of_sight, "elsewhere", lambda _host, _claim: None)
    records = SimpleNamespace(path=lambda name: f"/records/{name}.json")
    host = SimpleNamespace(store=SimpleNamespace(records=records, kept=lambda _name: None))
    end = dict(claim=claim(), kept=None, is_made=False, has_root=False, anew="rebuild", sign="/lxc/win/made", host=host)
    return SimpleNamespace(**dict(end, **more))


def test_what_has_run_and_is_not_there_is_not_ended(monkeypatch):
    """Lost: a root that is on a disk which is not mounted, or its address to another one."""
    with pytest.raises(Refused, match=r"^/lxc/win: its root is not to be seen here, .* rebuild makes a new one"):
        roots_out_of_sight.must_be_seen(work(monkeypatch))
    with pytest.raises(Refused, match=r"remove the record of its claim, /records/win\.json; then run this again"):
        roots_out_of_sight.must_be_seen(work(monkeypatch, kept=claim()), moves=True)


@pytest.mark.parametrize(
    "more",
    [dict(is_made=True), dict(has_root=True), dict(claim=claim("ending")), dict(claim=claim(container=None))],
)
def test_what_is_there_or_never_ran_is_ended(monkeypatch, more):
    """Lost: the end of an instance, and with it a name and an address, for ever."""
    roots_out_of_sight.must_be_seen(work(monkeypatch, **more))
    roots_out_of_sight.must_be_seen(work(monkeypatch), moves=True)
