# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs one of the programs here: python3 heteroci PROGRAM …"""

import contextlib
import importlib
import io
import os
import signal
import sys


def code():
    """Return the code of an end that is nobody's but this machine's: Python's own, 1, would be a command's, and of
    GitLab a job's (endings.CODES, gitlab._code).
    """
    return int(os.environ.get("SYSTEM_FAILURE_EXIT_CODE") or 2) if program == "gitlab" else 115


program = sys.argv.pop(1)
if sys.version_info < (3, 9):  # this file alone is one that an older Python reads
    version = ".".join(map(str, sys.version_info[:2]))
    sys.stderr.write(f"{program}: {sys.executable} is Python {version}: name a 3.9 or newer in HETERO_PYTHON\n")
    sys.exit(code())
# Ctrl-C ends it without a word of Python's until it hears signals (cancelled.py), and when it has done its work
if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
# by the folder, and not by PYTHONPATH, which the job's own programs would have, too
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# who has closed one of them has closed it: the next file that is opened is none of them
for number, name in enumerate(("stdin", "stdout", "stderr")):
    if getattr(sys, name) is None:
        os.dup2(os.open(os.devnull, os.O_RDWR), number)
        os.set_inheritable(number, True)
        setattr(sys, name, io.TextIOWrapper(io.FileIO(number, "w" if number else "r", closefd=False)))


def end(*error):
    """End after an error that nobody foresaw, such as one of a machine without memory."""
    sys.__excepthook__(*error)
    with contextlib.suppress(OSError):
        sys.stderr.flush()
    os._exit(code())


sys.excepthook = end
sys.exit(importlib.import_module(f"heteroci.{program}").main())
