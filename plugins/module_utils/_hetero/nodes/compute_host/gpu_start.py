# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`hetero gpu-start`: what LXC runs, as two hooks, whenever a container with GPUs starts (hypervisors/lxc/hooks.py).

LXC shows what a hook said in its log, and so does the error of whoever starts it by this collection.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Sequence

from ...core.errors import HeteroError
from ...hypervisors.lxc import hooks, identity

if TYPE_CHECKING:
    import argparse
    from types import TracebackType

VERB = identity.VERB
DOES = "A hook of LXC: refuse the start of a container whose GPUs are stale; otherwise open its GPUs to it."


def parser() -> argparse.ArgumentParser:
    """Return the parser of its words. It is imported for those who ask: a container's start waits for this verb."""
    import argparse

    words = argparse.ArgumentParser(prog=f"hetero {VERB}", description=DOES)
    words.add_argument("words", nargs="*", metavar="WORD", help="what LXC tells its hooks")
    return words


def main(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["--help"]:
        parser().print_help()
        return 0
    sys.excepthook = _said_at_once
    try:
        hooks.started(arguments, os.environ)
    except HeteroError as error:
        sys.stdout.write(f"{error}\n")
        return 1
    return 0


def _said_at_once(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Say a fault of this program in one piece: LXC reads ten pieces of what a hook says (conf.c, run_buffer), and
    Python would write each line of a traceback by itself; the last one says what happened.
    """
    import traceback

    sys.stderr.write("".join(traceback.format_exception(kind, error, trace)))
