# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts of a PDU, or of a program that got its secrets, without these secrets.

A secret that is printed plainly becomes MASK. A line with at least PIECE successive letters of a secret is hidden as a
whole, however the letters are written (quoted, encoded, reversed, cut, over several lines). For that the text is also
looked at decoded, so that no way of quoting must be foreseen. A shorter secret is hidden only as a whole word;
otherwise any text with its letters would be destroyed.
"""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
from bisect import bisect_right
from typing import Collection, Iterable, Iterator, List, Tuple
from urllib.parse import quote, quote_plus

#: Letters of a text, each with its place in the text.
Letters = List[Tuple[str, int]]

MASK = "********"
HIDDEN = "(a line with the password in it)"
#: Successive letters of a secret that are never shown.
PIECE = 6
#: Characters of a text that are looked at and shown: its first and its last ones.
MOST = 1 << 16
#: Sequences that a terminal obeys.
ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b\r\n]{0,300}(?:\x07|\x1b\\)|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[()][0-9A-Z]|\x1b[=>78DEHMc]"
)
#: Characters that no secret has (driver.CONTROL), but a text may have within a secret.
CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
#: Letters as written by URLs, XML, shells, and by JSON, Python and shells with a backslash. Each code is decoded alone,
#: because one's code may be another's plain letter; and all together, for quotes within quotes.
CODES = (
    r"(?P<url>(?:%[0-9A-Fa-f]{2})+)",
    r"(?P<xml>&#?\w{1,31};)",
    r"(?P<quote>'\"'\"'|'\\'')",
    r"(?P<hex>(?:\\x[0-9A-Fa-f]{2})+)|(?P<octal>(?:\\[0-3][0-7]{2})+)|(?P<json>(?:\\u[0-9A-Fa-f]{4})+)|\\(?P<plain>.)",
)
CODED = tuple(map(re.compile, (*CODES, "|".join(CODES))))


class Mask:
    """Hides the secrets of one PDU in texts.

    :param secrets: its secrets; empty ones are ignored.
    :param user: the user name, with which short secrets may be encoded.
    """

    def __init__(self, secrets: Iterable[str | None], user: str | None = None) -> None:
        self._secrets = sorted({secret for secret in secrets if secret}, key=len, reverse=True)
        self._user = user or ""
        self._ready: tuple[re.Pattern[str], re.Pattern[str], set[str]] | None = None

    def __call__(self, text: str) -> str:
        """Return a text without the secrets."""
        if not self._secrets or not text:
            return text
        plain, words, pieces = self._ready = self._ready or self._prepared()
        if len(text) > MOST:
            text = f"{text[: MOST // 2]}\n…\n{text[-(MOST // 2) :]}"
        text = plain.sub(MASK, text)
        return _without(text, [*_found(text, pieces), *(match.span() for match in words.finditer(text))])

    def _prepared(self) -> tuple[re.Pattern[str], re.Pattern[str], set[str]]:
        """Return (pattern of the secrets, pattern of encoded short secrets, pieces of long secrets in all forms)."""
        plain, words, pieces = [], [], set()
        for secret in self._secrets:
            if len(secret) < PIECE:
                plain.append(f"(?-i:{_word(secret)})")
                words += [_word(form) for form in _short_forms(secret, self._user)]
            else:
                plain.append(re.escape(secret))
                pieces.update(_pieces(secret))
        return re.compile("|".join(plain), re.I), re.compile("|".join(words) or r"\Z.", re.S), pieces


def _word(text: str) -> str:
    """Return a pattern for a text that is not part of a longer word."""
    before, after = (r"(?<!\w)" if text[0].isalnum() else ""), (r"(?!\w)" if text[-1].isalnum() else "")
    return f"{before}{re.escape(text)}{after}"


def _short_forms(secret: str, user: str) -> list[str]:
    """Return the encoded forms of a short secret, the longest first."""
    forms = {quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1], html.escape(secret)}
    forms |= {shlex.quote(secret), secret.encode().hex()}
    for text in (secret, f"{user}:{secret}"):
        for code in (base64.b64encode, base64.urlsafe_b64encode):
            coded = code(text.encode()).decode()
            forms |= {coded, coded.rstrip("=")}
    return sorted((form for form in forms if secret not in form), key=len, reverse=True)


def _pieces(secret: str) -> set[str]:
    """Return all pieces of PIECE letters of a secret, folded, in all forms that decoding a text does not undo."""
    # a form of HTML writes a plus for a blank
    forms, data = [secret, secret.replace(" ", "+"), secret[::-1], secret.encode().hex()], secret.encode()
    for shift in range(3):
        # As part of something longer, such as USER:SECRET: without characters that also hold bits of the rest.
        first, end = (0, 2, 3)[shift], (shift + len(data)) * 8 // 6
        for code in (base64.b64encode, base64.urlsafe_b64encode):
            forms.append(code(b"\0" * shift + data).decode()[first:end])
    texts = ["".join(map(_fold, form)) for form in forms]
    texts += [text.replace(" ", "") for text in texts]
    return {text[at : at + PIECE] for text in texts for at in range(len(text) - PIECE + 1)}


def _fold(letter: str) -> str:
    """Return a letter as it is compared, without its case."""
    return letter.upper().casefold()


def _found(text: str, pieces: set[str]) -> Iterator[tuple[int, int]]:
    """Yield (begin, end) in a text of all pieces of a secret."""
    as_it_is = [(text[at], at) for at in _seen(text)] if pieces else []
    seen: list[Letters] = []
    for letters in (as_it_is, *_decoded(as_it_is)):
        if letters in seen:
            continue
        seen.append(letters)
        folded = [(part, at) for letter, at in letters for part in _fold(letter)]
        for view in (folded, [(letter, at) for letter, at in folded if letter != " "]):
            line = "".join(letter for letter, at in view)
            for begin in range(len(line) - PIECE + 1):
                if line[begin : begin + PIECE] in pieces:
                    yield view[begin][1], view[begin + PIECE - 1][1] + 1


def _seen(text: str) -> list[int]:
    """Return the places in a text of letters that people see."""
    blank = bytearray(len(text))
    for pattern in (ESCAPES, CONTROLS):
        for match in pattern.finditer(text):
            blank[match.start() : match.end()] = b"\1" * (match.end() - match.start())
    return [at for at, hidden in enumerate(blank) if not hidden]


def _decoded(letters: Letters) -> list[Letters]:
    """Return the letters decoded by each code; those of codes that may hold others are decoded twice."""
    once = [_by(pattern, letters) for pattern in CODED]
    return [*once, *(_by(pattern, found) for pattern, found in zip(CODED[-2:], once[-2:]))]


def _by(pattern: re.Pattern[str], letters: Letters) -> Letters:
    """Return letters, with their places in the text, decoded by one of CODED."""
    text, decoded, end = "".join(letter for letter, at in letters), [], 0
    for match in pattern.finditer(text):
        decoded += letters[end : match.start()]
        at, end = letters[match.start()][1], match.end()
        decoded += [(letter, at) for letter in _meant(match) if not CONTROLS.match(letter)]
    return decoded + letters[end:]


def _meant(match: re.Match[str]) -> str:
    kind, given = match.lastgroup, match[0]
    if kind in ("url", "hex"):
        return _text(bytes.fromhex(re.sub(r"%|\\x", "", given)))
    if kind == "octal":
        return _text(bytes(int(number, 8) for number in given.split("\\")[1:]))
    if kind == "json":
        data = bytes.fromhex(given.replace("\\u", ""))
        return data.decode("utf-16-be", "replace")
    if kind == "xml":
        return html.unescape(given)
    return "'" if kind == "quote" else match["plain"]


def _text(data: bytes) -> str:
    """Return bytes as text: UTF-8, or else Latin-1."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _without(text: str, found: Collection[tuple[int, int]]) -> str:
    """Return a text in which each line is hidden that has a part of what was found."""
    if not found:
        return text
    lines, starts = text.splitlines(keepends=True), [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    hidden = set()
    for begin, end in found:
        hidden.update(range(bisect_right(starts, begin) - 1, bisect_right(starts, end - 1)))
    shown = []
    for number, line in enumerate(lines):
        if number not in hidden:
            shown.append(line)
        elif number - 1 not in hidden:
            shown.append(HIDDEN + line[len(line.rstrip("\r\n")) :])
    return "".join(shown)
