# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`hetero backup`: a checked copy of the state database, and records of claims that have none beside it yet; then old
events go.

How a copy is made, core/backups.py knows. A database that this release cannot read is refused rather than copied.
"""

from __future__ import annotations

import argparse
import os
from typing import Sequence

from ...boards.records.claim_records import FOLDER
from ...boards.records.lost_database import must_not_be_lost
from ...boards.records.store import Store
from ...core import backups
from ...site.proxy_config import CONFIG, files_of, read_config
from .. import old_events
from ..verb_parser import verb_parser
from . import reap

VERB = "backup"
DOES = "Keep a checked copy of the database beside it, write records of claims that have none, remove old events."


def parser() -> argparse.ArgumentParser:
    """Return the parser of its words."""
    return verb_parser(VERB, DOES, CONFIG, "proxy")


def main(arguments: Sequence[str]) -> int:
    path = parser().parse_args(arguments).config
    database, config = files_of(path)["state_db"], read_config(path)
    folder = config.state_folder
    must_not_be_lost(database, folder)
    with Store(database, create=False, records=os.path.join(folder, FOLDER)) as store:
        now = old_events.certain_time(store, reap.VERB)
        said = backups.say(database)
        store.keep_missing()
        old_events.remove(store, config.events_days, now)
    return said
