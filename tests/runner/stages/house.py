# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stages that read the code: style, types, layers, and the documentation as it is published."""

from __future__ import annotations

import sys

from runner.places import BIN, BUILD, ROOT, environment
from runner.tools import StageFailed, counted, tool

#: The collection as Python imports it.
COLLECTION = BUILD / "ansible_collections" / "hetero" / "compute"
#: What mypy looks for in code without types: only what would end it in mid-run.
NAMES_AND_CALLS = [
    *("--allow-untyped-defs", "--check-untyped-defs", "--no-implicit-reexport", "--follow-imports=silent"),
    *("--disable-error-code=arg-type", "--disable-error-code=assignment", "--disable-error-code=index"),
    *("--disable-error-code=list-item", "--disable-error-code=misc", "--disable-error-code=operator"),
    "--disable-error-code=union-attr",
]


def ruff(log):
    tool(log, [BIN / "ruff", "check", "--no-cache", "--output-format", "concise"])
    files = tool(log, [BIN / "ruff", "check", "--show-files"]).split()
    if not files:
        raise StageFailed("no files: the tool tested nothing")
    return f"{len(files)} files"


def types(log):
    """mypy on what modules and commands share; and on measurements, which no test runs, for names that are no more and
    calls that do not fit.
    """
    mypy, settings = [BIN / "mypy", "--cache-dir", BUILD / "mypy"], environment(MYPYPATH=str(BUILD))
    output = tool(log, mypy, env=settings)
    measuring = tool(log, [*mypy, *NAMES_AND_CALLS, *sorted(COLLECTION.glob("bench/*.py"))], env=settings)
    found = r"no issues found in ([0-9]+) source files"
    return f"{counted(found, output, 'files')} files, {counted(found, measuring, 'files')} measurements"


def layers(log):
    """Whether imports go down only."""
    output = tool(log, [sys.executable, ROOT / "tests" / "layers.py", BUILD / "layers"])
    return f"{counted(r'^([0-9]+) modules', output, 'modules')} modules"


def docs(log):
    """What people read: the plugins, every reference in them, the site with the guides, the changelog's fragments."""
    lint = ["lint-collection-docs", "--plugin-docs", "--skip-rstcheck", "--validate-collection-refs", "self", ROOT]
    tool(log, [BIN / "antsibull-docs", *lint])
    tool(log, [BIN / "antsibull-changelog", "lint"])
    fragments = len(list(ROOT.glob("changelogs/fragments/*.yml")))
    # a release has made its fragments into this
    if not fragments and not (ROOT / "changelogs" / "changelog.yaml").exists():
        raise StageFailed("no changelog fragments: the tool tested nothing")
    pages = counted(r"^docs +([0-9]+) pages", tool(log, [ROOT / "tools" / "docs"]), "pages")
    return f"{pages} pages, {fragments} changelog fragments"
