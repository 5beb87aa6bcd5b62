# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wiring of a proxy node as it was learned, in a new file of variables beside the inventory.

A file that is there stays, whatever is in it. A command for a console that may hold a password is not written.
"""

from __future__ import annotations

import os
import re
import shlex
from typing import Any, Mapping

from ..core.changes import Change
from ..core.errors import BadInput, Refused, naming
from ..core.plays import play
from ..core.typed_keys import shown
from ..files.whole_file import as_before, write_whole
from . import variables
from .setup_files import boards_lines
from .source_site import OWN_CONSOLE, may_hold_password
from .yaml_lines import comment

HEAD = (
    "Learned by {cabling}: tftp_proxy_boards of {host}, all of it",
    "To look at it: {proxy} --limit {host} --check --diff -e @{path}",
    "To keep it: put it in place of tftp_proxy_boards in the variables of {host}, such as host_vars/{host}.yml",
)
#: Behind the line of a board whose command is left out.
LEFT_OUT = "its {key} may hold a password and is not here: keep it as it is"
#: What is learned of a board.
PLACE = ("pdu", "outlet")


def write_wiring(params: Mapping[str, Any], check_mode: bool) -> dict[str, Any]:
    """Write `boards` of the proxy node `host`, with the `wiring` that was learned, into `file`.

    Without `wiring` it is only looked whether it can be written.

    :raises Refused: the file is there.
    :raises BadInput: Ansible would read it in place of another file that is there, or not at all.
    """
    path, change = os.path.realpath(params["file"]), Change(check_mode)
    if os.path.lexists(path):
        raise Refused("is there, and stays; nothing was written", path, "name another file")
    variables.must_be_read(path)
    wires, lines = _whole(params.get("boards") or {}, params["wiring"] or {}), []
    if params["wiring"]:
        said = dict(cabling=play("cabling", learn="…"), proxy=play("proxy"))
        said.update(host=params["host"], path=shlex.quote(path))
        head = "".join(f"{comment(line.format(**said)).strip()}\n" for line in HEAD)
        private = {number: key for number, wire in wires.items() for key in _private(wire)}
        for number, key in private.items():
            del wires[number][key]
        left_out = {number: LEFT_OUT.format(key=key) for number, key in private.items()}
        text = head + "".join(boards_lines(wires, left_out))
        if change.note(path, {"lines": []}, {"lines": text.splitlines()}) and not check_mode:
            with naming(path):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                write_whole(path, text, **as_before(path, 0o644))
        lines.append(f"{path} has them, as tftp_proxy_boards of {params['host']}")
        lines += [f"  # {number}: {words}" for number, words in left_out.items()]
    return {**change.result, "lines": lines, "boards": [], "questions": [], "vault": [], "notes": []}


def _private(wire: Mapping[str, Any]) -> list[str]:
    """Return the key of a board's wiring whose command may hold a password, in a list; none where none may."""
    line = wire.get(OWN_CONSOLE)
    said = {"console_command": wire.get("console_command")}
    said.update({OWN_CONSOLE: line.get("command")} if isinstance(line, Mapping) else {})
    return [key for key, command in said.items() if may_hold_password(command)][:1]


def _whole(boards: Mapping[str, Any], learned: Mapping[str, Any]) -> dict[int, dict[str, Any]]:
    """Return all boards' wiring by number, with the outlets that were learned."""
    whole = {_number(key): dict(wire or {}) for key, wire in boards.items()}
    for number, wire in ((_number(key), wire) for key, wire in learned.items()):
        place = {key: wire[key] for key in PLACE if key in wire}
        whole[number] = {**place, **whole.get(number, wire), **place}
    return dict(sorted(whole.items()))


def _number(key: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", key):
        raise BadInput("is no board's id", f"tftp_proxy_boards: {shown(key)}", "correct it: its keys are ids, as 3")
    return int(key)
