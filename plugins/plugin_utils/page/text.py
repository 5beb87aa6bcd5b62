# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts and times as the page shows them: clean, and short where they are long.

Instance names, notes and the output of boards' consoles come from tenants. jinja.py escapes them for HTML.
"""

from __future__ import annotations

import datetime
import unicodedata
from typing import TYPE_CHECKING, NamedTuple

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import printable
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.instance import age
from ansible_collections.hetero.compute.plugins.plugin_utils.answer_values import is_number

if TYPE_CHECKING:
    from typing import TypeGuard

#: Most characters of one text, so that a long note does not make the page long.
MOST = 4000
#: Most characters of a cell's text that are shown; further ones, and further lines, need a click.
MOST_SHOWN = 200
#: Unicode categories that are not shown as they are, beside what printable() escapes: other format characters, and
#: private and unassigned ones, which may look like anything.
UNSHOWN = {"Cc", "Cf", "Cs", "Co", "Cn"}


class Text(NamedTuple):
    """A cell's text: its first line, and the whole text where that is longer."""

    first: str
    whole: str | None = None


class Moment(NamedTuple):
    """A time as people read it, and as ISO 8601 with its zone; "-" and None for a value that is no time."""

    shown: str
    iso: str | None = None


def clean(value: object, most: int = MOST) -> str:
    """Return any value as text that is safe to show: cut off where it is long, control characters escaped."""
    text = printable(str(value))
    if len(text) > most:
        text = f"{text[: most - 1]}…"
    if text.isprintable():
        return text
    return "".join(
        letter if letter in "\n\t" or unicodedata.category(letter) not in UNSHOWN else "\ufffd" for letter in text
    )


def cell_text(value: object, most: int = MOST_SHOWN) -> Text:
    """Return a text of any length for a cell that shows `most` characters of its first line; an empty one for None."""
    text = clean(value if value is not None else "")
    first = text.split("\n", 1)[0]
    if first == text and len(text) <= most:
        return Text(text)
    return Text(first if len(first) <= most else f"{first[: most - 1]}…", text)


def is_seconds(value: object) -> TypeGuard[float]:
    """Return whether a value from outside is a number of seconds that is not negative."""
    return is_number(value) and value >= 0


def moment(seconds: object, form: str = "%d %b %H:%M:%S") -> Moment:
    """Return unix seconds as a Moment in this machine's zone, in strftime's `form`."""
    if not is_seconds(seconds):
        return Moment("-")
    try:
        then = datetime.datetime.fromtimestamp(seconds).astimezone()
    except (OverflowError, OSError, ValueError):
        return Moment("-")
    return Moment(then.strftime(form), then.isoformat(timespec="seconds"))


def since(seconds: object) -> str | None:
    """Return a number of seconds as a rough text, such as "3 d"; None where it is no number of seconds."""
    return age(seconds) if is_seconds(seconds) else None
