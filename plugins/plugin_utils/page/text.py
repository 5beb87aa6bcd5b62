# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts and times as the page shows them: clean, and short where they are long.

Instance names, notes and what boards say on their consoles come from tenants. Escaping for HTML is jinja.py's.
"""

from __future__ import annotations

import datetime
import unicodedata
from typing import TYPE_CHECKING, NamedTuple

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import printable
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.instance import age
from ansible_collections.hetero.compute.plugins.plugin_utils.answers import is_number

if TYPE_CHECKING:
    from typing import TypeGuard

#: Characters of one text; a page must not be as long as what somebody put into a note.
MOST = 4000
#: Characters of a cell's text; further ones, and further lines, are behind a click.
MOST_SHOWN = 200
#: Unicode categories that are not shown as they are, beside what printable() escapes: other format characters, and
#: private and unassigned ones, which may look like anything.
UNSHOWN = {"Cc", "Cf", "Cs", "Co", "Cn"}


class Text(NamedTuple):
    """A cell's text: its first line, and all of it where that is more."""

    first: str
    whole: str | None = None


class Moment(NamedTuple):
    """A time as people read it, and as ISO 8601 with its zone; "-" and None for what is none."""

    shown: str
    iso: str | None = None


def clean(value: object, most: int = MOST) -> str:
    """Any value as text that can be shown: cut where it is long, with characters that do something escaped."""
    text = printable(str(value))
    if len(text) > most:
        text = f"{text[: most - 1]}…"
    if text.isprintable():
        return text
    return "".join(
        letter if letter in "\n\t" or unicodedata.category(letter) not in UNSHOWN else "\ufffd" for letter in text
    )


def cell_text(value: object, most: int = MOST_SHOWN) -> Text:
    """A text of any length for a cell that shows `most` characters of its first line; None is an empty one."""
    text = clean(value if value is not None else "")
    first = text.split("\n", 1)[0]
    if first == text and len(text) <= most:
        return Text(text)
    return Text(first if len(first) <= most else f"{first[: most - 1]}…", text)


def is_seconds(value: object) -> TypeGuard[float]:
    """Whether a value from outside is a number of seconds that is not negative."""
    return is_number(value) and value >= 0


def moment(seconds: object, form: str = "%d %b %H:%M:%S") -> Moment:
    """Unix seconds in this machine's zone, as strftime's `form` has it; what is no time has no text either."""
    if not is_seconds(seconds):
        return Moment("-")
    try:
        then = datetime.datetime.fromtimestamp(seconds).astimezone()
    except (OverflowError, OSError, ValueError):
        return Moment("-")
    return Moment(then.strftime(form), then.isoformat(timespec="seconds"))


def since(seconds: object) -> str | None:
    """How long something has been so, such as "3 d"; None where nobody knows."""
    return age(seconds) if is_seconds(seconds) else None
