# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter `hetero.compute.fits`: which instance types a board can serve, by the rules of
module_utils/_hetero/scheduling/fit.py.
"""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.fit import TOLERANCE, rejections
from ansible_collections.hetero.compute.plugins.module_utils._hetero.scheduling.flavor_check import validate


def fits(instance_types: Any, board: Any, tolerance: Any = TOLERANCE) -> list[str]:
    if not isinstance(instance_types, dict):
        raise AnsibleFilterError("hetero.compute.fits needs a mapping of instance types by name before the bar")
    if not isinstance(board, dict):
        raise AnsibleFilterError("hetero.compute.fits needs a board (a mapping, as board_info returns it)")
    if isinstance(tolerance, bool) or not isinstance(tolerance, (int, float)) or not 0 <= tolerance < 1:
        raise AnsibleFilterError(f"hetero.compute.fits: tolerance is {tolerance!r}: give a number from 0 to below 1")
    names = []
    for name, flavor in instance_types.items():
        try:
            validate(dict(flavor, name=name) if isinstance(flavor, dict) else flavor)
        except BadInput as error:
            raise AnsibleFilterError(f"hetero.compute.fits: {error}") from error
        if not rejections(flavor, board, tolerance):
            names.append(name)
    return names
