# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parser of a verb of `hetero` that reads the configuration of its node."""

from __future__ import annotations

import argparse


def verb_parser(verb: str, does: str, config: str, node: str) -> argparse.ArgumentParser:
    """Return a parser with --config, to which the verb adds its own arguments.

    :param does: what the verb does, as a sentence.
    :param config: path of the configuration that is read without --config.
    :param node: "host" or "proxy".
    """
    words = argparse.ArgumentParser(prog=f"hetero {verb}", description=does)
    words.add_argument("--config", default=config, help=f"the {node}'s configuration (%(default)s)")
    return words
