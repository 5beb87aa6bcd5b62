# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What reconcile saw of a board, found out, and did about it."""

from __future__ import annotations

from ..errors import Refused
from ..locks import BUSY, held_by
from .board_work import BoardWork
from .presence import ALIVE, OTHER_KEY, OWN_KEY

PHASE = "reconcile"


class Seen(BoardWork):
    """A board that is looked at also where its root is another claim's than its record says.

    `contradiction` is what any other verb refuses it for.
    """

    contradiction = None

    def read(self):
        try:
            super().read()
        except Refused as error:
            self.contradiction = error


class Look:
    """One board: what was seen of it and what was found out and done.

    `kept` is the claim that another record gives it; it counts while the board is asked. Once `settled` nothing more
    is done here.
    """

    def __init__(self, work):
        self.work = work
        self.kept = None
        self.settled = False
        self.power = None
        self.ssh = None
        self.found = []
        self.nobodys = False

    def begin(self):
        """Its lock is held, or was not got."""
        self.recorded = self.work.record.state if self.work.record else None
        if self.work.over:
            self.note(f"not looked at: {self.work.error}")
        elif self.work.change.check:
            self.yield_to_a_verb()

    def yield_to_a_verb(self):
        """A dry run takes no lock: what it sees of a board that a verb works on says nothing of the board."""
        who = held_by(self.work.proxy.config["run_folder"], self.work.board.name, self.work.instance)
        if who:
            self.found, self.work.over, self.work.changed = [], True, False
            self.note(BUSY.format(who=who))

    def note(self, found, done=None):
        """`done` says what was mended, or would be; None: it is only reported."""
        self.found.append(dict(found=found, done=done))

    def mend(self, found, done):
        """Note what is mended, with an event."""
        self.note(found, done)
        self.work.changed = True
        self.work.say(PHASE, f"{found}: {done}")

    @property
    def lives_without_power(self):
        """Whether another outlet feeds it than its wiring names."""
        return self.power == "off" and self.ssh in (OWN_KEY, OTHER_KEY, ALIVE)

    @property
    def result(self):
        work = self.work
        return dict(
            board=work.board.id,
            name=work.board.name,
            instance=work.instance,
            recorded=self.recorded,
            state=work.record.state if work.record else None,
            power=self.power,
            ssh=self.ssh,
            found=self.found,
            changed=work.changed,
        )
