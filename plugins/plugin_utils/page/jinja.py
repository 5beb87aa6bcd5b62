# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page's templates, which lie beside this file: whatever goes into them is cleaned, and escaped for HTML.

What the page shows is not known here. No file may be called templates.py: Ansible would import the folder instead.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.ext import Extension
from markupsafe import Markup

from .text import clean

#: By this file's own path: the collection may lie anywhere, in an execution environment as well.
FOLDER = Path(__file__).resolve().parent / "templates"
#: What stands between two elements, or Jinja blocks, on lines of their own.
_BREAK = re.compile(r"\s*\n\s*(?=[<{])")


class Unbroken(Extension):
    """A template's line breaks and indents before an element or a block are for its readers: the page has none of them.

    White space between elements would be visible. A comment stands for them, so that errors name the right line.
    """

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        """`source` as Jinja is to read it."""
        return _BREAK.sub(lambda found: "{#" + "\n" * found[0].count("\n") + "#}", source)


def render(name: str, **values: object) -> str:
    """The template of that name with these values."""
    return environment().get_template(name).render(values)


@lru_cache(maxsize=None)
def environment() -> Environment:
    """Jinja as the page uses it, made once in a process."""
    return Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        extensions=[Unbroken],
        finalize=_shown,
        undefined=StrictUndefined,
    )


def _shown(value: object) -> str:
    """What stands for a value: nothing for None; HTML that a macro of the templates made, as it is; else clean text.

    Jinja escapes what comes back unless it is Markup.
    """
    if isinstance(value, Markup):
        return value
    return "" if value is None else clean(value)
