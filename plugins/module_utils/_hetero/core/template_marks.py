# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which texts are templates to Ansible, in an inventory and in files of variables, unless they are marked as none.

What others wrote is none, whatever stands in it: a template may read files of the controller, and run programs there.
"""

from __future__ import annotations

#: What each template has: a brace, or the first line that Ansible obeys, by which any other words stand for braces.
MARKS = ("{", "#jinja2:")


def may_be_template(text: str) -> bool:
    """Return whether Ansible may take a text for a template."""
    return any(mark in text for mark in MARKS)
