# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the page on the commands of nodes from the parsers of these commands, and from the units by which roles have
nodes start them.
"""

from __future__ import annotations

import argparse
import re
import textwrap
from importlib import import_module
from pathlib import Path

from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes import hetero
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import pdu_mgr

#: How this is run.
HOW = "PYTHONPATH=build .venv/bin/python tools/node_commands.py"
ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "docsite" / "rst" / "guide_node_commands.rst"
HEAD = """\
.. Copyright: hetero.compute contributors
.. GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
.. SPDX-License-Identifier: GPL-3.0-or-later

.. tools/node_commands.py writes this page. Change the commands, then run it.

.. _ansible_collections.hetero.compute.docsite.guide_node_commands:

Commands of nodes
=================

A node does these by itself, without Ansible: systemd starts most of them, and root may type each. Module
:ansplugin:`hetero.compute.node_tools#module`, which the roles call, installs them. A machine that is several kinds of
node has one command ``hetero`` for all of them.

``hetero`` and ``hetero --help`` list the verbs with what each does, and ``hetero VERB --help`` says what one takes.
The exit code is 0 if it could do all.
"""
#: Where role tftp_proxy puts it, which is in no PATH.
PDU_MGR = """
It is in the TFTP root, where the first such nodes had it: type ``/tftpboot/pdu_mgr`` (``tftp_proxy_tftp_root``).
"""
#: Title of a part → the folder of its verbs' files.
PARTS = {"On a proxy node": "proxy", "On a compute host": "compute_host"}


def page() -> str:
    """Return the text of the page."""
    parts = [HEAD]
    for title, folder in PARTS.items():
        parts.append(_title(title, "-"))
        if folder == "proxy":
            parts.append(_command(pdu_mgr.parser()) + PDU_MGR)
        for verb, path in sorted(hetero.VERBS.items()):
            if folder in path.split("."):
                parts.append(_command(import_module(path, hetero.__package__).parser()) + _names_and_units(verb))
    return "\n".join(parts)


def _title(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}\n"


def _command(parser: argparse.ArgumentParser) -> str:
    # argparse has no other list of a parser's arguments
    actions = sorted((one for one in parser._actions if one.dest != "help"), key=lambda one: bool(one.option_strings))
    typed = " ".join([parser.prog, *(f"[{_typed(one)}]" if one.option_strings else _typed(one) for one in actions)])
    told = "".join(f"\n``{_typed(one)}``\n    {(one.help or '') % vars(one)}\n" for one in actions)
    text = f"{_title(parser.prog, '^')}\n{parser.description}\n{_block(typed)}{told}"
    return f"{text}{_block(parser.epilog)}" if parser.epilog else text


def _typed(action: argparse.Action) -> str:
    """Return how an argument is typed."""
    value = str(action.metavar or ("|".join(action.choices) if action.choices else action.dest.upper()))
    if action.option_strings:
        return action.option_strings[-1] if action.nargs == 0 else f"{action.option_strings[-1]} {value}"
    return f"{value} …" if action.nargs == "*" else value


def _block(text: str) -> str:
    return "\n.. code-block:: text\n\n" + textwrap.indent(f"{text}\n", "   ")


def _names_and_units(verb: str) -> str:
    """Return the verb's former names, and the units by which roles have nodes start it."""
    former = [name for name, meant in hetero.FORMER.items() if meant == verb]
    told = "".join(f"\nIts former name, ``hetero {name}``, leads here.\n" for name in former)
    units = {
        f"``{template.stem}`` (role :ansplugin:`hetero.compute.{template.parts[-3]}#role`)": None
        for template in sorted(ROOT.glob("roles/*/templates/*.service*.j2"))
        for words in re.findall(r"/usr/local/sbin/hetero ([^\n]+)", template.read_text(encoding="utf-8"))
        if hetero.parted(words.split())[0] == verb
    }
    return f"{told}\nStarted by {', '.join(units)}.\n" if units else told


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
