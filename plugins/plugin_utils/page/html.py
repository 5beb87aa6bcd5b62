# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTML out of text that nobody has checked: whatever is not an element made here is escaped.

Instance names, notes and what boards say on their consoles come from tenants. What the page shows is not known here.
"""

from __future__ import annotations

import html
import unicodedata

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.printable import printable

#: Elements without an end tag (HTML standard, void elements) that are used here.
VOID = {"meta"}
#: Characters of one text; a page must not be as long as what somebody put into a note.
MOST = 4000
#: Unicode categories that are not shown as they are, beside what printable() escapes: other format characters, and
#: private and unassigned ones, which may look like anything.
UNSHOWN = {"Cc", "Cf", "Cs", "Co", "Cn"}


class Html(str):
    """Text that is HTML already: what `tag` and `join` make, and the page's own style sheet."""

    __slots__ = ()


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


def join(*children: object) -> Html:
    """Children one after the other: elements as they are, text escaped, lists flattened, None left out."""
    parts: list[str] = []
    for child in children:
        if isinstance(child, Html):
            parts.append(child)
        elif isinstance(child, (list, tuple)):
            parts.append(join(*child))
        elif child is not None:
            parts.append(html.escape(clean(child)))
    return Html("".join(parts))


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """An element. `class_` is class, an underscore in between is a hyphen; an attribute that is None is left out."""
    words = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(clean(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{words}>" if name in VOID else f"<{name}{words}>{join(*children)}</{name}>")
