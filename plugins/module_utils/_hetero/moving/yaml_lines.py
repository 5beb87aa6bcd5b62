# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""YAML as files of a site have it: a line for each thing, with what people are to know of it behind a `#`.

Values are plain words where they stay what they are, else JSON, which is YAML too.
"""

from __future__ import annotations

import json
import re
from typing import Any, Mapping

from ..core.printable import brief, one_line

#: Words that YAML keeps as text, and those that it does not (YAML 1.1).
_PLAIN = re.compile(r"[A-Za-z/][\w./-]*|\d{1,3}(?:\.\d{1,3}){3}", re.ASCII)
_TAKEN = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}


def word(text: str) -> str:
    """Return a text as a key or value of YAML."""
    if _PLAIN.fullmatch(text) and text.lower() not in _TAKEN:
        return text
    return json.dumps(text, ensure_ascii=not text.isprintable())


def flow(value: Any) -> str:
    """Return a value on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{word(str(key))}: {flow(one)}" for key, one in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(flow, value)) + "]"
    return word(value) if isinstance(value, str) else json.dumps(value)


def comment(text: str) -> str:
    """Return a text of others as a comment behind a line."""
    return f"  # {one_line(brief(text, 300))}"
