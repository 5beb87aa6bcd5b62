# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`hetero gpu-start`: what LXC runs, as two hooks, whenever a container with GPUs starts (hypervisors/lxc/hooks.py).

LXC shows what a hook said in its log, and so does the error of whoever starts it by this collection.
"""

from __future__ import annotations

import os
import sys
from typing import Sequence

from ...core.errors import HeteroError
from ...hypervisors.lxc import hooks, identity

VERB = identity.VERB


def main(arguments: Sequence[str]) -> int:
    try:
        hooks.started(arguments, os.environ)
    except HeteroError as error:
        sys.stdout.write(f"{error}\n")
        return 1
    return 0
