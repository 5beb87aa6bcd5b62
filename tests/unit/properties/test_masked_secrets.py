# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Any password, written in any way by a program that was told it. If these failed, six letters of it in a row, or all
of it, would be in what people read of a PDU."""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
from urllib.parse import quote, quote_plus

from hypothesis import strategies as st

from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.driver import CONTROL
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.masking import (
    HIDDEN,
    MASK,
    PIECE,
    Mask,
)

LETTERS = st.sampled_from("aB3/+=%&;'\"\\<> $ußé€😀") | st.characters(exclude_categories=["Cs", "Cc"])
SECRETS = st.text(
    LETTERS | st.sampled_from("abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123456789"), min_size=PIECE, max_size=40
)
WAYS = {
    "itself": str,
    "large": str.upper,
    "small": str.lower,
    "reversed": lambda text: text[::-1],
    "url": lambda text: quote(text, safe=""),
    "form": quote_plus,
    "json": lambda text: json.dumps(text)[1:-1],
    "json as it is": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "json twice": lambda text: json.dumps(json.dumps(text)),
    "xml": html.escape,
    "shell": shlex.quote,
    "backslashes": lambda text: re.sub(r"([^\w])", r"\\\1", text),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 of a url": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "basic": lambda text: base64.b64encode(f"apc:{text}".encode()).decode(),
    "basic of another": lambda text: base64.b64encode(f"admin:{text}".encode()).decode(),
    "hex": lambda text: text.encode().hex(),
    "hex, large": lambda text: text.encode().hex().upper(),
    "python": lambda text: "".join(f"\\x{byte:02x}" for byte in text.encode()),
    "coloured": "\x1b[1m".join,
    "in lines": "\n".join,
}


@st.composite
def printed(draw):
    """(a secret, a way in which it is written, its first and last letter that are)."""
    secret = draw(SECRETS.filter(lambda text: not CONTROL.search(text) and "§" not in text))
    first = draw(st.integers(0, len(secret) - PIECE))
    return secret, draw(st.sampled_from(sorted(WAYS))), first, draw(st.integers(first + PIECE, len(secret)))


def test_no_piece_of_a_secret_is_told(try_all):
    """Lost: the password of a rack, or enough of it to guess the rest."""

    def hidden(given):
        secret, way, first, end = given
        form = WAYS[way](secret[first:end])
        told = Mask([secret], "apc")(f"\n§§§{form}§§§\n")
        as_is = f"\n§§§{re.sub(re.escape(secret), MASK, form, flags=re.I)}§§§\n"
        allowed = [f"\n{HIDDEN}\n", *([as_is] if MASK in as_is and MASK not in form else [])]
        # A secret with these letters may hide the lines beside, too.
        assert told.strip("\n") in [text.strip("\n") for text in allowed], (given, form, told)

    try_all(400, printed(), hidden)


def test_what_has_nothing_of_it_is_told_as_it_is(try_all):
    """Lost: the reason of a failure."""

    def whole(given):
        secret, text = given
        assert Mask([secret])(text) == text

    try_all(
        100,
        st.tuples(st.text("ABCXYZ012", min_size=PIECE, max_size=20), st.text("defghij \n%\\&;'", max_size=200)),
        whole,
    )
