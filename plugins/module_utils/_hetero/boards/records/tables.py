# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of a proxy node's database; store.py knows what their rows mean."""

from __future__ import annotations

from ...core.backups import how_to_restore
from ...core.database import Layout
from ...site.proxy_config import SET_UP

LAYOUT = Layout(
    schema=1,
    tables=(
        """CREATE TABLE boards (
            board INTEGER PRIMARY KEY, state TEXT NOT NULL, since REAL,
            power TEXT, power_seen REAL, note TEXT NOT NULL DEFAULT '')""",
        """CREATE TABLE claims (
            board INTEGER PRIMARY KEY, instance TEXT NOT NULL UNIQUE, request TEXT NOT NULL, owner TEXT NOT NULL,
            flavor TEXT NOT NULL, image TEXT NOT NULL, ssh_public_key TEXT NOT NULL, created REAL NOT NULL,
            expires REAL, host_key TEXT, image_hash TEXT, boot_source TEXT)""",
        """CREATE TABLE events (
            id INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, actor TEXT NOT NULL, board INTEGER, instance TEXT,
            phase TEXT NOT NULL, text TEXT NOT NULL, seconds REAL)""",
        "CREATE INDEX events_of_board ON events (board, id)",
    ),
    set_up=SET_UP,
    restore=how_to_restore,
)
