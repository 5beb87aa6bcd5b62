# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a boot that stalled shows of its console. Lost: the one line that says why."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.module_utils.boards import blame


def test_only_what_is_longer_than_a_line_is_cut(tmp_path):
    """Lost: the last letter of a line that fits, or a terminal, to a line of a megabyte."""
    log = tmp_path / "board0.log"
    fits, longer = "a" * blame.CONSOLE_WIDTH, "b" * (blame.CONSOLE_WIDTH + 1)
    log.write_text(f"before\n{fits}\n{longer}\n")
    assert blame.console_tail(str(log), len("before\n")) == [fits, "b" * (blame.CONSOLE_WIDTH - 1) + "…"]


def test_a_log_that_was_rotated_is_shown_from_its_first_letter(tmp_path):
    """Lost: how the one line of a board that says nothing else begins."""
    log = tmp_path / "board0.log"
    log.write_text("panic\n")
    assert blame.console_tail(str(log), 4096) == ["panic"]
