# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which lines callback quiet adds to those of a task that lasts. If these fail, a log is silent while a board boots, or
has each line twice.
"""

from __future__ import annotations

from types import SimpleNamespace

from ansible_collections.hetero.compute.plugins.callback import quiet
from ansible_collections.hetero.compute.plugins.plugin_utils.progress import AGAIN


class Pipe:
    """A callback whose output is a pipe, by a clock of its own: it passes where the callback waits for its next look.

    :param own: the seconds in which the task that runs prints a line itself.
    """

    def __init__(self, monkeypatch, action, own):
        self.now, self.lines, self._own = 0.0, [], list(own)
        self.callback = quiet.CallbackModule()
        self.callback._display = SimpleNamespace(display=lambda text: self.lines.append((self.now, text)), verbosity=0)
        monkeypatch.setattr(quiet.time, "monotonic", lambda: self.now)
        self.callback._note_what_is_said()
        task = SimpleNamespace(action=action, get_name=lambda: "Start jackie")
        self.callback.v2_playbook_on_task_start(task, False)

    def said(self, seconds):
        """What is printed within so many seconds, as [(second, text)]."""

        def wait(pause):
            self.now += pause
            while self._own and self._own[0] <= self.now:
                self.callback._display.display(f"its own, {self._own.pop(0):.0f} s")
            return self.now > seconds

        self.callback._over = SimpleNamespace(wait=wait)
        self.callback._name_what_lasts()
        return self.lines


def test_work_that_says_itself_how_long_it_lasts_is_not_named_beside_that(monkeypatch):
    """Lost: the reason why a board does not come up, in a log of CI with a line more for each of those that say so."""
    own = [2.0, *(12.0 + AGAIN * turn + turn % 2 for turn in range(9))]
    lines = Pipe(monkeypatch, "hetero.compute.board_power", own).said(100)
    assert [text for _second, text in lines] == [f"its own, {second:.0f} s" for second in own]


def test_work_that_falls_silent_is_named_all_the_same(monkeypatch):
    """Lost: whether it still goes on, to whoever reads a log, where a node says nothing any more."""
    lines = Pipe(monkeypatch, "hetero.compute.board_power", [2.0, 12.0]).said(60)
    assert lines[:2] == [(2.0, "its own, 2 s"), (12.0, "its own, 12 s")]
    assert [text for _second, text in lines[2:]] == [f"Start jackie: {second} s so far" for second in (27, 42, 57)]
    lines = Pipe(monkeypatch, "ansible.builtin.apt", []).said(30)
    assert [second for second, _text in lines] == [5.0, 13.0, 21.0, 29.0]
