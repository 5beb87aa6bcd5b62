# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a snapshot says of boards or of a compute host, if it is young enough to be believed.

Playbook status writes snapshots, and filter hetero.compute.snapshots makes them.
"""

from __future__ import annotations

import json
import re
import time
from datetime import datetime, timezone
from typing import Any

UNKNOWN = "unknown"


def states(text: str, max_age: float) -> dict[str, dict[str, Any]]:
    """Return {board id: what the snapshot says of it}; {} if it is older than `max_age` seconds (0: any age).

    :raises ValueError: this is no snapshot of boards.
    """
    _snapshot, boards, fresh = _items(text, max_age, "boards", "id")
    return {str(board["id"]): board for board in boards} if fresh else {}


def gpus(text: str, max_age: float) -> dict[str, Any]:
    """Return variables of a compute host; {} if it could not be asked.

    An old snapshot still tells which GPUs there are, but not who has them.

    :raises ValueError: this is no snapshot of a compute host.
    """
    snapshot, seen, fresh = _items(text, max_age, "gpus", "address")
    if snapshot.get("error"):
        return {}
    given = [gpu for gpu in seen if not gpu.get("unsupported")]
    free = [gpu for gpu in given if gpu.get("healthy") and not gpu.get("holder")]
    if not fresh:
        seen = [dict(gpu, holder=UNKNOWN, healthy=None) for gpu in seen]
    return dict(
        gpus=seen,
        gpus_total=len(given),
        gpus_free=len(free) if fresh else None,
        instances=snapshot.get("instances") if fresh else None,
        capacity=snapshot.get("capacity") if fresh else None,
    )


def devices(seen: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what a host gives to instances: the devices of its aliases for guests, and its other GPUs."""
    kept = seen.get("devices") or []
    named = {one["address"] for one in kept}
    return [gpu for gpu in seen["gpus"] if gpu.get("address") not in named] + kept


def _items(text: str, max_age: float, what: str, key: str) -> tuple[dict[str, Any], list[dict[str, Any]], bool]:
    """Return (the snapshot, its list `what` of dicts that have `key`, whether it is young enough)."""
    snapshot = json.loads(text)
    items = snapshot.get(what) if isinstance(snapshot, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) and key in item for item in items):
        raise ValueError(f'is not {{"taken_at": ..., "{what}": [{{"{key}": ..., ...}}]}}')
    # A time far in the future is as wrong as an old one.
    return snapshot, items, not max_age or abs(time.time() - _timestamp(snapshot.get("taken_at"))) <= max_age


def _timestamp(taken_at: object) -> float:
    """Return the unix seconds of a snapshot's taken_at, a number or ISO 8601 (UTC if it names no zone)."""
    if isinstance(taken_at, (int, float)) and not isinstance(taken_at, bool):
        return taken_at
    if not isinstance(taken_at, str):
        raise ValueError("has no taken_at")
    # Python before 3.11 does not know the letter Z.
    moment = datetime.fromisoformat(re.sub("[Zz]$", "+00:00", taken_at))
    return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()
