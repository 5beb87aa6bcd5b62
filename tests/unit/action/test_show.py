# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a play says last. If these fail, people see no farewell, or a job's artifacts lack what it made."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.action import show as action


@pytest.fixture
def show(monkeypatch):
    """A function that runs the task; it returns (the lines that people saw, the result)."""

    def run(**args):
        lines = []
        monkeypatch.setattr(action, "tell", lines.append)
        task = SimpleNamespace(args=args, async_val=0, check_mode=False, action="hetero.compute.show")
        shell = SimpleNamespace(_shell=SimpleNamespace(tmpdir="/nowhere"))
        return lines, action.ActionModule(task, shell, None, None, None, None).run(None, {})

    return run


def test_lines_alone_give_no_statistics(show):
    lines, result = show(lines=["jackie is running on board0"])
    assert lines == ["jackie is running on board0"]
    assert (result["changed"], "ansible_stats" in result) == (False, False)


def test_a_line_is_shown_whole(show):
    """A status as JSON is one line: cut off, nothing reads it. Control characters in it are shown and not obeyed."""
    assert show(lines=["x" * 100_000, "a\nb\x1b[2J"])[0] == ["x" * 100_000, "a\\x0ab\\x1b[2J"]


def test_statistics_are_given_as_set_stats_gives_them(show):
    """Not of a host: AWX keeps those of the whole job only."""
    _lines, result = show(lines=[], stats={"hetero_instances": [{"instance": "jackie"}]})
    given = dict(data={"hetero_instances": [{"instance": "jackie"}]}, per_host=False, aggregate=True)
    assert result["ansible_stats"] == given
