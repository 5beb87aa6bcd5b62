# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy node as its files describe it: the boards, which outlet feeds which, where things lie, and the open state store.

The configuration is JSON because the system's Python has no YAML; role tftp_proxy writes it from inventory variables.
"""

from __future__ import annotations

import json
import os

from ..errors import BadInput
from .boards_file import read as read_boards
from .store import Store

#: What proxy.json may leave out.
DEFAULTS = {
    "tftp_root": "/tftpboot",
    "state_folder": "/var/lib/hetero",
    "run_folder": "/run/hetero",
    "exports": "ganesha",
    "credentials": "/etc/hetero/credentials.json",
    "pdus": {},
    "boards": {},
}


def _load(path, remedy):
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except FileNotFoundError as error:
        raise BadInput("no such file", path, remedy) from error
    except ValueError as error:
        raise BadInput(f"is not JSON ({error})", path, remedy) from error
    if not isinstance(data, dict):
        raise BadInput("is not a JSON object", path, remedy)
    return data


class Proxy:
    """Boards, configuration and store of one proxy node; a context manager that closes the store.

    :param params: a module's `boards_file`, `config` and `state_db`.
    :param actor: who acts, for events and locks (default: the process).
    :param create: with False a missing state database reads as empty and stays missing (information, check mode).
    :raises BadInput: a file is missing or wrong; each defect is named.
    """

    SET_UP = "run the set-up playbook hetero.compute.proxy on this node"

    def __init__(self, params, actor=None, create=True):
        self.config = dict(DEFAULTS, **_load(params["config"], self.SET_UP))
        self.boards = {board.id: board for board in read_boards(params["boards_file"])}
        self.actor = actor or f"pid {os.getpid()}"
        self.store = Store(params["state_db"], self.actor, create)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.store.close()

    def folder(self, *parts):
        """A path below the state folder."""
        return os.path.join(self.config["state_folder"], *parts)

    def board(self, board_id):
        """The board of that id; BadInput names the ids there are."""
        try:
            return self.boards[int(board_id)]
        except (KeyError, ValueError) as error:
            known = ", ".join(str(known) for known in sorted(self.boards)) or "none"
            raise BadInput(f"no such board (known: {known})", f"board {board_id}", "add it to the boards file") from error

    def wiring(self, board):
        """What proxy.json says of a board: pdu, outlet, driver, console, cmdline."""
        return self.config["boards"].get(str(board.id), {})

    def outlet(self, board):
        """(PDU name, outlet as text) of a board; BadInput where it is not wired."""
        wiring = self.wiring(board)
        if "pdu" not in wiring or "outlet" not in wiring:
            raise BadInput("no PDU outlet is configured for it", board.name, f"name its pdu and outlet, then {self.SET_UP}")
        return wiring["pdu"], str(wiring["outlet"])

    def pdu(self, name):
        """(settings, secrets) of a PDU."""
        if name not in self.config["pdus"]:
            known = ", ".join(sorted(self.config["pdus"])) or "none"
            raise BadInput(f"no such PDU (known: {known})", name, self.SET_UP)
        path = self.config["credentials"]
        secrets = _load(path, self.SET_UP).get(name, {}) if os.path.exists(path) else {}
        return self.config["pdus"][name], secrets
