# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boards file as Nova's reader takes it. module_utils/_hetero/site/boards_file.py knows its format."""

from __future__ import annotations

from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.boards_file import parse, render


def one_line_boards(text: str) -> str:
    try:
        return render(parse(text, source="boards file"), one_line=True)
    except HeteroError as error:
        raise AnsibleFilterError(str(error)) from error
