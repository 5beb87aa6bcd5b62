# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`hetero gpu-facts`: this machine's GPUs as JSON, for /etc/ansible/facts.d; what is said, compute_host/gpu_facts.py
knows.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Sequence

from ...claims.host.config import CONFIG
from ...compute_host import gpu_facts
from ...core.printable import printable_data
from ..verb_parser import verb_parser

if TYPE_CHECKING:
    from ...devices.gpus.paths import Paths

VERB = "gpu-facts"
DOES = "Print this machine's GPUs as JSON, as module gpu_facts finds them: a local fact of Ansible."


def local_fact(config: str = CONFIG, paths: Paths = gpu_facts.HERE) -> str:
    """Return the text of the local fact: the list that module gpu_facts sets as hetero_gpus."""
    return json.dumps(printable_data(gpu_facts.look(config, paths=paths)["gpus"]), sort_keys=True)


def parser() -> argparse.ArgumentParser:
    """Return the parser of its words."""
    return verb_parser(VERB, DOES, CONFIG, "host")


def main(arguments: Sequence[str]) -> int:
    sys.stdout.write(f"{local_fact(parser().parse_args(arguments).config)}\n")
    return 0
