# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module on an accelerator host's instances that goes on by itself: which events tell of it."""

from __future__ import annotations

from .. import job
from ..owners import names_of
from .claiming import MOST
from .config import state_db
from .host import Host

#: What a verb may take beyond the timeout of each instance: an image that is taken in (images/store.py).
BESIDES = 1800.0


def in_background(module, path, request, count, timeout, work):
    """As job.in_background, for the instances that a request has or is to have.

    :param path: the host's configuration.
    :param work: takes nothing; returns the module's result.
    """

    def prepare():
        with Host(path) as host:
            there = [claim.instance for claim in host.store.claims() if request in (claim.instance, claim.request)]
            names = sorted({*there, *names_of(request, min(count, MOST))})
            newest = [event.id for event in host.store.newest_events(None, 1)]
            follow = dict(state_db=state_db(host.config), instances=names, node=host.name, after=max(newest, default=0))
            return host.config["run_folder"], dict(follow, limit=BESIDES + timeout * len(names))

    job.in_background(module, prepare, work)
