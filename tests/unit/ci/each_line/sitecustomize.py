# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sends a program of extensions/ci a signal at one of its lines (test_a_signal_at_each_line.py).

AT_PROGRAM says which (the first word that heteroci gets). AT_LINE has the signal, a number, and maybe a function: of
the lines of heteroci (or of that function) that the program comes to, each by the lines that called it once, the one
that is meant. What AT_LINE_LOG names gets that line, and nothing where the program has fewer.
"""

import os
import sys


def send(log, number, meant, function=""):
    seen = set()

    def trace(frame, event, _arg):
        code, back = frame.f_code, frame.f_back
        if "/heteroci/" not in code.co_filename or code.co_name == "<module>" or function not in ("", code.co_name):
            return None
        line = (os.path.basename(code.co_filename), frame.f_lineno, event, back.f_lineno if back else 0)
        if event in ("line", "return") and line not in seen:
            seen.add(line)
            if len(seen) == int(meant):
                sys.settrace(None)
                with open(log, "w", encoding="utf-8") as file:
                    file.write(f"{line}")
                os.kill(os.getpid(), int(number))
        return trace

    sys.settrace(trace)


if "AT_LINE" in os.environ and sys.orig_argv[2:3] == [os.environ["AT_PROGRAM"]]:
    send(os.environ["AT_LINE_LOG"], *os.environ.pop("AT_LINE").split())
