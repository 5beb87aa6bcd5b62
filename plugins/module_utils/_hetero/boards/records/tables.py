# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of a proxy node's database; store.py knows what their rows mean."""

from __future__ import annotations

from functools import partial

from ...claims import tickets
from ...claims.store import read_claim
from ...core.backups import Rights, how_to_restore
from ...core.database import Layout
from ...site.proxy_config import SET_UP
from .board_rows import read_board
from .claim_records import TYPES

HEALTH = (
    """CREATE TABLE health (
        id INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, board INTEGER NOT NULL, what TEXT NOT NULL,
        passed INTEGER NOT NULL, text TEXT NOT NULL, figures TEXT NOT NULL DEFAULT '{}')""",
    "CREATE INDEX health_of_board ON health (board, id)",
)
#: The history of boards, from the events that an earlier release wrote: boots that came up, and boards kept out of use.
#: Of each board the newest rows stay (board_health.KEPT), and its score is made of some (board_health.COUNTED).
FROM_EVENTS = (
    """INSERT INTO health (time, board, what, passed, text)
        SELECT time, board, CASE phase WHEN 'state' THEN 'boot' ELSE 'fault' END, phase = 'state',
            CASE phase WHEN 'state' THEN '' ELSE substr(text, length('kept out of use: ') + 1) END
        FROM events WHERE board IS NOT NULL AND ((phase = 'state' AND text = 'booting → running')
            OR (phase = 'error' AND text LIKE 'kept out of use: %')) ORDER BY id""",
    """DELETE FROM health WHERE id IN (SELECT id FROM (
        SELECT id, row_number() OVER (PARTITION BY board ORDER BY id DESC) AS place FROM health) WHERE place > 100)""",
    "INSERT OR IGNORE INTO boards (board, state) SELECT DISTINCT board, 'power off' FROM health",
    """UPDATE boards SET score = (SELECT 100 * sum(passed) / count(*) FROM (
        SELECT passed FROM health WHERE health.board = boards.board ORDER BY id DESC LIMIT 20))
        WHERE board IN (SELECT board FROM health)""",
)
ENERGY = """CREATE TABLE energy (
            instance TEXT PRIMARY KEY, created REAL NOT NULL, outlet TEXT NOT NULL, kwh REAL, counter REAL, watts REAL,
            seen REAL NOT NULL)"""
#: By the rows of these tables a board is somebody's. A copy of an earlier release has no scores.
RIGHTS: Rights = {"claims": partial(read_claim, types=TYPES), "boards": lambda row: read_board({"score": None, **row})}
LAYOUT = Layout(
    schema=5,
    tables=(
        """CREATE TABLE boards (
            board INTEGER PRIMARY KEY, state TEXT NOT NULL, since REAL,
            power TEXT, power_seen REAL, note TEXT NOT NULL DEFAULT '', score INTEGER NOT NULL DEFAULT 100)""",
        """CREATE TABLE claims (
            board INTEGER PRIMARY KEY, instance TEXT NOT NULL UNIQUE, request TEXT NOT NULL, owner TEXT NOT NULL,
            flavor TEXT NOT NULL, image TEXT NOT NULL, ssh_public_key TEXT NOT NULL, created REAL NOT NULL,
            expires REAL, host_key TEXT, image_hash TEXT, boot_source TEXT)""",
        """CREATE TABLE events (
            id INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, actor TEXT NOT NULL, board INTEGER, instance TEXT,
            phase TEXT NOT NULL, text TEXT NOT NULL, seconds REAL)""",
        "CREATE INDEX events_of_board ON events (board, id)",
        *HEALTH,
        ENERGY,
        *tickets.TABLES,
    ),
    # 2: each board has a history. 3: what each claim has drawn; nothing is known of what was drawn before. 4: those who
    # wait have places. 5: with each, how many others can give it at all.
    upgrades={
        1: ("ALTER TABLE boards ADD COLUMN score INTEGER NOT NULL DEFAULT 100", *HEALTH, *FROM_EVENTS),
        2: (ENERGY,),
        3: tickets.FIRST_TABLES,
        4: (tickets.OTHERS,),
    },
    set_up=SET_UP,
    restore=partial(how_to_restore, rights=RIGHTS),
)
