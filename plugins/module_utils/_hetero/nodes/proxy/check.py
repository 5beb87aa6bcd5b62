# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`hetero check`: checks idle boards, those that were checked longest ago first. Its timer is role tftp_proxy's, and
off where tftp_proxy_check_interval says nothing.

A turn checks few boards (`boards` in tftp_proxy_check), and none that was checked within `hours`: a site's boards are
not switched all day for it. boards/verbs/checks.py knows which boards are not checked, and which verbs a check gives
way to.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Mapping, Sequence

from ...boards.records.proxy import Proxy
from ...boards.verbs import check_runs, checks
from ...boards.verbs.checks import CheckRequest
from ...boards.verbs.measures import Limits
from ...site.proxy_config import CONFIG, files_of
from ..verb_parser import verb_parser

VERB = "check"
DOES = "Check the health of idle boards: power, boot, console, RAM, disks, network."
#: Boards of a turn, and hours after which a board is checked again, where tftp_proxy_check says none.
BOARDS, HOURS = 1, 24.0


def parser() -> argparse.ArgumentParser:
    """Return the parser of its words."""
    words = verb_parser(VERB, DOES, CONFIG, "proxy")
    words.add_argument("--all", action="store_true", help="all idle boards, whenever they were checked last")
    return words


def main(arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    return 0 if turn(files_of(options.config), options.all) else 1


def turn(files: Mapping[str, str], everything: bool = False) -> bool:
    """Check the boards whose turn it is, and print a line for each, or why none can be; return whether none failed.

    :param files: as proxy_config.files_of has them.
    :param everything: check all idle boards.
    """
    with Proxy(files, VERB, create=False) as proxy:
        usual = proxy.config.check
        ids, others = checks.idle(proxy)
        last = checks.last_checks(proxy)
        request = CheckRequest(Limits.of(usual))
    if not ids:
        sys.stdout.write(f"{check_runs.none_can_be(others)}\n")
    if not everything:
        before = time.time() - 3600.0 * (HOURS if usual.hours is None else usual.hours)
        # a check of the time to come was dated by a clock that was ahead
        due = [one for one in ids if not before < last.get(one, 0.0) <= time.time()]
        ids = due[: usual.boards or BOARDS]
    failed = False
    for result in check_runs.results(files, ids, request, check_runs.AT_ONCE):
        sys.stdout.write(f"{checks.told(result)}\n")
        sys.stdout.flush()
        failed = failed or bool(result["failed"])
    return not failed
