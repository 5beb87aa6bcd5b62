# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tour and the GPU guide, word by word, in a fresh clone. If this fails, a newcomer's first ten minutes do.

Each command is taken from its page and typed into one shell; what the page shows must be printed, in that order.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess

import pytest

from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT, guide, session

#: What differs from run to run: seconds, dates, sizes, a table's width; and what changes with every task of a playbook,
#: the counts of a recap (N on a page) but for what changed and what failed.
VARIES = [
    (r"\d+(\.\d+)? +(s|min|h|d)\b", "TIME"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "DATE"),
    (r"\(\d+ bytes\)", "SIZE"),
    (r"\b(ok|skipped|unreachable|rescued|ignored)=\d+", r"\1=N"),
    (r"\s+", " "),
]
MARK = "@@@ command"
#: A machine that runs other tests too takes so long for all of it.
LIMIT = 3000


def plain(line):
    for pattern, word in VARIES:
        line = re.sub(pattern, word, line)
    return line.strip()


def script(commands):
    """One shell for all commands, as the page has one; each ends with its number and exit code."""
    lines = []
    for number, command in enumerate(commands):
        typed = "".join(f"{line}\n" for line in command.typed)
        lines += [f"{command.line} < <(printf %s {shlex.quote(typed)})", f'echo "{MARK} {number} $?"']
    return "\n".join(lines) + "\n"


@pytest.fixture
def clone(tmp_path):
    """What is committed, as `git clone` gives it; its lab is taken down whatever happens."""
    folder = tmp_path / "clone"
    subprocess.run(["git", "-c", "safe.directory=*", "clone", "--quiet", ROOT, folder], check=True)
    yield folder
    subprocess.run(["make", "lab-down"], cwd=folder, check=True, timeout=3000)


@pytest.mark.long
def test_word_by_word(clone):
    """A command that is not there any more, one that fails, an output that says something else."""
    commands = session(guide("tour")) + session(guide("gpu_host"))
    assert len(commands) > 25
    kept = ("HOME", "LANG", "USER", "http_proxy", "https_proxy", "no_proxy", "PIP_INDEX_URL", "PIP_CONFIG_FILE")
    env = {name: os.environ[name] for name in kept if name in os.environ}
    env.update(PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", NO_COLOR="1")
    done = subprocess.run(
        ["bash"],
        input=script(commands),
        cwd=clone,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    print(done.stdout)
    outputs = re.split(rf"^{MARK} (\d+) (\d+)$", done.stdout, flags=re.MULTILINE)
    assert len(outputs) == 3 * len(commands) + 1
    wrong = []
    for number, command in enumerate(commands):
        printed, code = outputs[3 * number], int(outputs[3 * number + 2])
        if (code != 0) is not command.fails:
            wrong.append(f"{command.line}: ended with {code}")
        lines = iter([plain(line) for line in printed.splitlines()])
        # `in` goes on where the last one was found, so the order counts
        wrong += [f"{command.line}: not printed: {line}" for line in command.output if plain(line) not in lines]
    assert not wrong, "\n".join(wrong)
