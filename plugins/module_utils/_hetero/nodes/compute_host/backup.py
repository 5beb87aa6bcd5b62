# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`hetero gpu-backup`: a checked copy of the host's database; then old events go.

How a copy is made, core/backups.py knows. A database that this release cannot read is refused rather than copied.
"""

from __future__ import annotations

import argparse
from typing import Sequence

from ...claims.host.config import CONFIG, read_config
from ...claims.host.store import Store
from ...compute_host.lost_database import must_not_be_lost
from ...core import backups
from .. import old_events
from ..verb_parser import verb_parser
from . import reap

VERB = "gpu-backup"
DOES = "Keep a checked copy of the database beside it, write records of claims that have none, remove old events."


def parser() -> argparse.ArgumentParser:
    """Return the parser of its words."""
    return verb_parser(VERB, DOES, CONFIG, "host")


def main(arguments: Sequence[str]) -> int:
    config = read_config(parser().parse_args(arguments).config)
    must_not_be_lost(config)
    database = config.state_db
    with Store(database, create=False) as store:
        now = old_events.certain_time(store, reap.VERB)
        store.keep_missing()
        said = backups.say(database)
        old_events.remove(store, config.events_days, now)
    return said
