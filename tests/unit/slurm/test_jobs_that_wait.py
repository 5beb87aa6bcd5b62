# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs, while their boards come up: what they cost the controller, and whose board it is then."""

from __future__ import annotations

import job
import pytest
from controller import Node
from site_file import SiteError
from slots import Slots


def test_many_jobs_that_wait_do_not_wear_the_controller_out(site, monkeypatch):
    """Lost: the controller's processor, which a hundred jobs kept busy by asking for their boards five times a second;
    or the seconds in which a container's job has begun already.
    """
    now, looks = [0.0], []
    monkeypatch.setattr(job.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(job.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))

    class Controller:
        def names(self, hostlist):
            return hostlist.split(",")

        def some(self, names):
            looks.append(now[0])
            rising = frozenset({"ALLOCATED", "CLOUD", "POWERING_UP", "POWER_DOWN"} if now[0] < up else {"ALLOCATED"})
            return {name: Node(name, rising) for name in names}

    for up, most, late in ((5.0, 30, 0.6), (90.0, 60, 5.0), (1e9, 160, 5.0)):
        now[0], looks[:] = 0.0, []
        site = type(site)(**dict(vars(site), resume_seconds=600.0))
        job.prolog(site, Controller(), dict(SLURM_JOB_PARTITION="kept", SLURM_JOB_NODELIST="tp64-1"))
        assert len(looks) <= most
        assert now[0] - min(up, 600.0) <= late


@pytest.mark.parametrize(("lent", "begins"), [("7", True), ("", True), ("6", False)])
def test_a_board_that_came_up_for_a_cancelled_job_is_its_users_or_the_next_ones(site, lent, begins):
    """Lost: bob's board, to ann, who cancelled her job when her login was there: Slurm gives him the slot then."""
    slots = Slots(site.folder)
    if lent:
        slots.lend("tp64-1", lent)

    class Controller:
        def names(self, hostlist):
            return [hostlist]

        def some(self, names):
            return {name: Node(name, frozenset({"ALLOCATED", "CLOUD", "POWER_DOWN"})) for name in names}

    given = dict(SLURM_JOB_ID="7", SLURM_JOB_PARTITION="boards", SLURM_JOB_NODELIST="tp64-1")
    if begins:
        job.prolog(site, Controller(), given)
    else:
        with pytest.raises(SiteError, match="another job's user has a login on tp64-1"):
            job.prolog(site, Controller(), given)
    assert slots.spent("tp64-1")
