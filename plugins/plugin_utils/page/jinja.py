# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Render the page's templates, which lie beside this file; every value in them is cleaned, and escaped for HTML.

The other files know what the page shows. No file may be called templates.py: Ansible would import the folder instead.
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
#: The white space between two elements, or Jinja blocks, on separate lines.
_BREAK = re.compile(r"\s*\n\s*(?=[<{])")


class Unbroken(Extension):
    """Removes a template's line breaks and indents before elements and blocks, which would be visible on the page.

    A Jinja comment takes their place, so that errors name the right line.
    """

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        """Return `source` with comments in place of these line breaks."""
        return _BREAK.sub(lambda found: "{#" + "\n" * found[0].count("\n") + "#}", source)


def render(name: str, **values: object) -> str:
    """Return the text of the template of that name with these values."""
    return environment().get_template(name).render(values)


@lru_cache(maxsize=None)
def environment() -> Environment:
    """Return the Jinja environment of the page, made once in a process."""
    return Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        extensions=[Unbroken],
        finalize=_shown,
        undefined=StrictUndefined,
    )


def _shown(value: object) -> str:
    """Return what the page shows for a value: nothing for None, Markup (from the templates) as it is, else clean text.

    Jinja escapes the result unless it is Markup.
    """
    if isinstance(value, Markup):
        return value
    return "" if value is None else clean(value)
