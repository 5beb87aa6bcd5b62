# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy of any number of boards with a history, written through the store as the modules write it."""

from __future__ import annotations

import json

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.proxy import Proxy
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import ClaimTerms
from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.work.info import information
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site import board_states

CPU = '{"vendor":"tilera","model":"TILEmpower","arch":"TILEPro64","features":["8x8Grid"],"topology":{"cores":"64"}}'
FLAVOR = {"name": "tp64.8x8"}
KEY = "ssh-ed25519 AAAA"
TEXTS = ("{}: off → on, read back", "boot entry, kernel, initrd fetched", "root mounted", "ssh answers")
TAIL = "VFS: Unable to mount root fs via NFS\nKernel panic - not syncing: VFS: Unable to mount root fs"


class Site:
    """`boards` boards on PDUs of `outlets` outlets each, wired in the blueprint's order: outlets are not board ids."""

    def __init__(self, folder, boards=10, outlets=5):
        self.folder, self.outlets = folder, outlets
        folder.mkdir(exist_ok=True)
        wiring = {
            str(n): {"pdu": f"pdu-{chr(97 + n // outlets)}", "outlet": outlets - n % outlets} for n in range(boards)
        }
        config = dict(server="10.0.2.254", state_folder=str(folder / "state"), run_folder=str(folder / "run"))
        config["boards"] = wiring
        (folder / "proxy.json").write_text(json.dumps(config))
        rows = [
            f"{n} 10.0.{2 + n // 250}.{1 + n % 250} 00:1a:ca:00:{n // 250:02x}:{n % 250:02x} 10 16218 917 476 1 "
            f"tilera_hv 1 {CPU}"
            for n in range(boards)
        ]
        (folder / "tilera_boards").write_text("\n".join(rows) + "\n")
        self.params = dict(
            boards_file=str(folder / "tilera_boards"),
            config=str(folder / "proxy.json"),
            state_db=str(folder / "state.db"),
        )

    def boot(self, board, instance, owner="alice", seconds=(0.4, 2.2, 4.5, 5.4), hours=None, until="running"):
        """A claim and the events of its boot; `until` is the phase it has come to."""
        with Proxy(self.params, actor="test") as proxy:
            store = proxy.store
            store.claim(instance, [instance], ClaimTerms(owner, FLAVOR, "debian-12", KEY), [board], lease_hours=hours)
            store.event(board, "image", f"root ready, exported to 10.0.2.{board + 1} only", 0.1)
            store.move(board, board_states.BOOTING)
            outlet = f"{proxy.wiring(proxy.board(board)).pdu} outlet {self.outlets - board % self.outlets}"
            store.event(board, "switch", f"{outlet} is to be switched on")
            for phase, text, spent in zip(("power", "tftp", "nfs", "running"), TEXTS, seconds):
                if phase == "running":
                    store.move(board, board_states.RUNNING)
                store.event(board, phase, text.format(outlet), spent)
                if phase == until:
                    break

    def fail(self, board, note, tail=TAIL):
        with Proxy(self.params, actor="test") as proxy:
            proxy.store.move(board, board_states.ERROR, note)
            proxy.store.event(board, "error", f"kept out of use: {note}\n{tail}")

    def move(self, board, state, note=""):
        with Proxy(self.params, actor="test") as proxy:
            proxy.store.move(board, state, note)

    def result(self, name="proxy1", events=50):
        """What a loop of board_info has got from it."""
        with Proxy(self.params, create=False) as proxy:
            return dict(information(proxy, events=events), item=name)


def lab(folder):
    """Ten boards as in the lab, in each state there is."""
    site = Site(folder)
    site.boot(0, "jackie", hours=8)
    site.boot(1, "ml-7", "bob", (0.4, 2.9, 5.1, 6.6), hours=0.2)
    site.boot(6, "ci-runner-3", "ci", (1.2, 2.4, 4.1, 5.0))
    site.boot(3, "carol", "carol", until="tftp")
    site.fail(4, "stalled at tftp after 41 s, twice")
    site.move(7, board_states.MAINTENANCE, "new fan ordered")
    site.boot(8, "eve", "eve")
    site.move(8, board_states.SHUTTING_DOWN)
    return site


def room(folder, boards=200):
    """A room of boards on PDUs of 24 outlets."""
    site = Site(folder, boards, 24)
    for board in range(boards):
        if board % 3:
            seconds = (0.3 + board % 5 / 10, 2.0 + board % 7 / 4, 4.0 + board % 11 / 3, 7.5 + board % 13 / 2)
            name = f"{('render', 'ci', 'ml')[board % 3]}-{board}"
            site.boot(board, name, ("alice", "bob")[board % 2], seconds, hours=board % 4 * 6 or None)
        elif board % 33 == 0:
            site.fail(board, f"pdu outlet {board % 24}: still on 10 s after 'off' (PDU answered Success)")
    return site
