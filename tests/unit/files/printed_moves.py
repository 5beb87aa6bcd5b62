# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ways that are printed of a mount point, or a link, in the place of somebody's data."""

from __future__ import annotations

import re
import subprocess


def steps(said):
    """The command lines of a printed way, in their order: the copy, and what puts it into its place."""
    copy, rest = re.search(r"copy (?:all of it beside it|that beside the link) \((.*?)\); once (.*)", said).groups()
    return [copy, *re.findall(r"\(([^()]*)\)", rest)]


def typed(line, before=""):
    done = subprocess.run(["bash", "-c", before + line], check=False, capture_output=True, text=True)
    print("rc", done.returncode, done.stdout.strip(), done.stderr.strip())
    return done


def followed(said):
    """Whether all steps of a printed way do what they are to do."""
    return [typed(line).returncode for line in steps(said)] == [0] * len(steps(said))
