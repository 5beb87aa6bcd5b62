# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is meant by taking GPUs back, and what a diff says of it. Real containers are in test_attachment.py."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change
from ansible_collections.hetero.compute.plugins.module_utils._hetero.hypervisors.lxc_gpus import attachment

ITS_OWN, OPEN, CLOSED = (SimpleNamespace(address=f"0000:0{number}:00.0") for number in (5, 6, 7))
GPUS = [ITS_OWN, OPEN, CLOSED]


@pytest.mark.parametrize(("pid", "meant"), [(42, [ITS_OWN, OPEN]), (None, [ITS_OWN])])
def test_all_of_a_container_that_runs_are_also_those_that_it_can_open(monkeypatch, pid, meant):
    """Lost: a GPU that stays open to a container of which all were taken back; one that is off can open none."""

    def reach_of(_container, _pid, gpus):
        assert _pid, "nobody is there to be asked"
        states = dict.fromkeys((gpu.address for gpu in gpus), attachment.open_rights.CLOSED)
        states[OPEN.address] = attachment.open_rights.OPEN
        return [SimpleNamespace(address=address, state=state) for address, state in states.items()]

    monkeypatch.setattr(attachment.open_rights, "reach_of", reach_of)
    rows = ["its allocation"]
    site = SimpleNamespace(gpus_of=lambda _rows: [ITS_OWN], found=SimpleNamespace(gpus=GPUS))
    assert attachment._meant(site, SimpleNamespace(init_pid=pid), (), rows) == (rows, meant)


def test_a_diff_says_what_is_not_there_after_a_restart(monkeypatch):
    """Lost: of a dry run, that a container's file is another then."""
    old = SimpleNamespace(gpus=[dict(address=ITS_OWN.address)], rules=["c 195:0 rw"])
    monkeypatch.setattr(attachment.persistence, "read", lambda _container: old)
    monkeypatch.setattr(attachment.identity, "includes", lambda _container: True)
    change = Change(check=True)
    attachment.persist(None, SimpleNamespace(thing="container c1"), [], change)
    ((thing, before, after),) = [(one["after_header"], one["before"], one["after"]) for one in change.diff]
    assert thing == "container c1, after a restart"
    assert (before, after) == (dict(gpus=[ITS_OWN.address], rules=["c 195:0 rw"]), dict(gpus=[], rules=[]))
    assert change.changed
