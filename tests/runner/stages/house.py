# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stages that read the code: style, types, layers, and the documentation as it is published."""

from __future__ import annotations

import sys

from runner.places import BIN, BUILD, ROOT, environment
from runner.tools import StageFailed, counted, tool


def ruff(log):
    tool(log, [BIN / "ruff", "check", "--no-cache", "--output-format", "concise"])
    files = tool(log, [BIN / "ruff", "check", "--show-files"]).split()
    if not files:
        raise StageFailed("no files: the tool tested nothing")
    return f"{len(files)} files"


def types(log):
    """mypy on what modules and commands share."""
    output = tool(log, [BIN / "mypy", "--cache-dir", BUILD / "mypy"], env=environment(MYPYPATH=str(BUILD)))
    return f"{counted(r'no issues found in ([0-9]+) source files', output, 'files')} files"


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
