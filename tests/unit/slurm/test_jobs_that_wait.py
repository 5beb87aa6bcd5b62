# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What jobs cost the controller while their boards come up, by the clock of a test."""

from __future__ import annotations

import job
from controller import Node


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
