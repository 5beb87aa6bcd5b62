# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""BMCs, as Ironic and MAAS tell of them, by this collection's drivers redfish and ipmi, and who has their machines.

By Redfish the outlet is the Id of a system, which is never guessed; by IPMI a BMC has one machine.
"""

from __future__ import annotations

from typing import Any

from ..drivers.power.ipmi import OUTLET
from .source_site import Board, Pdu, Site


def bmc(site: Site, board: Board, at: object, username: Any) -> Pdu:
    """Return a board's BMC, whose password the source has.

    :param at: its address, with or without a port, or an address of the web.
    """
    pdu = site.pdu(f"bmc-{board.name}", board.where)
    pdu.take_address(at)
    pdu.take("username", username)
    pdu.login = True
    board.take("pdu", pdu.name)
    return pdu


def by_ipmi(pdu: Pdu, board: Board, cipher: Any, older: bool) -> None:
    """Have a BMC asked by IPMI.

    :param older: whether it is to be asked by IPMI 1.5, which only a fence agent does.
    """
    board.take("outlet", OUTLET)
    pdu.take("driver", "fence" if older else "ipmi")
    if older:
        pdu.take("agent", "fence_ipmilan")
    else:
        pdu.take("cipher_suite", cipher)


def by_redfish(pdu: Pdu, board: Board, at: object, system: Any, word: str) -> None:
    """Have a BMC asked by Redfish.

    :param system: the Id of the board's system, or a path that ends with it.
    :param word: what the source calls it.
    """
    pdu.take("driver", "redfish")
    if str(at).startswith("http://"):
        pdu.take("tls", False)
    if system:
        board.take("outlet", str(system).rstrip("/").rpartition("/")[2])
    else:
        board.ask("outlet", f"{board.where}: has no {word}: give the Id of its system, such as System.Embedded.1")


def in_use(board: Board, state: str) -> None:
    """Ask what feeds a machine that somebody has there: by its outlet it would be a free board, which is switched off.

    :param state: what the source says of it.
    """
    board.held = board.said.get("pdu")
    way = f"answer {board.held} where it may go off all the same" if board.held else board.asked["pdu"]
    board.ask("pdu", f"{board.where}: it is {state}, and may be at work: end that first, and export it anew; {way}")
