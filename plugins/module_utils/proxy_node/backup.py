# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`hetero backup`: a checked copy of the state database. How one is made, backups.py knows."""

from __future__ import annotations

import argparse

from .. import backups
from .config import CONFIG, files_of

VERB = "backup"


def main(arguments):
    parser = argparse.ArgumentParser(
        prog="hetero backup", description="Keep a checked copy of the state database beside it."
    )
    parser.add_argument("--config", default=CONFIG, help="the proxy's configuration (%(default)s)")
    return backups.say(files_of(parser.parse_args(arguments).config)["state_db"])
