# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""YAML as files of a site have it: a line for each thing, with what people are to know of it behind a `#`.

Values are plain words where they stay what they are, else JSON, which is YAML too but for what nobody sees beside
characters beyond U+FFFF.
"""

from __future__ import annotations

import json
import re
from typing import Any, Callable, Mapping

from ..core.printable import brief, one_line
from ..core.template_marks import may_be_template

#: Words that YAML keeps as text, and those that it does not (YAML 1.1).
_PLAIN = re.compile(r"[A-Za-z/][\w./-]*|\d{1,3}(?:\.\d{1,3}){3}", re.ASCII)
_TAKEN = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}


def word(text: str) -> str:
    """Return a text as a key or value of YAML."""
    if _PLAIN.fullmatch(text) and text.lower() not in _TAKEN:
        return text
    if text.isprintable():
        return json.dumps(text, ensure_ascii=False)
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(char: str) -> str:
    """Return a character as ASCII. Of one beyond U+FFFF JSON makes two, of which YAML would make two characters."""
    return json.dumps(char)[1:-1] if ord(char) < 0x10000 else f"\\U{ord(char):08x}"


class Template(str):
    """A text of ours that Ansible is to take for a template."""


def flow(value: Any) -> str:
    """Return a value on one line."""
    return _flow(value, word)


def for_ansible(value: Any) -> str:
    """Return the value of a variable of Ansible on one line. No text in it is a template but a `Template`."""
    return _flow(value, _data)


def _flow(value: Any, text: Callable[[str], str]) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{word(str(key))}: {_flow(one, text)}" for key, one in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_flow(one, text) for one in value) + "]"
    return text(value) if isinstance(value, str) else json.dumps(value)


def _data(text: str) -> str:
    mark = "!unsafe " if may_be_template(text) and not isinstance(text, Template) else ""
    return f"{mark}{word(text)}"


def comment(text: str) -> str:
    """Return a text of others as a comment behind a line."""
    return f"  # {one_line(brief(text, 300))}"
