# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`hetero reap`: ends the instances whose lease is over, as terminate does. Its timer is role tftp_proxy's.

A board that another verb works on, or that cannot be freed, keeps its claim, and the next turn tries again.
"""

from __future__ import annotations

import argparse
import re
import sys
import time

from ..boards.board_work import BoardWork, locked
from ..boards.lifecycle import Options
from ..boards.proxy import Proxy
from ..boards.release import release
from ..change import Change
from ..deadline import Deadline
from ..instances import left
from .config import CONFIG, files_of

VERB = "reap"
#: How long a turn waits for the boards that others work on (seconds); there is a next one.
PATIENCE = 1.0
#: Of a board's newest events, among which one may say the same already.
RECENT = 50
NUMBER = re.compile(r"[\d.]+")


def reap(proxy, say):
    """End each claim whose lease is over; True where all of them could be ended.

    :param say: called with a text for each claim that was ended or could not be.
    """
    now, change, works = time.time(), Change(), []
    claims = [claim for claim in proxy.store.claims() if _over(claim, now)]
    lost = [claim for claim in claims if claim.board not in proxy.boards]
    for claim in lost:
        _failed(proxy, claim, f"board{claim.board} is not in the boards file: add it, so that it can be freed", say)
    claims = [claim for claim in claims if claim.board in proxy.boards]
    works = [BoardWork(proxy, proxy.board(claim.board), change, claim.instance) for claim in claims]
    with locked(works, VERB, Deadline(PATIENCE)):
        # Some may have been ended or extended while their lock was waited for.
        going = [not work.over and work.claim is not None and _over(work.claim, now) for work in works]
        release(proxy, [work for work, goes in zip(works, going) if goes], Options())
    for claim, work, goes in zip(claims, works, going):
        if work.failed:
            _failed(proxy, claim, work.error, say)
        elif goes:
            text = f"{claim.instance} of {claim.owner}: its lease is {left(claim.expires - now)}; off, cleaned, free"
            proxy.store.event(claim.board, VERB, text, instance=claim.instance)
            say(f"board{claim.board}: {text}")
    return not lost and not any(work.failed for work in works)


def main(arguments):
    parser = argparse.ArgumentParser(
        prog=f"hetero {VERB}", description="End the instances whose lease is over: board off, cleaned, free."
    )
    parser.add_argument("--config", default=CONFIG, help="the proxy's configuration (%(default)s)")
    options = parser.parse_args(arguments)
    with Proxy(files_of(options.config), VERB, create=False) as proxy:
        return 0 if reap(proxy, lambda text: sys.stdout.write(f"{text}\n")) else 1


def _over(claim, now):
    return claim.expires is not None and claim.expires <= now


def _failed(proxy, claim, error, say):
    """Say it each time, but write it down once: a broken PDU would fill the events of its boards."""
    text = f"{claim.instance} of {claim.owner}: its lease is over, and it could not be ended: {error}"
    newest = [event.text for event in proxy.store.newest_events(claim.board, RECENT) if event.phase == VERB]
    # Seconds and process ids in it do not make it another error.
    if [NUMBER.sub("", said) for said in newest[-1:]] != [NUMBER.sub("", text)]:
        proxy.store.event(claim.board, VERB, text, instance=claim.instance)
    say(f"board{claim.board}: {text}; it is tried again")
