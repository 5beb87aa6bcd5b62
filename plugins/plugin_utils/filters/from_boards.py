# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boards file for templates. module_utils/_hetero/site/boards_file.py knows its format."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.boards_file import parse


def from_boards(text: str) -> list[dict[str, Any]]:
    try:
        boards = parse(text, source="boards file")
    except HeteroError as error:
        raise AnsibleFilterError(str(error)) from error
    return [dict(asdict(board), name=board.name, arch=board.arch, geometry=board.geometry) for board in boards]
