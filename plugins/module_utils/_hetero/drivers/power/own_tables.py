# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with a table of a site's own device in the inventory, whatever it is asked by: its keys, and the values
that mean on and off. What else is in it, its driver's own file checks.
"""

from __future__ import annotations

import json
from typing import Any, Iterator, Mapping, Sequence

from ...core.spelling import instead


def wrong_keys(setting: str, table: Mapping[str, Any], keys: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield (what is wrong, remedy) of each key of a table that the table cannot have.

    :param setting: the table's own key in a PDU's settings.
    """
    for key in table:
        if str(key).lower() in ("true", "false"):
            word = "on" if str(key).lower() == "true" else "off"
            yield f"its {setting} has a key {key}", f"put {word} in quotes: YAML takes the bare word for that"
        elif key not in keys:
            yield f"its {setting} has an unknown key {key}", instead(key, keys)


def wrong_states(
    setting: str, table: Mapping[str, Any], usual: Mapping[str, Sequence[Any]]
) -> Iterator[tuple[str, str]]:
    """Yield (what is wrong, remedy) of the values that mean on and off.

    :param usual: is_on and is_off where the table has none.
    """
    known: list[set[str]] = []
    for key in usual:
        values = table.get(key, usual[key])
        if not isinstance(values, (list, tuple)) or not values:
            example = json.dumps(usual[key])
            yield f"its {setting} has no list for {key}", f"give the values of the state, such as {key}: {example}"
            return
        known.append({json.dumps(value) for value in values})
    for value in sorted(known[0] & known[1]):
        yield f"its {setting} has {value} for on and for off", "give is_on and is_off, each with values of its own"
