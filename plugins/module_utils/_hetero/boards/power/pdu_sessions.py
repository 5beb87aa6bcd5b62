# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sessions with the PDUs of a proxy node, within one call of a module: one that did not answer in its time is not
waited for again by the next step of that call.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Callable, Iterator

from ...core.errors import TimedOut
from ...drivers.power.outlets import session

if TYPE_CHECKING:
    from ...core.deadline import Deadline
    from ...drivers.power.outlets import Session
    from ..records.proxy import Proxy

#: Longest wait for a PDU whose one session others have (seconds): a dozen plays, a few seconds each.
PDU = 90.0
#: So long after that it is not asked again (seconds): the steps of a verb follow each other at once, but for those that
#: take hours, such as a wipe.
SOON = 60.0
#: Seconds that it was waited for, at least, where that counts: less says nothing of it.
LEAST = 10.0
NOT_AGAIN = "{what}; it is not asked again so soon"


@contextmanager
def opened(proxy: Proxy, name: str, deadline: Deadline, tell: Callable[[str], None] | None) -> Iterator[Session]:
    """Open the session with a PDU.

    :param tell: is called, from any thread, with what is waited for, if that takes long.
    :raises TimedOut: it did not answer within PDU seconds, or it did not a moment ago.
    """
    _must_not_be_silent(proxy, name)
    settings, secrets = proxy.pdu(name)
    limit, place = deadline if deadline.seconds <= PDU else deadline.within(PDU), (proxy.config.run_folder, proxy.actor)
    try:
        with session(name, settings, secrets, limit, *place, tell) as pdu:
            yield pdu
    except TimedOut as error:
        if limit.spent >= LEAST:
            proxy.silent_pdus[name] = (time.monotonic(), error)
        raise


def _must_not_be_silent(proxy: Proxy, name: str) -> None:
    if name in proxy.silent_pdus:
        when, error = proxy.silent_pdus[name]
        if time.monotonic() - when < SOON:
            raise TimedOut(NOT_AGAIN.format(what=error.what), error.thing, error.remedy, **error.facts)
