# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What --diff shows of a file. If these fail, an operator reads a dry run of the set-up as lists of JSON."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.changes import Change


def test_a_files_lines_are_lines():
    """Lost: what a set-up would write, line by line. Ansible shows a mapping as JSON."""
    change = Change()
    change.note("/etc/a", {}, {"mode": "0644", "owner": "root:root", "lines": ["one", "two", ""]})
    change.note("/etc/b", {"lines": ["one"]}, {})
    change.note("/etc/c", {"mode": "0600", "content": "not ours"}, {"mode": "0644", "lines": []})
    change.note("board0", {"power": "off"}, {"power": "on"})
    shown = [(entry["before"], entry["after"]) for entry in change.result["diff"]]
    assert shown == [
        ("", "mode: 0644\nowner: root:root\none\ntwo\n"),
        ("one\n", ""),
        ("mode: 0600\ncontent: not ours\n", "mode: 0644\n"),
        ({"power": "off"}, {"power": "on"}),
    ]
