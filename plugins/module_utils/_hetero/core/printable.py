# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text that others wrote, made safe to print: what a terminal obeys or an eye cannot see is shown escaped.

Boards, consoles, PDUs and tenants' files may hold any text. A control sequence in it would move the cursor, set the
title or type into the reader's terminal; a bidirectional override would show a line as another one.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

#: C0 but newline and tab, DEL and C1; soft hyphen; Arabic letter mark, zero width and direction marks, line and
#: paragraph separators, bidirectional embeddings, overrides and isolates (Unicode Standard Annex 9), invisible
#: operators; byte order mark, interlinear annotation; tag characters; lone surrogates, which no UTF-8 output takes.
_UNSAFE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff"
)
_TEXT = re.compile(f"[{_UNSAFE}]")
_LINE = re.compile(f"[\t\n{_UNSAFE}]")
#: Most characters of one text of a node's answer: an event with the last lines of a console has a tenth of that. A node
#: keeps no longer one, for plays refuse an answer with it (plugin_utils/answers.py).
LONGEST = 20_000
#: Most characters of a text of others that an error shows: enough to recognise the text.
MOST = 200
#: Characters that no font shows, of whatever category: Default_Ignorable_Code_Point of Unicode 14
#: (DerivedCoreProperties.txt), so the fillers of Hangul, variation selectors, the combining grapheme joiner.
_IGNORABLE = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
#: Letters and symbols that are blank by their name (UnicodeData.txt): the Braille pattern without dots, two of Egyptian
#: hieroglyphs, the filler of Khitan's small script, the null notehead.
_BLANK = "\u2800\U00013441\U00013442\U00016fe4\U0001d159"
_UNSEEN = re.compile(f"[{_IGNORABLE}{_BLANK}]")
#: General categories that show nothing, or nothing by which one knows it: controls, formats, surrogates, private use,
#: unassigned; all separators but the plain blank.
_UNSEEN_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}
_LONG = re.compile(rf"\S{{{MOST + 1},}}")


def _escaped(match: re.Match[str]) -> str:
    return _escape(match[0])


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def printable(text: str) -> str:
    r"""Return `text` with its control and invisible characters as `\x1b`, `\u202e`; newlines and tabs stay.

    Printable text is returned as it is, so a second call changes nothing.
    """
    # str.isprintable knows all of these and more, and is four times as fast.
    return text if text.isprintable() else _TEXT.sub(_escaped, text)


def one_line(text: str) -> str:
    r"""Return printable(text) on one line, such as for a field of a table: newlines and tabs as `\x0a` and `\x09`.

    Otherwise a text of others could continue with a line that looks like one of ours.
    """
    return text if text.isprintable() else _LINE.sub(_escaped, text)


def seen(name: str) -> str:
    r"""Return a name with all in it escaped that nobody sees, or sees as a blank: `\u3164`, `\xa0`; letters of all
    languages stay.

    Texts may have such characters (an emoji, a line that does not break at a blank); two names must not differ by them.
    """
    return "".join(_escape(char) if _is_unseen(char) else char for char in name)


def _is_unseen(char: str) -> bool:
    return char != " " and (unicodedata.category(char) in _UNSEEN_CATEGORIES or bool(_UNSEEN.match(char)))


def brief(text: str, most: int = MOST) -> str:
    """Return `text`, or its beginning and `…` where it has more than `most` characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def brief_words(text: str) -> str:
    """Return a text of ours, in which a word that is longer than any of ours, and so is quoted, is cut off."""
    return _LONG.sub(lambda match: brief(match[0]), text)


def deeper(value: Any, most: int) -> bool:
    """Return whether mappings and lists lie in each other more than `most` deep. It calls nothing again."""
    level = [value]
    for _depth in range(most):
        parts = [list(one.values()) if isinstance(one, dict) else one for one in level if isinstance(one, (dict, list))]
        level = [part for one in parts for part in one]
        if not level:
            return False
    return any(isinstance(one, (dict, list)) for one in level)


def printable_data(value: Any) -> Any:
    """Return a module's result, or any part of one, with all texts in it printable, at any depth, keys too."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable_data(key): printable_data(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [printable_data(part) for part in value]
    return value
