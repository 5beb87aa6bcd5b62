# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a verb of a container or guest is to do its work. lifecycle.py has the verbs."""

from __future__ import annotations

from dataclasses import dataclass

SOFT, HARD, AUTO = "soft", "hard", "auto"


@dataclass(frozen=True)
class Options:
    """How a verb is to do its work.

    :param owner: if given, another owner's instance is refused.
    :param created: if given, an instance that was claimed at another time (unix seconds) is refused.
    :param only_key: if given, instances that were claimed with another ssh key are passed over; all of them, refused.
    :param timeout: seconds for each instance.
    :param how: a reboot by its own init ("soft"), by force ("hard"), or the second if the first fails.
    :param soft_timeout: seconds that its init has to end.
    :param image: the image that it gets (rebuilt); None for the one that it has.
    :param ssh_public_key: the user's key that it gets (rebuilt); None for the one that it has.
    :param user_data: what cloud-init gets in roots that are made now (running, rebuilt).
    :param fresh: make it anew although neither image nor key changes (rebuilt).
    :param lease_hours: hours from now, 0 for no end (extended).
    :param numbers: only these of a request's instances NAME-1 … NAME-N; none for all that are here.
    :param names: only these of a request's instances; none for all that are here.
    :param never_ran: refuse what ever ran (absent).
    :param over: end only what has a lease that is over at this time when its turn has come (absent).
    """

    owner: str | None = None
    created: tuple[float, ...] = ()
    only_key: str | None = None
    timeout: float = 300.0
    how: str = AUTO
    soft_timeout: float = 30.0
    image: str | None = None
    ssh_public_key: str | None = None
    user_data: str | None = None
    fresh: bool = False
    lease_hours: float | None = None
    over: float | None = None
    numbers: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    never_ran: bool = False
