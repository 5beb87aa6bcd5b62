# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a board is free again, and making it so: the one place, whoever asks, where a board leaves its claim.

Looks only at what was written down and at what is left of it here; switching off and cleaning is release.py's.
"""

from __future__ import annotations

from ..errors import Refused
from ..images.provision import leftovers
from . import states
from .disks import unwiped


def in_the_way(proxy, board):
    """Why a board cannot be given back yet, as texts; empty when it is off and nothing is left."""
    record = proxy.store.record(board.id)
    texts = []
    if record.state not in (states.POWER_OFF, states.SHUTTING_DOWN):
        texts.append(f"it is in state {record.state!r}")
    if record.power is None:
        texts.append("its outlet was not looked at since the claim")
    elif record.power != "off":
        texts.append("its outlet was last seen on")
    return texts + list(leftovers(proxy, board)) + unwiped(proxy, board)


def give_back(proxy, board, thing, remedy):
    """Make a board free whose lock the caller holds; the claim that ended, or None.

    :param thing: what an error names: the board, or the instance that has it.
    :raises Refused: it is not off, or not clean.
    """
    texts = in_the_way(proxy, board)
    if texts:
        board_name = "" if thing == board.name else f"{board.name} "
        raise Refused(f"{board_name}is not clean: {'; '.join(texts)}", thing, remedy)
    return proxy.store.release(board.id)
