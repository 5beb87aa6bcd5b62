# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is written in README.md and the guides, for tests: texts, code blocks by name, commands with their output."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
GUIDES = sorted((ROOT / "docs" / "docsite" / "rst").glob("guide_*.rst"))
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *sorted(ROOT.glob("roles/*/README.md")),
    *GUIDES,
]
#: What stands before a command, and before what is typed into it, in blocks of a terminal.
PROMPT, INNER = "# ", re.compile(r"root@[\w-]+:~# (.*)")


@dataclass
class Command:
    """A command of a terminal's block: what is typed, also into it, and what is then to be seen, in this order."""

    line: str
    typed: list = field(default_factory=list)
    output: list = field(default_factory=list)
    fails: bool = False


def guide(name):
    return (ROOT / "docs" / "docsite" / "rst" / f"guide_{name}.rst").read_text()


def blocks(text):
    """(language, options, content) of each code block, of reStructuredText and of Markdown."""
    found = []
    directive = r"^( *)\.\. code-block:: (\S+)\n((?:\1   :.*\n)*)\n((?:\1   .*\n|[ ]*\n)+)"
    for match in re.finditer(directive, text, re.MULTILINE):
        options = dict(re.findall(r":(\w+): (\S+)", match.group(3)))
        found.append((match.group(2), options, textwrap.dedent(match.group(4)).strip("\n") + "\n"))
    for match in re.finditer(r"^ *```(\w*)\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL):
        found.append((match.group(1), {}, textwrap.dedent(match.group(2))))
    return found


def named(text, name):
    """The content of the block with this :name:."""
    (content,) = (content for _language, options, content in blocks(text) if options.get("name") == name)
    return content


def session(text):
    """The Commands of all terminal blocks of a page, in order. A block of class `fails` ends with one that fails."""
    commands = []
    for language, options, content in blocks(text):
        if language != "console":
            continue
        for line in content.splitlines():
            inner = INNER.fullmatch(line)
            if line.startswith(PROMPT):
                # what stands behind it, two blanks and more away, is for people
                commands.append(Command(re.sub(r"  +# .*", "", line[len(PROMPT) :])))
            elif inner:
                commands[-1].typed.append(inner[1])
            elif commands[-1].line.endswith("\\"):
                commands[-1].line = f"{commands[-1].line[:-1]}{line.strip()}"
            elif line.strip() not in ("", "…"):
                commands[-1].output.append(line)
        commands[-1].fails = options.get("class") == "fails"
    return commands
