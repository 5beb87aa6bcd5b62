# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Nova itself says. Run by Nova's own environment, with a kind of question as argument: reads its cases as JSON
from standard input, writes an answer for each to standard output. Holds no rule of Nova's.
"""

from __future__ import annotations

import contextlib
import json
import sys


def operators(cases):
    """extra_specs: {value, requirement} → true, false, or the name of the exception.

    A value that is no text and no list goes in as ComputeCapabilitiesFilter gives it: as its text.
    """
    from nova.scheduler.filters import extra_specs_ops

    for case in cases:
        value = case["value"]
        if value is not None and not isinstance(value, list):
            value = str(value)
        try:
            yield extra_specs_ops.match(value, case["requirement"])
        except (IndexError, TypeError, ValueError) as error:
            yield type(error).__name__


QUESTIONS = {"operators": operators}


def main(question):
    cases = json.load(sys.stdin)
    with contextlib.redirect_stdout(sys.stderr):
        answers = list(QUESTIONS[question](cases))
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
